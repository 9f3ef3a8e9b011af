//! The tables of webhooks and of their deliveries, pending ones and the log. Times are wall time, since
//! deliveries outlive the process; a time too far ahead comes from a wrong clock and counts as past.

use std::collections::BTreeMap;

use kinora_contract::limits::{WEBHOOK_LOG_MAX, WEBHOOK_PENDING_MAX};
use kinora_contract::webhook::event_id;
use kinora_contract::{TaskId, UnixMs, WebhookSecret};

use crate::sql::{
    SqlDialect, SqlQuery, SqlRow, SqlScript, TypedQuery, UnreadableValue, json, number_at,
};
use crate::webhooks::{AHEAD_MS_MAX, TRIM_STEP};
use crate::{
    DeliveryAttempt, DeliveryDone, DeliveryNext, DeliveryRequest, DeliveryState, DueDelivery,
    LoggedDelivery, TaskCallback, Webhook, WebhookChange,
};

/// The columns of a webhook `w`, for [`read`].
pub(crate) const WEBHOOK: &str = "w.id, w.project, w.url, w.secret, w.old_secret, w.old_until_ms, w.created_at_ms, w.disabled_at_ms, w.dropped";

/// Asks for all webhooks, in the order of their creation.
pub(crate) fn all() -> TypedQuery<Webhook> {
    let ask = format!("SELECT {WEBHOOK} FROM webhooks w ORDER BY w.created_at_ms, w.id");
    TypedQuery {
        query: SqlQuery::new(ask),
        read,
    }
}

/// Reads a row that begins with [`WEBHOOK`].
pub(crate) fn read(row: &SqlRow) -> Result<Webhook, UnreadableValue> {
    let old: Option<[u8; 32]> = row.get(4)?;
    Ok(Webhook {
        id: row.get(0)?,
        project: row.get(1)?,
        url: row.get(2)?,
        secret: WebhookSecret::new(row.get(3)?),
        old_secret: old.map(WebhookSecret::new).zip(row.get(5)?),
        created_at_ms: row.get(6)?,
        disabled_at_ms: row.get(7)?,
        dropped: row.get(8)?,
    })
}

/// Adds a webhook, unless it is for callbacks and its project already has one for them.
pub(crate) fn add(webhook: &Webhook) -> SqlQuery {
    let add = "INSERT INTO webhooks (id, project, url, secret, old_secret, old_until_ms, created_at_ms, disabled_at_ms) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (project) WHERE url IS NULL DO NOTHING RETURNING 1";
    let (old, old_until_ms) = webhook.old_secret.clone().unzip();
    SqlQuery::new(add)
        .bind(&webhook.id)
        .bind(&webhook.project)
        .bind(webhook.url.clone())
        .bind(webhook.secret.bytes())
        .bind(old.as_ref().map(WebhookSecret::bytes))
        .bind(old_until_ms)
        .bind(webhook.created_at_ms)
        .bind(webhook.disabled_at_ms)
}

impl SqlScript for WebhookChange {
    type Output = bool;

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let change = match self {
            Self::Add(webhook) => add(webhook),
            Self::Remove { id } => {
                return vec![
                    SqlQuery::new("DELETE FROM deliveries WHERE webhook = $1 RETURNING 1").bind(id),
                    SqlQuery::new("DELETE FROM webhooks WHERE id = $1 RETURNING 1").bind(id),
                ];
            }
            Self::Rotate {
                id,
                secret,
                old_until_ms,
            } => SqlQuery::new(
                "UPDATE webhooks SET old_secret = secret, old_until_ms = $3, secret = $2 WHERE id = $1 RETURNING 1",
            )
            .bind(id)
            .bind(secret.bytes())
            .bind(*old_until_ms),
            Self::Test { id, event } => SqlQuery::new(
                "INSERT INTO deliveries (event, webhook, state) SELECT $2, id, 'pending' FROM webhooks \
                 WHERE id = $1 AND url IS NOT NULL AND disabled_at_ms IS NULL RETURNING 1",
            )
            .bind(id)
            .bind(event),
            Self::Redeliver { number } => SqlQuery::new(
                "UPDATE deliveries SET state = 'pending', due_ms = 0, attempts = 0, token = NULL \
                 WHERE number = $1 AND state IN ('delivered', 'failed') RETURNING 1",
            )
            .bind(*number),
        };
        vec![change]
    }

    fn output(&self, answers: &[Vec<SqlRow>]) -> Result<bool, UnreadableValue> {
        Ok(answers.last().is_some_and(|rows| !rows.is_empty()))
    }
}

/// Asks for the newest deliveries to a webhook, newest first.
pub(crate) fn log(webhook: &str, count: usize) -> TypedQuery<LoggedDelivery> {
    let ask = "SELECT number, event, task, url, state, attempts, due_ms, tried_at_ms, status, error \
               FROM deliveries WHERE webhook = $1 ORDER BY number DESC LIMIT $2";
    TypedQuery {
        query: SqlQuery::new(ask).bind(webhook).bind(count as u64),
        read: read_delivery,
    }
}

fn read_delivery(row: &SqlRow) -> Result<LoggedDelivery, UnreadableValue> {
    let (tried, status): (Option<UnixMs>, Option<u16>) = (row.get(7)?, row.get(8)?);
    let error: Option<String> = row.get(9)?;
    let answer = status.ok_or_else(|| error.unwrap_or_default());
    Ok(LoggedDelivery {
        number: row.get(0)?,
        event: row.get(1)?,
        task: row.get(2)?,
        url: row.get(3)?,
        state: state(row, 4)?,
        attempts: row.get(5)?,
        due_ms: row.get(6)?,
        last: tried.map(|at_ms| DeliveryAttempt { at_ms, answer }),
    })
}

fn state(row: &SqlRow, at: usize) -> Result<DeliveryState, UnreadableValue> {
    let name: String = row.get(at)?;
    DeliveryState::from_name(&name)
        .ok_or_else(|| UnreadableValue(format!("unknown state {name:?} of a delivery")))
}

/// Records that the callback of this task must receive its end.
pub(crate) fn add_callback(task: TaskId, callback: &TaskCallback) -> SqlQuery {
    let add = "INSERT INTO deliveries (event, task, webhook, url, state) VALUES ($1, $2, $3, $4, 'waiting')";
    SqlQuery::new(add)
        .bind(event_id(task))
        .bind(task.to_string())
        .bind(&callback.webhook)
        .bind(&callback.url)
}

/// Records the ends of tasks, each with its project, for their callbacks and the webhooks of their
/// projects.
pub(crate) fn add_ends(dialect: SqlDialect, ended: &[(TaskId, String)]) -> [SqlQuery; 2] {
    let rows = ended
        .iter()
        .map(|(task, project)| (event_id(*task), task.to_string(), project));
    let rows = json(&rows.collect::<Vec<_>>());
    let each = dialect.each_row("$1");
    // A callback has its delivery since the submit, in the state `waiting`: the end makes it
    // pending. The other webhooks of the project get a delivery now, so one that was added during
    // the run counts too.
    let callbacks = format!(
        "UPDATE deliveries SET state = 'pending' WHERE state = 'waiting' \
         AND event IN (SELECT value ->> 0 FROM {each}) RETURNING 1"
    );
    let others = format!(
        "INSERT INTO deliveries (event, task, webhook, state) \
         SELECT e.event, e.task, w.id, 'pending' FROM (\
           SELECT value ->> 0 AS event, value ->> 1 AS task, value ->> 2 AS project FROM {each}\
         ) e JOIN webhooks w ON w.project = e.project \
         WHERE w.url IS NOT NULL AND w.disabled_at_ms IS NULL ORDER BY w.created_at_ms, w.id \
         ON CONFLICT (event, webhook) DO NOTHING RETURNING 1"
    );
    [callbacks, others].map(|text| SqlQuery::new(text).bind(rows.clone()))
}

/// Selects and locks the deliveries to lease. Each webhook is read by index, as far as its free places
/// go, so the work does not grow with its backlog. Deliveries under way have the first places of their
/// webhook.
pub(crate) fn due(dialect: SqlDialect, request: &DeliveryRequest, now_ms: UnixMs) -> SqlQuery {
    let ask = match dialect {
        // For each webhook, up to `each` due deliveries and as many that are too far ahead to be true, both
        // by index. Those in progress take the first places, so the limit of a webhook covers them. Sorting
        // by place gives one delivery to each webhook before a second to any. SQLite has no LATERAL: a
        // JSON list takes the place of the join, and `key`, the position in it, that of row_number().
        SqlDialect::Sqlite => {
            "SELECT number FROM (\
               SELECT value ->> 0 AS due_ms, value ->> 1 AS number, key + (\
                 SELECT count(*) FROM deliveries \
                 WHERE webhook = w.id AND token IS NOT NULL AND due_ms > $1 AND due_ms <= $2) AS place \
               FROM webhooks w CROSS JOIN json_each((SELECT json_group_array(json_array(due_ms, number)) FROM (\
                 SELECT * FROM (SELECT due_ms, number FROM deliveries WHERE webhook = w.id AND state = 'pending' \
                 AND due_ms <= $1 ORDER BY due_ms, number LIMIT $3) UNION ALL \
                 SELECT * FROM (SELECT due_ms, number FROM deliveries WHERE webhook = w.id AND state = 'pending' \
                 AND due_ms > $2 ORDER BY due_ms, number LIMIT $3)))) \
               WHERE w.disabled_at_ms IS NULL \
               AND EXISTS (SELECT 1 FROM deliveries WHERE webhook = w.id AND state = 'pending')\
             ) WHERE place < $3 ORDER BY place, due_ms, number LIMIT $4"
        }
        SqlDialect::Postgres => {
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
             ORDER BY due.place, due.due_ms, o.number FOR UPDATE OF o SKIP LOCKED"
        }
    };
    SqlQuery::new(ask)
        .bind(now_ms)
        .bind(now_ms.saturating_add(AHEAD_MS_MAX))
        .bind(request.each as u64)
        .bind(request.count as u64)
}

/// Asks for the deliveries beyond the limits of their webhooks, a limited number of each: whether
/// one is pending, and its number.
pub(crate) fn excess(dialect: SqlDialect) -> TypedQuery<(bool, u64)> {
    let finished = dialect.each_number(
        "SELECT number FROM deliveries WHERE webhook = w.id AND state IN ('delivered', 'failed') AND number <= (\
           SELECT number FROM deliveries WHERE webhook = w.id ORDER BY number DESC LIMIT 1 OFFSET $1) \
         ORDER BY number LIMIT $3",
    );
    let pending = dialect.each_number(
        "SELECT number FROM deliveries WHERE webhook = w.id AND state = 'pending' \
         ORDER BY due_ms DESC, number DESC LIMIT $3 OFFSET $2",
    );
    let ask = format!(
        "SELECT 0, CAST(value AS BIGINT) FROM webhooks w CROSS JOIN {finished} UNION ALL \
         SELECT 1, CAST(value AS BIGINT) FROM webhooks w CROSS JOIN {pending}"
    );
    TypedQuery {
        query: SqlQuery::new(ask)
            .bind(WEBHOOK_LOG_MAX)
            .bind(WEBHOOK_PENDING_MAX)
            .bind(TRIM_STEP),
        read: |row| Ok((row.get::<u64>(0)? == 1, row.get(1)?)),
    }
}

/// Removes pending deliveries, or finished ones, if they still are; returns their webhooks. One that is
/// being delivered stays.
pub(crate) fn remove(dialect: SqlDialect, is_pending: bool, numbers: &[u64]) -> SqlQuery {
    // Checked again: a reader has found these rows, and since then a delivery may have begun.
    let is_old = if is_pending {
        "state = 'pending' AND token IS NULL"
    } else {
        "state IN ('delivered', 'failed')"
    };
    let remove = format!(
        "DELETE FROM deliveries WHERE number IN (SELECT number FROM deliveries \
         WHERE number IN (SELECT CAST(value AS BIGINT) FROM {}) AND {is_old} {}) RETURNING webhook",
        dialect.each("$1"),
        dialect.skip_locked()
    );
    SqlQuery::new(remove).bind(json(numbers))
}

/// Adds to the numbers of dropped deliveries of webhooks.
pub(crate) fn count_dropped(dialect: SqlDialect, dropped: &BTreeMap<String, u64>) -> SqlQuery {
    let count = format!(
        "UPDATE webhooks SET dropped = dropped + n.more FROM (\
           SELECT value ->> 0 AS own, {} AS more FROM {}\
         ) n WHERE id = n.own RETURNING 1",
        number_at(1),
        dialect.each_row("$1")
    );
    SqlQuery::new(count).bind(json(&dropped.iter().collect::<Vec<_>>()))
}

/// Leases deliveries, each under its token.
pub(crate) fn lease(
    dialect: SqlDialect,
    numbers: &[u64],
    tokens: &[u64],
    until_ms: UnixMs,
) -> SqlQuery {
    let leases: Vec<_> = numbers.iter().zip(tokens).collect();
    let lease = format!(
        "UPDATE deliveries SET due_ms = $2, token = n.lease, attempts = attempts + 1 FROM (\
           SELECT {} AS own, {} AS lease FROM {}\
         ) n WHERE number = n.own RETURNING 1",
        number_at(0),
        number_at(1),
        dialect.each_row("$1")
    );
    SqlQuery::new(lease).bind(json(&leases)).bind(until_ms)
}

/// Selects leased deliveries with their webhooks, for [`read_due`].
pub(crate) fn leased(dialect: SqlDialect, numbers: &[u64]) -> SqlQuery {
    let ask = format!(
        "SELECT {WEBHOOK}, d.number, d.token, d.attempts, d.event, d.task, coalesce(d.url, w.url) \
         FROM deliveries d JOIN webhooks w ON w.id = d.webhook \
         WHERE d.number IN (SELECT CAST(value AS BIGINT) FROM {})",
        dialect.each("$1")
    );
    SqlQuery::new(ask).bind(json(numbers))
}

/// Reads a leased delivery. An unreadable one is tried again after its lease, and does not block those
/// after it.
pub(crate) fn read_due(
    row: &SqlRow,
    now_ms: UnixMs,
) -> Result<Option<DueDelivery>, UnreadableValue> {
    let webhook = read(row)?;
    let number = row.get(9)?;
    let (task, url): (Option<String>, Option<String>) = (row.get(13)?, row.get(14)?);
    let task = task.map(|task| task.parse::<TaskId>()).transpose();
    let (Ok(task), Some(url)) = (task, url) else {
        tracing::error!(number, "damaged delivery skipped");
        return Ok(None);
    };
    Ok(Some(DueDelivery {
        number,
        token: row.get(10)?,
        attempts: row.get(11)?,
        event: row.get(12)?,
        task,
        url,
        secrets: webhook.secrets(now_ms),
        project: webhook.project,
    }))
}

impl SqlScript for DeliveryDone {
    type Output = ();

    fn statements(&self, now_ms: UnixMs) -> Vec<SqlQuery> {
        let leased = |text| SqlQuery::new(text).bind(self.number).bind(self.token);
        if let DeliveryNext::Later { after_ms } = self.next {
            // Given back before an attempt, such as when the process stops: the count of the lease is undone.
            let postpone = "UPDATE deliveries SET due_ms = $3, token = NULL, attempts = attempts - 1 \
                            WHERE number = $1 AND token = $2 RETURNING 1";
            return vec![leased(postpone).bind(now_ms.saturating_add(after_ms))];
        }
        let mut statements = Vec::new();
        if self.next == DeliveryNext::Gone {
            // Both statements name the webhook by the delivery's lease: a stale token must not
            // disable one that another process has just delivered to. A callback URL belongs to one
            // request, so its webhook, which only signs, stays.
            let disable = "UPDATE webhooks SET disabled_at_ms = $3 WHERE url IS NOT NULL \
                           AND id = (SELECT webhook FROM deliveries WHERE number = $1 AND token = $2) RETURNING 1";
            let fail_others = "UPDATE deliveries SET state = 'failed', token = NULL \
                               WHERE state = 'pending' AND number <> $1 AND webhook = (\
                                 SELECT d.webhook FROM deliveries d JOIN webhooks w ON w.id = d.webhook \
                                 WHERE d.number = $1 AND d.token = $2 AND w.url IS NOT NULL) RETURNING 1";
            // Before the delivery itself is settled, which ends the lease that they look for.
            statements.extend([leased(disable).bind(now_ms), leased(fail_others)]);
        }
        let settle = "UPDATE deliveries SET state = $3, due_ms = $4, token = NULL, tried_at_ms = $5, status = $6, error = $7 \
                      WHERE number = $1 AND token = $2 RETURNING 1";
        let status = self.answer.as_ref().ok();
        statements.push(
            leased(settle)
                .bind(self.next.state().name())
                .bind(self.next.due_ms(now_ms))
                .bind(now_ms)
                .bind(status.map(|status| u64::from(*status)))
                .bind(self.answer.clone().err()),
        );
        statements
    }

    fn output(&self, _: &[Vec<SqlRow>]) -> Result<(), UnreadableValue> {
        Ok(())
    }
}
