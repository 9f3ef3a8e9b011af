//! Admission of connections: each takes a place among all and among those of its address, or is
//! refused with a reason. When the service is full, the next connection waits a short time for a
//! place; once it has been full for that long, connections are refused immediately until one
//! closes.

#![expect(
    clippy::disallowed_methods,
    reason = "deadlines for the runtime's timers, which know no other clock (docs/decisions.md)"
)]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{ErrorCode, Refusal};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::addresses::{AddressPermit, Addresses};
use super::plain::{self, Lingering};
use super::{Guards, ListenSettings};
use crate::proxies::TrustedProxies;
use crate::request_id::RequestIds;

/// How long the next connection waits for a place.
const FULL_WAIT: Duration = Duration::from_secs(5);
/// Pause between accept attempts while the system has no resources for connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How soon a refused client should retry: short, since places free up all the time.
pub(super) const RETRY_SECONDS: u64 = 5;

pub(super) const ADDRESS_FULL: &str =
    "Too many open connections from this address; reuse or close some.";
const ALL_FULL: &str = "The service has too many open connections; try again soon.";

/// Admits or refuses connections.
pub(super) struct Door {
    places: Arc<Semaphore>,
    addresses: Addresses,
    proxies: TrustedProxies,
    full_since: Option<Instant>,
    /// Whether the last accept failed.
    failing: bool,
    lingering: Lingering,
    ids: RequestIds,
    /// Under TLS nothing can be sent before a handshake: refused connections are just closed.
    mute: bool,
}

/// A connection's places; dropping this frees them.
#[derive(Debug)]
pub(super) struct Entry {
    _place: OwnedSemaphorePermit,
    _of_address: Option<AddressPermit>,
}

/// Why a connection is refused.
#[derive(Debug)]
enum Full {
    Address,
    All,
}

impl Door {
    pub(super) fn new(
        settings: &ListenSettings,
        guards: &Guards,
        addresses: Addresses,
        ids: RequestIds,
    ) -> Self {
        Self {
            places: Arc::new(Semaphore::new(settings.connections_max)),
            addresses,
            proxies: guards.trusted_proxies.clone(),
            full_since: None,
            failing: false,
            lingering: Lingering::default(),
            ids,
            mute: guards.tls.is_some(),
        }
    }

    /// The next admitted connection; `None` if an attempt failed or was refused.
    pub(super) async fn next(
        &mut self,
        listener: &TcpListener,
    ) -> Option<(TcpStream, IpAddr, Entry)> {
        let (stream, peer) = match listener.accept().await {
            Ok((stream, peer)) => (stream, peer.ip()),
            Err(error) => {
                self.accept_failed(&error).await;
                return None;
            }
        };
        if std::mem::take(&mut self.failing) {
            tracing::info!("accepting connections again");
        }
        // Answers are mostly small; waiting to fill a packet would only slow down polls.
        let _ = stream.set_nodelay(true);
        match self.enter(peer).await {
            Ok(entry) => Some((stream, peer, entry)),
            Err(full) => {
                tracing::debug!(client = %peer, ?full, "connection refused");
                self.refuse(stream, &full);
                None
            }
        }
    }

    /// Usually out of descriptors or memory. The connection stays in the backlog, and retrying at
    /// once would spin. Logged once per outage.
    async fn accept_failed(&mut self, error: &std::io::Error) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(%error, "accepting connections failed; retrying");
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    async fn enter(&mut self, peer: IpAddr) -> Result<Entry, Full> {
        // A proxy's connections carry many clients.
        let of_address = if self.proxies.trusts(peer) {
            None
        } else {
            Some(self.addresses.take(peer).ok_or(Full::Address)?)
        };
        if self.places.available_permits() > 0 {
            self.full_since = None;
        }
        let since = *self.full_since.get_or_insert_with(Instant::now);
        let place = timeout_at(since + FULL_WAIT, self.places.clone().acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(Full::All);
        };
        self.full_since = None;
        Ok(Entry {
            _place: place,
            _of_address: of_address,
        })
    }

    fn refuse(&self, stream: TcpStream, full: &Full) {
        if self.mute {
            return;
        }
        let (status, code, message) = match full {
            Full::Address => (
                "429 Too Many Requests",
                ErrorCode::RateLimitExceeded,
                ADDRESS_FULL,
            ),
            Full::All => ("503 Service Unavailable", ErrorCode::Overloaded, ALL_FULL),
        };
        let refusal = Refusal::new(code, message);
        let answer = plain::answer(status, &refusal, self.ids.next(), Some(RETRY_SECONDS));
        self.lingering.refuse(stream, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(connections_max: usize, of_address: usize) -> Door {
        let settings = ListenSettings {
            connections_max,
            header_timeout: Duration::from_secs(1),
            drain_limit: Duration::from_secs(1),
            request_id_prefix: [0; 6],
            clock: Arc::new(kinora_contract::ManualClock::at(0)),
        };
        let guards = Guards::default();
        let addresses = Addresses::new(of_address, 100);
        Door::new(&settings, &guards, addresses, RequestIds::new([0; 6]))
    }

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn p08_a_full_service_lets_one_wait_and_then_refuses_at_once() {
        let mut door = door(1, 10);
        let first = door.enter(PEER).await.unwrap();
        let begun = Instant::now();
        assert!(matches!(door.enter(PEER).await, Err(Full::All)));
        assert_eq!(begun.elapsed(), FULL_WAIT);
        for _ in 0..100 {
            assert!(matches!(door.enter(PEER).await, Err(Full::All)));
        }
        assert_eq!(begun.elapsed(), FULL_WAIT, "nobody waits behind the first");
        drop(first);
        let second = door.enter(PEER).await.unwrap();
        let (third, ()) = tokio::join!(door.enter(PEER), async move {
            tokio::time::sleep(FULL_WAIT / 2).await;
            drop(second);
        });
        assert!(third.is_ok(), "who waits gets the place that becomes free");
    }

    #[tokio::test(start_paused = true)]
    async fn p08_an_address_that_is_full_takes_no_place_of_others() {
        let mut door = door(2, 1);
        let _held = door.enter(PEER).await.unwrap();
        assert!(matches!(door.enter(PEER).await, Err(Full::Address)));
        let other = "192.0.2.1".parse().unwrap();
        assert!(door.enter(other).await.is_ok());
    }
}
