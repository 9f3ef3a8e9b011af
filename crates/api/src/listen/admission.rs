//! Admission of connections. Each takes a place among all connections and among those of its
//! address, or is refused with a reason. When the service is full, the next connection waits a
//! short time for a place; once it has been full for that long, connections are refused immediately
//! until one closes.
//!
//! The holder of one IPv6 address has 2^64 of them, often a /56 and sometimes a /48, so these
//! networks are limited too, with more places.

#![expect(
    clippy::disallowed_methods,
    reason = "deadlines for the runtime's timers, which know no other clock (docs/decisions.md)"
)]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::{ErrorCode, RequestRefusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::{ListenOptions, ListenSettings};
use crate::memory::LimitReached;
use crate::request_id::RequestIds;
use crate::responses::raw_refusal;
use crate::trusted_proxies::TrustedProxies;

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
pub(super) struct ConnectionAdmission {
    places: Arc<Semaphore>,
    addresses: AddressLimits,
    proxies: TrustedProxies,
    full_since: Option<Instant>,
    /// Whether the last accept failed.
    failing: bool,
    /// Places for refused connections that are still being read from, so their clients receive the answer.
    lingering: Arc<Semaphore>,
    ids: RequestIds,
    /// Under TLS nothing can be sent before a handshake: refused connections are just closed.
    mute: bool,
}

/// A connection's places; dropping this frees them.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    _place: OwnedSemaphorePermit,
    _of_address: Option<AddressPermit>,
}

impl ConnectionAdmission {
    pub(super) fn new(
        settings: &ListenSettings,
        guards: &ListenOptions,
        addresses: AddressLimits,
        ids: RequestIds,
    ) -> Self {
        Self {
            places: Arc::new(Semaphore::new(settings.connections_max)),
            addresses,
            proxies: guards.trusted_proxies.clone(),
            full_since: None,
            failing: false,
            lingering: Arc::new(Semaphore::new(LINGERING_MAX)),
            ids,
            mute: guards.tls.is_some(),
        }
    }

    /// The next admitted connection; `None` if an attempt failed or was refused.
    pub(super) async fn next(
        &mut self,
        listener: &TcpListener,
    ) -> Option<(TcpStream, IpAddr, ConnectionPermit)> {
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
        match self.admit(peer).await {
            Ok(entry) => Some((stream, peer, entry)),
            Err(full) => {
                tracing::debug!(client = %peer, ?full, "connection refused");
                self.refuse(stream, full);
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

    async fn admit(&mut self, peer: IpAddr) -> Result<ConnectionPermit, LimitReached> {
        // A proxy's connections carry many clients.
        let of_address = if self.proxies.trusts(peer) {
            None
        } else {
            Some(self.addresses.acquire(peer).ok_or(LimitReached::Owner)?)
        };
        if self.places.available_permits() > 0 {
            self.full_since = None;
        }
        // The first connection that finds no place waits for up to 5 s; those behind it are still
        // in the backlog. If none becomes free, `full_since` stays, so the deadlines of later
        // connections have already passed: they are refused at once, and the backlog empties as
        // fast as it fills. A place that is free resets it.
        let since = *self.full_since.get_or_insert_with(Instant::now);
        let place = timeout_at(since + FULL_WAIT, self.places.clone().acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(LimitReached::All);
        };
        self.full_since = None;
        Ok(ConnectionPermit {
            _place: place,
            _of_address: of_address,
        })
    }

    fn refuse(&self, stream: TcpStream, full: LimitReached) {
        if self.mute {
            return;
        }
        let Ok(place) = self.lingering.clone().try_acquire_owned() else {
            return;
        };
        let (status, code, message) = match full {
            LimitReached::Owner => (
                "429 Too Many Requests",
                ErrorCode::RateLimitExceeded,
                ADDRESS_FULL,
            ),
            LimitReached::All => ("503 Service Unavailable", ErrorCode::Overloaded, ALL_FULL),
        };
        let refusal = RequestRefusal::new(code, message);
        let answer = raw_refusal(status, &refusal, self.ids.next(), Some(RETRY_SECONDS));
        tokio::spawn(async move {
            linger(stream, &answer).await;
            drop(place);
        });
    }
}

/// The IPv6 networks that count as one client: prefix length, and how many times the places of one
/// address it gets.
const NETWORKS: [(u8, usize); 3] = [(64, 1), (56, 2), (48, 4)];

/// Counts the open places of each address. Cheap to clone; clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct AddressLimits {
    open: Arc<Mutex<HashMap<ClientNetwork, usize>>>,
    max: usize,
    /// Maximum for any network, however many addresses it has.
    network_max: usize,
}

/// The unit of counting: an IPv4 address or an IPv6 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ClientNetwork {
    first: IpAddr,
    bits: u8,
}

/// One of an address's places.
#[derive(Debug)]
pub(crate) struct AddressPermit {
    of: AddressLimits,
    address: IpAddr,
}

impl AddressLimits {
    /// Allows `max` places per address, and never more than half of `all` places to anyone.
    pub(crate) fn new(max: usize, all: usize) -> Self {
        let half = (all / 2).max(1);
        Self {
            open: Arc::default(),
            max: max.min(half),
            network_max: half,
        }
    }

    /// Takes a place for `address`; `None` if it, or a network it belongs to, has reached its
    /// maximum.
    pub(crate) fn acquire(&self, address: IpAddr) -> Option<AddressPermit> {
        let mut open = self.lock();
        // All networks are checked before any is counted, so a refusal leaves no count behind.
        for (network, times) in networks_of(address) {
            let max = self.max.saturating_mul(times).min(self.network_max);
            if open.get(&network).is_some_and(|count| *count >= max) {
                return None;
            }
        }
        for (network, _) in networks_of(address) {
            *open.entry(network).or_default() += 1;
        }
        drop(open);
        Some(AddressPermit {
            of: self.clone(),
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientNetwork, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut open = self.of.lock();
        for (network, _) in networks_of(self.address) {
            if let Some(count) = open.get_mut(&network) {
                *count -= 1;
                if *count == 0 {
                    open.remove(&network);
                }
            }
        }
    }
}

/// The networks that a client at `address` counts in, and how many times an address's places each
/// gets.
fn networks_of(address: IpAddr) -> impl Iterator<Item = (ClientNetwork, usize)> {
    let address = address.to_canonical();
    let lengths = match address {
        IpAddr::V4(_) => &[(32, 1)][..],
        IpAddr::V6(_) => &NETWORKS[..],
    };
    lengths.iter().map(move |&(bits, times)| {
        let first = match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => {
                let host = 128 - u32::from(bits);
                Ipv6Addr::from_bits(address.to_bits() >> host << host).into()
            }
        };
        (ClientNetwork { first, bits }, times)
    })
}

/// Maximum number of refused connections that linger; further ones are closed at once.
const LINGERING_MAX: usize = 64;
/// Maximum time that one lingers.
const LINGER_LIMIT: Duration = Duration::from_secs(2);
/// Maximum bytes read from one meanwhile.
const LINGER_BYTES_MAX: u64 = 64 * 1024;

/// Sends `answer`, reads what the client sent, within bounds, and closes.
async fn linger(mut stream: TcpStream, answer: &[u8]) {
    // A client that is still sending when the socket closes gets a reset, and its kernel
    // may throw the answer away unread. So the answer is sent, the write side closed, and
    // the rest read for a while.
    let lingering = async {
        stream.write_all(answer).await?;
        stream.shutdown().await?;
        let mut rest = stream.take(LINGER_BYTES_MAX);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // Whether or not the client received the answer, the connection ends here.
    let _ = tokio::time::timeout(LINGER_LIMIT, lingering).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(connections_max: usize, of_address: usize) -> ConnectionAdmission {
        let settings = ListenSettings {
            connections_max,
            header_timeout: Duration::from_secs(1),
            drain_limit: Duration::from_secs(1),
            request_id_prefix: [0; 6],
            clock: Arc::new(kinora_contract::ManualClock::at(0)),
        };
        let guards = ListenOptions::default();
        let addresses = AddressLimits::new(of_address, 100);
        ConnectionAdmission::new(&settings, &guards, addresses, RequestIds::new([0; 6]))
    }

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn p08_a_full_service_lets_one_wait_and_then_refuses_at_once() {
        let mut door = door(1, 10);
        let first = door.admit(PEER).await.unwrap();
        let begun = Instant::now();
        assert!(matches!(door.admit(PEER).await, Err(LimitReached::All)));
        assert_eq!(begun.elapsed(), FULL_WAIT);
        for _ in 0..100 {
            assert!(matches!(door.admit(PEER).await, Err(LimitReached::All)));
        }
        assert_eq!(begun.elapsed(), FULL_WAIT, "nobody waits behind the first");
        drop(first);
        let second = door.admit(PEER).await.unwrap();
        let (third, ()) = tokio::join!(door.admit(PEER), async move {
            tokio::time::sleep(FULL_WAIT / 2).await;
            drop(second);
        });
        assert!(third.is_ok(), "who waits gets the place that becomes free");
    }

    #[tokio::test(start_paused = true)]
    async fn p08_an_address_that_is_full_takes_no_place_of_others() {
        let mut door = door(2, 1);
        let _held = door.admit(PEER).await.unwrap();
        assert!(matches!(door.admit(PEER).await, Err(LimitReached::Owner)));
        let other = "192.0.2.1".parse().unwrap();
        assert!(door.admit(other).await.is_ok());
    }
}

#[cfg(test)]
mod addresses_tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_its_places_and_gets_them_back() {
        let addresses = AddressLimits::new(2, 100);
        let one = address("192.0.2.1");
        let held = [addresses.acquire(one), addresses.acquire(one)];
        assert!(held.iter().all(Option::is_some));
        assert!(addresses.acquire(one).is_none());
        assert!(addresses.acquire(address("192.0.2.2")).is_some());
        drop(held);
        assert!(addresses.acquire(one).is_some());
        assert!(
            addresses.lock().is_empty(),
            "what has nothing open is forgotten"
        );
    }

    #[test]
    fn addresses_of_one_client_count_together() {
        let addresses = AddressLimits::new(1, 100);
        let _held = addresses.acquire(address("2001:db8:1:2::1"));
        assert!(addresses.acquire(address("2001:db8:1:2:ffff::9")).is_none());
        assert!(addresses.acquire(address("2001:db8:1:3::1")).is_some());
        let _held = addresses.acquire(address("192.0.2.1"));
        assert!(addresses.acquire(address("::ffff:192.0.2.1")).is_none());
    }

    /// How many places clients at `addresses` get in turn.
    fn places(all: &AddressLimits, addresses: impl Iterator<Item = u128>) -> usize {
        let places = addresses.map_while(|bits| all.acquire(Ipv6Addr::from_bits(bits).into()));
        places.collect::<Vec<_>>().len()
    }

    #[test]
    fn p15_many_networks_of_one_holder_count_together() {
        let site: u128 = 0x2001_0db8_0001 << 80;
        let addresses = AddressLimits::new(10, 1000);
        // Each from a /64 of its own, of one /56; then from all /64 of a /48.
        assert_eq!(places(&addresses, (0..256).map(|net| site | net << 64)), 20);
        let all = (0..65_536).map(|net: u128| site | (net % 256) << 72 | (net / 256) << 64);
        assert_eq!(places(&addresses, all), 40);
        assert!(addresses.lock().is_empty());
    }

    #[test]
    fn p15_nobody_has_more_than_half_of_all_places() {
        let site: u128 = 0x2001_0db8_0001 << 80;
        let addresses = AddressLimits::new(1000, 20);
        let one = address("192.0.2.1");
        let held: Vec<_> = std::iter::from_fn(|| addresses.acquire(one)).collect();
        assert_eq!(held.len(), 10);
        assert_eq!(places(&addresses, (0..100).map(|net| site | net << 72)), 10);
        assert!(AddressLimits::new(1, 1).acquire(one).is_some());
    }
}
