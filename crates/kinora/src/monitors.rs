//! Listeners for monitoring: health of a worker, metrics. For a few clients, without TLS or keys.

use std::sync::Arc;
use std::time::Duration;

use kinora_api::ListenSettings;
use tokio::net::TcpListener;

use crate::config::ListenAddress;
use crate::failure::Failure;
use crate::system::{self, SystemClock};

/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 64;
/// Time limit for a request's headers, and for the last answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// The settings of such a listener.
pub(crate) fn settings() -> Result<ListenSettings, Failure> {
    Ok(ListenSettings {
        connections_max: CONNECTIONS_MAX,
        header_timeout: PATIENCE,
        drain_limit: PATIENCE,
        request_id_prefix: system::random()?,
        clock: Arc::new(SystemClock),
    })
}

/// Binds `address`.
pub(crate) async fn bind(address: &ListenAddress) -> Result<TcpListener, Failure> {
    let resolved = address.resolve()?;
    let bound = TcpListener::bind(resolved).await;
    bound.map_err(|error| Failure::because(format!("Cannot listen on {address}"), error))
}
