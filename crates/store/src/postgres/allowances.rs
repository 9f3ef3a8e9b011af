//! Shared allowances: one row for each key, a bucket that refills steadily. A single statement
//! outside every lane takes from it; the table is unlogged, so no caller waits for a sync.

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PostgresStore;
use super::fault::{PostgresResult, corrupt};
use super::session::SqlStatement;
use crate::sql::to_sql_int;
use crate::{AllowanceGrant, AllowanceStore, StoreError, TimeSource};

/// Units of a bucket per request. A limit of `n` requests per minute then adds `n` units per
/// millisecond, so all arithmetic is in whole numbers: 100 per minute fill 1.67 requests a second, which
/// are 100 units per millisecond.
const REQUEST: u64 = 60_000;

/// Takes up to `$3` requests from the bucket of the key `$1` with a capacity of `$2`, at the time
/// `$4` or now. A clock behind the row's time pauses the refill; a clock more than a minute behind
/// was set back, and restarts it.
const TAKE: &str = "\
    INSERT INTO allowances AS a (key, level, granted, at_ms) \
    VALUES ($1, ($2 - least($2, $3)) * 60000, least($2, $3), \
        coalesce($4, (extract(epoch FROM statement_timestamp()) * 1000)::bigint)) \
    ON CONFLICT (key) DO UPDATE SET (level, granted, at_ms) = ( \
        SELECT f.level - g.granted * 60000, g.granted, f.at_ms FROM ( \
            SELECT least($2 * 60000, a.level + least(greatest(excluded.at_ms - a.at_ms, 0), 60000) * $2) AS level, \
                CASE WHEN excluded.at_ms < a.at_ms - 60000 THEN excluded.at_ms \
                ELSE greatest(excluded.at_ms, a.at_ms) END AS at_ms \
        ) f, LATERAL (SELECT least($3, f.level / 60000) AS granted) g) \
    RETURNING granted, level";

/// The statement that takes up to `wanted` requests, at `now_ms` if the server's clock does not decide.
fn take_statement(key: &str, per_minute: u32, wanted: u32, now_ms: Option<u64>) -> SqlStatement {
    let ask = SqlStatement::new(TAKE)
        .text(key)
        .int(per_minute.into())
        .int(wanted.into());
    ask.bind(now_ms.map(to_sql_int), Type::INT8)
}

/// Reads the row that the statement returns.
fn read_grant(rows: &[Row], per_minute: u32) -> PostgresResult<AllowanceGrant> {
    let row = rows.first();
    let row = row.ok_or_else(|| corrupt("an allowance gives no answer".to_owned()))?;
    let granted = row.try_get::<_, i64>(0)?.unsigned_abs();
    let level = row.try_get::<_, i64>(1)?.unsigned_abs();
    Ok(AllowanceGrant {
        granted: u32::try_from(granted).unwrap_or(u32::MAX),
        left: u32::try_from(level / REQUEST).unwrap_or(u32::MAX),
        next_ms: REQUEST
            .saturating_sub(level)
            .div_ceil(per_minute.max(1).into()),
    })
}

#[async_trait]
impl AllowanceStore for PostgresStore {
    async fn acquire(
        &self,
        key: &str,
        per_minute: u32,
        wanted: u32,
    ) -> Result<AllowanceGrant, StoreError> {
        let by_clock = self.shared.options.time == TimeSource::Clock;
        let now_ms = by_clock.then(|| self.shared.clock.now_ms());
        let ask = take_statement(key, per_minute, wanted, now_ms);
        Ok(read_grant(&self.reader.query(ask).await?, per_minute)?)
    }
}
