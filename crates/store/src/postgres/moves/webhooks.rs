//! Moving webhooks and deliveries.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use crate::postgres::fault::{Done, corrupt};
use crate::postgres::statement::Statement;
use crate::postgres::webhooks;
use crate::{DeliveryState, MovedDelivery, MovedStore};

/// Pending deliveries, without their leases, oldest first.
pub(super) async fn deliveries(client: &Client) -> Done<Vec<MovedDelivery>> {
    let ask = Statement::new(
        "SELECT event, task, webhook, url, state, attempts, CASE WHEN token IS NULL THEN due_ms ELSE 0 END \
         FROM deliveries WHERE state IN ('waiting', 'pending') ORDER BY number",
    );
    ask.run(client).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Done<MovedDelivery> {
    let state: &str = row.try_get(4)?;
    let unknown = || corrupt(format!("unknown state {state:?} of a delivery"));
    Ok(MovedDelivery {
        event: row.try_get(0)?,
        task: row.try_get(1)?,
        webhook: row.try_get(2)?,
        url: row.try_get(3)?,
        state: DeliveryState::named(state).ok_or_else(unknown)?,
        attempts: webhooks::attempts(row, 5)?,
        due_ms: row.try_get::<_, i64>(6)?.unsigned_abs(),
    })
}

/// Replaces all webhooks and deliveries with those of `store`.
pub(super) fn write(store: &MovedStore) -> Vec<Statement> {
    let remove = ["DELETE FROM deliveries", "DELETE FROM webhooks"];
    let mut statements: Vec<Statement> = remove.into_iter().map(Statement::new).collect();
    let webhooks = store.webhooks.iter();
    statements.extend(webhooks.map(|webhook| webhooks::add(&webhook.into())));
    statements.extend(store.deliveries.iter().map(add));
    statements
}

fn add(one: &MovedDelivery) -> Statement {
    let add = "INSERT INTO deliveries (event, task, webhook, url, state, attempts, due_ms) \
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    Statement::new(add)
        .text(&one.event)
        .bind(one.task.clone(), Type::TEXT)
        .text(&one.webhook)
        .bind(one.url.clone(), Type::TEXT)
        .text(one.state.name())
        .int(one.attempts.into())
        .int(one.due_ms)
}
