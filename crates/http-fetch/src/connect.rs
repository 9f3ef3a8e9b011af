//! Connects to a permitted address, over TCP and TLS. Nothing else is dialled: this module passes
//! no name to the operating system and reads no proxy from the environment.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kinora_http::{RootsError, TrustedRoots};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::address::reached_address;
use crate::error::{FetchCause, FetchError, is_shortage};
use crate::patience::FetchTimer;
use crate::policy::AddressPolicy;
use crate::target::FetchTarget;
use crate::turns::{HostKey, HostTurn, HostTurns};

/// A plain or encrypted connection.
pub(crate) type PeerStream = Box<dyn DuplexStream>;

pub(crate) trait DuplexStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> DuplexStream for T {}

/// TLS 1.2 and 1.3 with the public roots and `extra_roots_pem`; sessions are never resumed.
///
/// # Errors
/// If the PEM does not contain at least one certificate.
pub(crate) fn tls(extra_roots_pem: Option<&[u8]>) -> Result<TlsConnector, RootsError> {
    let roots = TrustedRoots::public().with_pem(extra_roots_pem)?;
    let mut config = roots.client_config()?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session sends no certificate, so its host would go unchecked.
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A connection that counts towards its host's limit.
pub(crate) struct CountedConnection {
    pub(crate) stream: PeerStream,
    /// By address, and by name if there is one. Dropped after the stream, so the next connection
    /// begins only once this one is closed.
    pub(crate) turns: Vec<HostTurn>,
}

/// The inputs of a connection attempt.
pub(crate) struct PeerConnector<'a> {
    pub(crate) tls: &'a TlsConnector,
    pub(crate) policy: &'a AddressPolicy,
    pub(crate) turns: &'a HostTurns,
    pub(crate) project: &'a str,
}

impl PeerConnector<'_> {
    /// Connects to the first address that answers within `limit`, not counting the waits for turns.
    /// Each attempt gets an equal share of the time left, so one filtered address cannot use up all
    /// of it.
    ///
    /// # Errors
    /// The cause of the last attempt; `Later` without a turn or a descriptor; `Forbidden` for a
    /// connection that ended at this machine.
    pub(crate) async fn connect(
        &self,
        target: &FetchTarget,
        limit: Duration,
        patience: &mut FetchTimer,
    ) -> Result<CountedConnection, FetchError> {
        let name = target.tls_name().map_err(FetchError::Unreachable)?;
        let mut attempts_left = u32::try_from(target.addresses.len()).unwrap_or(u32::MAX);
        let mut left = limit;
        let mut last = FetchCause::NoAddress(target.url.host_str().unwrap_or_default().to_owned());
        for &address in &target.addresses {
            let key = HostKey::Address(reached_address(address.ip()));
            let turn = patience.turn(self.turns, key, self.project).await?;
            let begun = patience.stopwatch();
            let share = left / attempts_left.max(1);
            let attempt = self.attempt(address, name.clone());
            last = match timeout(share, attempt).await {
                Ok(Ok(stream)) => {
                    let turns = vec![turn];
                    return Ok(CountedConnection { stream, turns });
                }
                Ok(Err(FetchError::Unreachable(cause))) => cause,
                Ok(Err(error)) => return Err(error),
                Err(_) => FetchCause::ConnectTimeout(address.to_string()),
            };
            left = left.saturating_sub(begun.elapsed());
            attempts_left = attempts_left.saturating_sub(1);
        }
        Err(FetchError::Unreachable(last))
    }

    async fn attempt(
        &self,
        address: SocketAddr,
        name: Option<ServerName<'static>>,
    ) -> Result<PeerStream, FetchError> {
        let connected = TcpStream::connect(address).await;
        let stream = connected.map_err(|source| {
            if is_shortage(&source) {
                FetchError::Later(FetchCause::Connect { address, source })
            } else {
                FetchError::Unreachable(FetchCause::Connect { address, source })
            }
        })?;
        // A connection from an address to itself never left this machine: the address may be routed
        // here although no interface has it.
        let local = stream.local_addr().map(|local| local.ip().to_canonical());
        let peer = address.ip().to_canonical();
        if local.is_ok_and(|local| local == peer) && !self.policy.allows(peer, address.port()) {
            return Err(FetchError::Forbidden(FetchCause::Itself(address)));
        }
        let Some(name) = name else {
            return Ok(Box::new(stream));
        };
        match self.tls.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(source) => Err(FetchError::Unreachable(FetchCause::Tls { address, source })),
        }
    }
}
