//! Listeners for monitors: health of a worker, metrics. A few clients, in the clear, without keys.

use std::time::Duration;

use kinora_api::ListenSettings;
use tokio::net::TcpListener;

use crate::config::ListenAddress;
use crate::failure::Failure;
use crate::system;

/// Connections of such a listener.
const CONNECTIONS_MAX: usize = 64;
/// How long it takes for a request's headers, and for its last answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// How it listens.
pub(crate) fn settings() -> Result<ListenSettings, Failure> {
    Ok(ListenSettings {
        connections_max: CONNECTIONS_MAX,
        header_timeout: PATIENCE,
        drain_limit: PATIENCE,
        request_id_prefix: system::random()?,
    })
}

/// Listens at `address`.
pub(crate) async fn bind(address: &ListenAddress) -> Result<TcpListener, Failure> {
    let resolved = address.resolve()?;
    let bound = TcpListener::bind(resolved).await;
    bound.map_err(|error| Failure::because(format!("{address} cannot be listened on"), error))
}
