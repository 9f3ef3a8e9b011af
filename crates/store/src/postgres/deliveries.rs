//! Deliveries in PostgreSQL as the delivering processes use them: leases, outcomes, and the limits of
//! a webhook's rows.

use kinora_contract::UnixMs;
use kinora_contract::limits::{WEBHOOK_LOG_MAX, WEBHOOK_PENDING_MAX};

use super::batch::Batch;
use super::fault::Done;
use super::lane::LaneStep;
use super::statement::Statement;
use crate::DeliveryRequest;
use crate::webhooks::{AHEAD_MS_MAX, TRIM_STEP};

/// Finds and locks the deliveries to lease. Each webhook is read by index, as far as its free places
/// go, so the work does not grow with its backlog. Deliveries under way have the first places of
/// their webhook.
pub(super) fn due(request: &DeliveryRequest, now_ms: UnixMs) -> Statement {
    Statement::new(
        "WITH due AS (\
           SELECT d.number, d.due_ms, d.place + l.count AS place FROM webhooks w \
           CROSS JOIN LATERAL (\
             SELECT count(*) FROM deliveries \
             WHERE webhook = w.id AND token IS NOT NULL AND due_ms > $1 AND due_ms <= $2) l \
           CROSS JOIN LATERAL (\
             SELECT number, due_ms, row_number() OVER (ORDER BY due_ms, number) AS place FROM (\
               (SELECT number, due_ms FROM deliveries WHERE webhook = w.id AND state = 'pending' \
                AND due_ms <= $1 ORDER BY due_ms, number LIMIT $3) UNION ALL \
               (SELECT number, due_ms FROM deliveries WHERE webhook = w.id AND state = 'pending' \
                AND due_ms > $2 ORDER BY due_ms, number LIMIT $3)) n) d \
           WHERE w.disabled_at_ms IS NULL AND d.place + l.count <= $3 \
           ORDER BY 3, d.due_ms, d.number LIMIT $4\
         ) SELECT o.number FROM due JOIN deliveries o ON o.number = due.number \
         WHERE (o.due_ms <= $1 OR o.due_ms > $2) AND o.state = 'pending' \
         ORDER BY due.place, due.due_ms, o.number FOR UPDATE OF o SKIP LOCKED",
    )
    .int(now_ms)
    .int(now_ms.saturating_add(AHEAD_MS_MAX))
    .int(request.each as u64)
    .int(request.count as u64)
}

/// Removes deliveries beyond the limits of their webhooks, a limited number for each.
pub(super) struct Trim;

impl LaneStep for Trim {
    type Output = u64;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<u64> {
        let finished = Statement::new(
            "DELETE FROM deliveries WHERE number = ANY (ARRAY(\
               SELECT d.number FROM webhooks w CROSS JOIN LATERAL (\
                 SELECT number FROM deliveries WHERE webhook = w.id ORDER BY number DESC LIMIT 1 OFFSET $1) last \
               CROSS JOIN LATERAL (\
                 SELECT number FROM deliveries WHERE webhook = w.id AND number <= last.number \
                 AND state IN ('delivered', 'failed') ORDER BY number LIMIT $2 FOR UPDATE SKIP LOCKED) d))",
        );
        batch
            .change(finished.int(WEBHOOK_LOG_MAX).int(TRIM_STEP))
            .await?;
        // One that is being delivered stays.
        let pending = Statement::new(
            "WITH old AS (\
               SELECT d.number FROM webhooks w CROSS JOIN LATERAL (\
                 SELECT number FROM deliveries WHERE webhook = w.id AND state = 'pending' \
                 ORDER BY due_ms DESC, number DESC LIMIT $2 OFFSET $1) d\
             ), locked AS (\
               SELECT number FROM deliveries WHERE number = ANY (ARRAY(SELECT number FROM old)) \
               AND state = 'pending' AND token IS NULL FOR UPDATE SKIP LOCKED\
             ), gone AS (\
               DELETE FROM deliveries d USING locked l WHERE d.number = l.number RETURNING d.webhook\
             ), counted AS (SELECT webhook, count(*) FROM gone GROUP BY webhook) \
             UPDATE webhooks w SET dropped = dropped + c.count FROM counted c WHERE w.id = c.webhook \
             RETURNING c.count",
        );
        let counts = batch
            .change(pending.int(WEBHOOK_PENDING_MAX).int(TRIM_STEP))
            .await?;
        let counts = counts.iter().map(|row| row.try_get::<_, i64>(0));
        let counts: Vec<i64> = counts.collect::<Result<_, _>>()?;
        Ok(counts.into_iter().map(i64::unsigned_abs).sum())
    }
}
