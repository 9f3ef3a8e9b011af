//! Settings of the server on which a synced commit depends. Those of a transaction the store sets itself; those of the
//! whole server are an operator's.

use tokio_postgres::Client;

use super::address::Address;
use super::connect::Connector;
use super::fault::told;
use super::schema;
use super::statement::Statement;
use crate::{OpenError, PostgresOptions};

/// Makes the commit of a transaction wait for its sync where the role's or the database's default does not. A stronger or
/// deliberately weaker default (`remote_apply`, `local`) stays.
pub(super) const SYNCED: &str = "set_config('synchronous_commit', \
                                 replace(current_setting('synchronous_commit'), 'off', 'on'), true)";

/// The server's settings with which a power loss may take acknowledged tasks, as `name = off`.
pub(super) async fn unsafe_settings(client: &Client) -> Result<Vec<String>, OpenError> {
    let ask = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name";
    let found = Statement::new(ask).run(client).await;
    let found = found.map_err(schema::unavailable)?;
    let name = |row: &tokio_postgres::Row| Ok(format!("{} = off", row.try_get::<_, &str>(0)?));
    found
        .iter()
        .map(name)
        .collect::<Result<_, tokio_postgres::Error>>()
        .map_err(|error| OpenError::Unavailable(told(&error).into()))
}

/// The same of the server with the database at `url`.
pub(crate) async fn unsafe_settings_of(url: &str) -> Result<Vec<String>, OpenError> {
    let connector = Connector::of(Address::parse(url, &PostgresOptions::default())?)?;
    unsafe_settings(&connector.connect().await?).await
}
