//! Webhooks and the log of their deliveries in PostgreSQL: rows and changes. Times are wall time; a time too
//! far ahead comes from a wrong clock and counts as past.

use kinora_contract::webhook::event_id;
use kinora_contract::{TaskId, UnixMs, WebhookSecret};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::batch::Batch;
use super::fault::{Done, corrupt};
use super::job::Operation;
use super::statement::Statement;
use crate::stored::int;
use crate::{Attempted, Callback, Delivery, DeliveryState, Webhook, WebhookChange};

/// The columns of a webhook, for [`read`].
pub(super) const WEBHOOK: &str = "w.id, w.project, w.url, w.secret, w.old_secret, w.old_until_ms, w.created_at_ms, w.disabled_at_ms, w.dropped";

/// Notes that the callback of this task must receive its end.
pub(super) fn note_callback(task: TaskId, callback: Callback) -> Statement {
    let note = "INSERT INTO deliveries (event, task, webhook, url, state) VALUES ($1, $2, $3, $4, 'waiting')";
    let note = Statement::new(note)
        .text(event_id(task))
        .text(task.to_string());
    note.text(callback.webhook).text(callback.url)
}

/// Notes the ends of tasks, each with its project, for their callbacks and the webhooks of their
/// projects.
pub(super) fn note_ends(ended: Vec<(TaskId, String)>) -> [Statement; 2] {
    let events: Vec<String> = ended.iter().map(|(task, _)| event_id(*task)).collect();
    let tasks = ended.iter().map(|(task, _)| task.to_string()).collect();
    let projects = ended.into_iter().map(|(_, project)| project).collect();
    let callbacks = Statement::new(
        "UPDATE deliveries SET state = 'pending' WHERE event = ANY($1) AND state = 'waiting'",
    );
    let others = Statement::new(
        "INSERT INTO deliveries (event, task, webhook, state) SELECT e.event, e.task, w.id, 'pending' \
         FROM unnest($1, $2, $3) AS e(event, task, project) JOIN webhooks w ON w.project = e.project \
         WHERE w.url IS NOT NULL AND w.disabled_at_ms IS NULL ON CONFLICT (event, webhook) DO NOTHING",
    );
    [
        callbacks.texts(events.clone()),
        others.texts(events).texts(tasks).texts(projects),
    ]
}

impl Operation for WebhookChange {
    type Output = bool;

    async fn apply(&self, batch: &mut Batch<'_>) -> Done<bool> {
        let change = match self {
            Self::Add(webhook) => add(webhook),
            Self::Remove { id } => {
                let log = Statement::new("DELETE FROM deliveries WHERE webhook = $1").text(id);
                batch.change(log).await?;
                Statement::new("DELETE FROM webhooks WHERE id = $1 RETURNING 1").text(id)
            }
            Self::Rotate {
                id,
                secret,
                old_until_ms,
            } => Statement::new(
                "UPDATE webhooks SET old_secret = secret, old_until_ms = $3, secret = $2 WHERE id = $1 RETURNING 1",
            )
            .text(id)
            .bind(secret.bytes().to_vec(), Type::BYTEA)
            .int(*old_until_ms),
            Self::Test { id, event } => Statement::new(
                "INSERT INTO deliveries (event, webhook, state) SELECT $2, id, 'pending' FROM webhooks \
                 WHERE id = $1 AND url IS NOT NULL AND disabled_at_ms IS NULL RETURNING 1",
            )
            .text(id)
            .text(event),
            Self::Redeliver { number } => Statement::new(
                "UPDATE deliveries SET state = 'pending', due_ms = 0, attempts = 0, token = NULL \
                 WHERE number = $1 AND state IN ('delivered', 'failed') RETURNING 1",
            )
            .int(*number),
        };
        Ok(!batch.change(change).await?.is_empty())
    }
}

/// Adds a webhook, unless it is a second one for callbacks in its project.
pub(super) fn add(webhook: &Webhook) -> Statement {
    let (old, until_ms) = webhook.old_secret.clone().unzip();
    let add = Statement::new(
        "INSERT INTO webhooks (id, project, url, secret, old_secret, old_until_ms, created_at_ms, disabled_at_ms) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (project) WHERE url IS NULL DO NOTHING RETURNING 1",
    );
    add.text(&webhook.id)
        .text(&webhook.project)
        .bind(webhook.url.clone(), Type::TEXT)
        .bind(webhook.secret.bytes().to_vec(), Type::BYTEA)
        .bind(old.map(|secret| secret.bytes().to_vec()), Type::BYTEA)
        .bind(until_ms.map(int), Type::INT8)
        .int(webhook.created_at_ms)
        .bind(webhook.disabled_at_ms.map(int), Type::INT8)
}

/// Asks for all webhooks, in the order of their creation; for [`read`].
pub(super) fn ask_webhooks() -> Statement {
    Statement::new(format!(
        "SELECT {WEBHOOK} FROM webhooks w ORDER BY w.created_at_ms, w.id"
    ))
}

fn secret(row: &Row, at: usize) -> Done<Option<WebhookSecret>> {
    let bytes: Option<&[u8]> = row.try_get(at)?;
    let damaged = |_| corrupt("a webhook's secret has the wrong length".to_owned());
    let secret = |bytes: &[u8]| bytes.try_into().map(WebhookSecret::new).map_err(damaged);
    bytes.map(secret).transpose()
}

/// A time or another number, if it is there.
pub(super) fn time(row: &Row, at: usize) -> Done<Option<UnixMs>> {
    let time: Option<i64> = row.try_get(at)?;
    Ok(time.map(i64::unsigned_abs))
}

/// Reads a row that begins with [`WEBHOOK`].
pub(super) fn read(row: &Row) -> Done<Webhook> {
    Ok(Webhook {
        id: row.try_get(0)?,
        project: row.try_get(1)?,
        url: row.try_get(2)?,
        secret: secret(row, 3)?.ok_or_else(|| corrupt("a webhook has no secret".to_owned()))?,
        old_secret: secret(row, 4)?.zip(time(row, 5)?),
        created_at_ms: time(row, 6)?.unwrap_or(0),
        disabled_at_ms: time(row, 7)?,
        dropped: time(row, 8)?.unwrap_or(0),
    })
}

/// Asks for the newest deliveries to a webhook; for [`read_delivery`].
pub(super) fn ask_deliveries(webhook: &str, count: usize) -> Statement {
    let ask = "SELECT number, event, task, url, state, attempts, due_ms, tried_at_ms, status, error \
               FROM deliveries WHERE webhook = $1 ORDER BY number DESC LIMIT $2";
    Statement::new(ask).text(webhook).int(count as u64)
}

/// Reads a delivery of the log.
pub(super) fn read_delivery(row: &Row) -> Done<Delivery> {
    let state: &str = row.try_get(4)?;
    let status: Option<i64> = row.try_get(8)?;
    let error: Option<String> = row.try_get(9)?;
    let status = status.and_then(|status| u16::try_from(status).ok());
    let answer = status.ok_or_else(|| error.unwrap_or_default());
    Ok(Delivery {
        number: time(row, 0)?.unwrap_or(0),
        event: row.try_get(1)?,
        task: row.try_get(2)?,
        url: row.try_get(3)?,
        state: DeliveryState::named(state)
            .ok_or_else(|| corrupt(format!("unknown state {state:?} of a delivery")))?,
        attempts: attempts(row, 5)?,
        due_ms: time(row, 6)?.unwrap_or(0),
        last: time(row, 7)?.map(|at_ms| Attempted { at_ms, answer }),
    })
}

/// A count of attempts.
pub(super) fn attempts(row: &Row, at: usize) -> Done<u32> {
    let attempts: i64 = row.try_get(at)?;
    Ok(u32::try_from(attempts).unwrap_or(u32::MAX))
}
