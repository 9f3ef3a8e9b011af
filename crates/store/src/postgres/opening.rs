//! Opening a store: its requirements, its contents, and the identity of this process.

use kinora_contract::Artifact;
use tokio_postgres::{Client, Row};

use super::durability::SYNCED;
use super::fault::{Done, Fault, corrupt, is_passing};
use super::statement::{BEGIN, Statement};
use crate::{HELD_RESULTS_MAX, Holds, PostgresOptions};

/// The state of the store, and the numbers assigned to this process.
pub(super) struct Opened {
    pub(super) identity: u64,
    pub(super) holds: Holds,
    /// Ids of the rows of its lanes.
    pub(super) lanes: Vec<u64>,
}

/// Attempts to open a store beside others that are opened at the same time.
const ATTEMPTS_MAX: usize = 5;

/// Draws, in one transaction, ids for the lanes and tokens.
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
