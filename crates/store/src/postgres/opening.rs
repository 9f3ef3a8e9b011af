//! Opening a store: draws the numbers of this process, reads what the store contains, and finds server
//! settings with which a power loss could take acknowledged tasks. It changes no setting.

use kinora_contract::Artifact;
use tokio_postgres::Client;

use super::address::ServerAddress;
use super::connect::ServerConnector;
use super::fault::{PostgresFault, PostgresResult, corrupt, is_transient, message_of};
use super::schema;
use super::session::{BEGIN, SYNCED, SqlStatement};
use crate::{HELD_RESULTS_MAX, OpenError, PostgresOptions, StoreContents};

/// The state of the store, and the numbers assigned to this process.
pub(super) struct OpenedStore {
    pub(super) identity: u64,
    pub(super) holds: StoreContents,
    /// Ids of the rows of its lanes.
    pub(super) lanes: Vec<u64>,
}

/// Attempts to open a store beside others that are opened at the same time.
const ATTEMPTS_MAX: usize = 5;

/// Draws, in one transaction, ids for the lanes and tokens.
pub(super) async fn register(
    client: &Client,
    lanes: u64,
    options: &PostgresOptions,
) -> PostgresResult<OpenedStore> {
    for _ in 1..ATTEMPTS_MAX {
        match try_register(client, lanes, options).await {
            Err(PostgresFault::Sql(error)) if is_transient(&error) => {
                SqlStatement::new("ROLLBACK").run(client).await?;
            }
            begun => return begun,
        }
    }
    try_register(client, lanes, options).await
}

async fn try_register(
    client: &Client,
    lanes: u64,
    options: &PostgresOptions,
) -> PostgresResult<OpenedStore> {
    // Jumping ahead by a random stride keeps the tokens of this opening apart from those of a copy of the
    // database that another service goes on with.
    SqlStatement::new(BEGIN).run(client).await?;
    SqlStatement::new(format!("SELECT {SYNCED}"))
        .run(client)
        .await?;
    let queue = "UPDATE queue SET token = token + $1 RETURNING identity";
    let queue = SqlStatement::new(queue)
        .int(options.token_stride)
        .run(client)
        .await?;
    let identity = queue
        .first()
        .map(|row| row.try_get::<_, i64>(0))
        .transpose()?;
    let identity = identity.ok_or_else(|| corrupt("the row of the queue is missing".to_owned()))?;
    let ids = "SELECT nextval('lane_ids') FROM generate_series(1, $1)";
    let ids = SqlStatement::new(ids).int(lanes).run(client).await?;
    SqlStatement::new("COMMIT").run(client).await?;
    let lanes = ids.iter().map(|row| row.try_get::<_, i64>(0));
    Ok(OpenedStore {
        identity: identity.unsigned_abs(),
        holds: holds(client).await?,
        lanes: lanes
            .map(|id| Ok(id?.unsigned_abs()))
            .collect::<PostgresResult<_>>()?,
    })
}

async fn holds(client: &Client) -> PostgresResult<StoreContents> {
    let tasks = SqlStatement::new("SELECT 1 FROM tasks LIMIT 1")
        .run(client)
        .await?;
    let results = "SELECT artifact FROM tasks WHERE phase = 'completed' AND expires_at_ms IS NOT NULL \
                   ORDER BY expires_at_ms DESC LIMIT $1";
    let results = SqlStatement::new(results)
        .int(HELD_RESULTS_MAX.into())
        .run(client)
        .await?;
    let mut keys = Vec::new();
    for row in &results {
        let text: Option<&str> = row.try_get(0)?;
        // An unreadable result is reported when its task is read; opening must not fail because of it.
        let artifact = text.and_then(|text| serde_json::from_str::<Artifact>(text).ok());
        keys.extend(artifact.map(|artifact| artifact.video.key));
    }
    Ok(StoreContents {
        tasks: !tasks.is_empty(),
        results: keys,
    })
}

/// Lists server settings with which a power loss may take acknowledged tasks, as `name = off`.
pub(super) async fn unsafe_settings(client: &Client) -> Result<Vec<String>, OpenError> {
    let ask = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name";
    let found = SqlStatement::new(ask).run(client).await;
    let found = found.map_err(schema::unavailable)?;
    found
        .iter()
        .map(|row| Ok(format!("{} = off", row.try_get::<_, &str>(0)?)))
        .collect::<Result<_, tokio_postgres::Error>>()
        .map_err(|error| OpenError::Unavailable(message_of(&error).into()))
}

/// As [`unsafe_settings`], for the server of the database at `url`.
pub(crate) async fn unsafe_settings_of(url: &str) -> Result<Vec<String>, OpenError> {
    let connector = ServerConnector::new(ServerAddress::parse(url, &PostgresOptions::default())?)?;
    unsafe_settings(&connector.connect().await?).await
}
