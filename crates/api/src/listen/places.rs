//! Places of addresses: how many connections, or requests through a proxy, one client address
//! has at a time. A place is given back when it is dropped.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts what each address has open. Cheap to clone: all clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    max: usize,
}

/// One of an address's places.
#[derive(Debug)]
pub(crate) struct AddressPlace {
    of: Addresses,
    address: IpAddr,
}

impl Addresses {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            open: Arc::default(),
            max,
        }
    }

    /// A place for `address`; `None` when it has all that it may have.
    pub(crate) fn take(&self, address: IpAddr) -> Option<AddressPlace> {
        let address = counted_as(address);
        let mut open = self.lock();
        let count = open.entry(address).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        drop(open);
        Some(AddressPlace {
            of: self.clone(),
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let mut open = self.of.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// A client of IPv6 commonly owns 64 bits of addresses: they count as one.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_its_places_and_gets_them_back() {
        let addresses = Addresses::new(2);
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
        let addresses = Addresses::new(1);
        let _held = addresses.take(address("2001:db8:1:2::1"));
        assert!(addresses.take(address("2001:db8:1:2:ffff::9")).is_none());
        assert!(addresses.take(address("2001:db8:1:3::1")).is_some());
        let _held = addresses.take(address("192.0.2.1"));
        assert!(addresses.take(address("::ffff:192.0.2.1")).is_none());
    }
}
