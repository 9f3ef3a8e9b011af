//! Limits on open connections, or requests through a proxy, per client address. Dropping a place
//! frees it. The holder of one IPv6 address has 2^64 of them, often a /56 and sometimes a /48, so
//! these networks are limited too, with more places.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The IPv6 networks that count as one client: prefix length, and how many times the places of one
/// address it gets.
const NETWORKS: [(u8, usize); 3] = [(64, 1), (56, 2), (48, 4)];

/// Counts the open places of each address. Cheap to clone; clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    open: Arc<Mutex<HashMap<Network, usize>>>,
    max: usize,
    /// Maximum for any network, however many addresses it has.
    network_max: usize,
}

/// The unit of counting: an IPv4 address or an IPv6 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Network {
    first: IpAddr,
    bits: u8,
}

/// One of an address's places.
#[derive(Debug)]
pub(crate) struct AddressPermit {
    of: Addresses,
    address: IpAddr,
}

impl Addresses {
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
    pub(crate) fn take(&self, address: IpAddr) -> Option<AddressPermit> {
        let mut open = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Network, usize>> {
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
fn networks_of(address: IpAddr) -> impl Iterator<Item = (Network, usize)> {
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
        (Network { first, bits }, times)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_its_places_and_gets_them_back() {
        let addresses = Addresses::new(2, 100);
        let one = address("192.0.2.1");
        let held = [addresses.take(one), addresses.take(one)];
        assert!(held.iter().all(Option::is_some));
        assert!(addresses.take(one).is_none());
        assert!(addresses.take(address("192.0.2.2")).is_some());
        drop(held);
        assert!(addresses.take(one).is_some());
        assert!(
            addresses.lock().is_empty(),
            "what has nothing open is forgotten"
        );
    }

    #[test]
    fn addresses_of_one_client_count_together() {
        let addresses = Addresses::new(1, 100);
        let _held = addresses.take(address("2001:db8:1:2::1"));
        assert!(addresses.take(address("2001:db8:1:2:ffff::9")).is_none());
        assert!(addresses.take(address("2001:db8:1:3::1")).is_some());
        let _held = addresses.take(address("192.0.2.1"));
        assert!(addresses.take(address("::ffff:192.0.2.1")).is_none());
    }

    /// How many places clients at `addresses` get in turn.
    fn places(all: &Addresses, addresses: impl Iterator<Item = u128>) -> usize {
        let places = addresses.map_while(|bits| all.take(Ipv6Addr::from_bits(bits).into()));
        places.collect::<Vec<_>>().len()
    }

    #[test]
    fn p15_many_networks_of_one_holder_count_together() {
        let site: u128 = 0x2001_0db8_0001 << 80;
        let addresses = Addresses::new(10, 1000);
        // Each from a /64 of its own, of one /56; then from all /64 of a /48.
        assert_eq!(places(&addresses, (0..256).map(|net| site | net << 64)), 20);
        let all = (0..65_536).map(|net: u128| site | (net % 256) << 72 | (net / 256) << 64);
        assert_eq!(places(&addresses, all), 40);
        assert!(addresses.lock().is_empty());
    }

    #[test]
    fn p15_nobody_has_more_than_half_of_all_places() {
        let site: u128 = 0x2001_0db8_0001 << 80;
        let addresses = Addresses::new(1000, 20);
        let one = address("192.0.2.1");
        let held: Vec<_> = std::iter::from_fn(|| addresses.take(one)).collect();
        assert_eq!(held.len(), 10);
        assert_eq!(places(&addresses, (0..100).map(|net| site | net << 72)), 10);
        assert!(Addresses::new(1, 1).take(one).is_some());
    }
}
