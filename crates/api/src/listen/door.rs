//! The door: who connects gets a place among all and among those of its address, or is told why
//! not. While the service is full, the next one waits a little for a place; once it has been full
//! for that long, everybody is refused at once until a place is free.

#![expect(
    clippy::disallowed_methods,
    reason = "limits of waiting for a client, by the runtime's own timers"
)]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{ErrorCode, Refusal};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::places::{AddressPlace, Addresses};
use super::plain::{self, Partings};
use super::{Guards, ListenSettings};
use crate::proxies::TrustedProxies;
use crate::request_id::RequestIds;

/// How long a full service lets the next connection wait.
const FULL_WAIT: Duration = Duration::from_secs(5);
/// Between two attempts to accept a connection when the system has no more for it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// When a refused client should try again: short, since places are given back all the time.
pub(super) const RETRY_SECONDS: u64 = 5;

pub(super) const ADDRESS_FULL: &str =
    "Too many open connections from this address; reuse or close some.";
const ALL_FULL: &str = "The service has too many open connections; try again soon.";

/// Lets connections in.
pub(super) struct Door {
    places: Arc<Semaphore>,
    addresses: Addresses,
    proxies: TrustedProxies,
    full_since: Option<Instant>,
    /// The last connection could not be accepted.
    failing: bool,
    partings: Partings,
    ids: RequestIds,
    /// Under TLS nothing can be said before a handshake: who is refused is just closed.
    mute: bool,
}

/// A connection's places; given back when dropped.
#[derive(Debug)]
pub(super) struct Entry {
    _place: OwnedSemaphorePermit,
    _of_address: Option<AddressPlace>,
}

/// Why somebody is not let in.
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
            partings: Partings::default(),
            ids,
            mute: guards.tls.is_some(),
        }
    }

    /// The next connection that is let in; `None` when one came to nothing.
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
            tracing::info!("connections are accepted again");
        }
        // Small answers are the rule; waiting to fill a packet would only slow polls.
        let _ = stream.set_nodelay(true);
        match self.enter(peer).await {
            Ok(entry) => Some((stream, peer, entry)),
            Err(full) => {
                tracing::debug!(client = %peer, ?full, "a connection was refused");
                self.refuse(stream, &full);
                None
            }
        }
    }

    /// Out of descriptors or memory, mostly: the connection stays in line, and asking again at once
    /// would only spin. Logged once until it is over.
    async fn accept_failed(&mut self, error: &std::io::Error) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(%error, "connections cannot be accepted; trying again");
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    async fn enter(&mut self, peer: IpAddr) -> Result<Entry, Full> {
        // A proxy's connections are many clients'.
        let of_address = match self.proxies.trusts(peer) {
            true => None,
            false => Some(self.addresses.take(peer).ok_or(Full::Address)?),
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
        self.partings.refuse(stream, answer);
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
