//! Opening a store: its requirements, its contents, and the identity of this process.

use std::collections::BTreeMap;

use kinora_contract::Artifact;
use tokio_postgres::{Client, Row};

use super::durability::SYNCED;
use super::fault::{Done, Fault, corrupt, is_passing};
use super::statement::{BEGIN, Statement};
use crate::gap::Gaps;
use crate::{Gap, HELD_RESULTS_MAX, Holds, PostgresOptions};

/// The state of the store, and the numbers assigned to this process.
pub(super) struct Opened {
    pub(super) identity: u64,
    pub(super) holds: Holds,
    /// Ids of the rows of its lanes.
    pub(super) lanes: Vec<u64>,
}

/// Attempts to open a store beside others that are opened at the same time.
const ATTEMPTS_MAX: usize = 5;

/// Draws, in one transaction, ids for the lanes and tokens, and begins the gap that starts with an
/// opening.
pub(super) async fn begin(client: &Client, lanes: u64, options: &PostgresOptions) -> Done<Opened> {
    for _ in 1..ATTEMPTS_MAX {
        match try_begin(client, lanes, options).await {
            Err(Fault::Sql(error)) if is_passing(&error) => {
                Statement::new("ROLLBACK").run(client).await?;
            }
            begun => return begun,
        }
    }
    try_begin(client, lanes, options).await
}

async fn try_begin(client: &Client, lanes: u64, options: &PostgresOptions) -> Done<Opened> {
    Statement::new(BEGIN).run(client).await?;
    Statement::new(format!("SELECT {SYNCED}"))
        .run(client)
        .await?;
    let queue = "UPDATE queue SET token = token + $1 RETURNING identity";
    let queue = Statement::new(queue)
        .int(options.token_stride)
        .run(client)
        .await?;
    let identity = queue
        .first()
        .map(|row| row.try_get::<_, i64>(0))
        .transpose()?;
    let identity = identity.ok_or_else(|| corrupt("the row of the queue is missing".to_owned()))?;
    open_gap(client).await?;
    let ids = "SELECT nextval('lane_ids') FROM generate_series(1, $1)";
    let ids = Statement::new(ids).int(lanes).run(client).await?;
    Statement::new("COMMIT").run(client).await?;
    let number = |row: &Row| Ok(row.try_get::<_, i64>(0)?.unsigned_abs());
    Ok(Opened {
        identity: identity.unsigned_abs(),
        holds: holds(client).await?,
        lanes: ids.iter().map(number).collect::<Done<_>>()?,
    })
}

/// Begins the gap since this opening, unless nothing was accepted since the last one.
async fn open_gap(client: &Client) -> Done<()> {
    let newest_ms = newest_ms(client).await?;
    let (mut earlier, current) = gaps(client).await?;
    let is_open = |gap: &Gap| gap.before_ms == Gap::OPEN_END && gap.after_ms == newest_ms;
    if current.as_ref().is_some_and(is_open) {
        return Ok(());
    }
    earlier.extend(current.filter(|gap| gap.before_ms != Gap::OPEN_END));
    let opened = Gaps::opened(newest_ms, earlier);
    Statement::new("DELETE FROM gaps").run(client).await?;
    // Keyed by their beginnings, of which the last counts: a gap that began at the same task
    // continues.
    let rows: BTreeMap<u64, Gap> = opened
        .all()
        .into_iter()
        .map(|gap| (gap.after_ms, gap))
        .collect();
    for gap in rows.into_values() {
        let current = opened.current() == Some(gap);
        let add = "INSERT INTO gaps (after_ms, before_ms, current) VALUES ($1, $2, $3)";
        let add = Statement::new(add).int(gap.after_ms).int(gap.before_ms);
        let add = add.bind(current, tokio_postgres::types::Type::BOOL);
        add.run(client).await?;
    }
    Ok(())
}

/// Creation time of the newest task ever accepted, from the last tasks of all projects in the order
/// of acceptance.
pub(super) async fn newest_ms(client: &Client) -> Done<u64> {
    let last = "SELECT newest_ms FROM projects WHERE newest_seq > 0 ORDER BY newest_seq";
    let mut gaps = Gaps::opened(0, Vec::new());
    for row in Statement::new(last).run(client).await? {
        gaps.accept(row.try_get::<_, i64>(0)?.unsigned_abs());
    }
    Ok(gaps.newest_ms())
}

/// Gaps of earlier openings, oldest first, and the one since the last.
async fn gaps(client: &Client) -> Done<(Vec<Gap>, Option<Gap>)> {
    let ask = Statement::new("SELECT after_ms, before_ms, current FROM gaps ORDER BY after_ms");
    let (mut earlier, mut current) = (Vec::new(), None);
    for row in ask.run(client).await? {
        let gap = read_gap(&row)?;
        match row.try_get(2)? {
            true => current = Some(gap),
            false => earlier.push(gap),
        }
    }
    Ok((earlier, current))
}

/// Reads beginning and end.
pub(super) fn read_gap(row: &Row) -> Done<Gap> {
    Ok(Gap {
        after_ms: row.try_get::<_, i64>(0)?.unsigned_abs(),
        before_ms: row.try_get::<_, i64>(1)?.unsigned_abs(),
    })
}

async fn holds(client: &Client) -> Done<Holds> {
    let tasks = Statement::new("SELECT 1 FROM tasks LIMIT 1")
        .run(client)
        .await?;
    let results = "SELECT artifact FROM tasks WHERE phase = 'completed' AND expires_at_ms IS NOT NULL \
                   ORDER BY expires_at_ms DESC LIMIT $1";
    let results = Statement::new(results)
        .int(HELD_RESULTS_MAX.into())
        .run(client)
        .await?;
    let mut keys = Vec::new();
    for row in &results {
        let text: Option<&str> = row.try_get(0)?;
        // Reading the task reports an unreadable one.
        let artifact = text.and_then(|text| serde_json::from_str::<Artifact>(text).ok());
        keys.extend(artifact.map(|artifact| artifact.video.key));
    }
    Ok(Holds {
        tasks: !tasks.is_empty(),
        results: keys,
    })
}
