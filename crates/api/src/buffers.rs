//! The memory budget for connections: request bodies, unread answers, and buffers that grew. Each
//! owner may use a share of the process-wide budget, so one client cannot starve the others.

use std::collections::HashMap;
use std::error::Error;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Each owner may use at most the budget divided by this.
const SHARES: u64 = 4;
/// IPv6 clients are grouped by this prefix, since one site has as many smaller networks as it
/// likes.
const SITE_BITS: u32 = 48;
/// How often a waiting task checks for room. Waking every waiter at each release would cost more.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The budget of the process. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Buffers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    max: u64,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    all: u64,
    of: HashMap<Owner, u64>,
}

/// The owner of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A client's IPv4 address, or its IPv6 site.
    Address(IpAddr),
    /// A project, across all of its clients.
    Project(Arc<str>),
    /// Trusted proxies, which forward many clients: limited only by the whole budget.
    Proxies,
}

/// The budget has no room for more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// The owner has reached its share.
    #[error("client has reached its share of the memory for connections")]
    Owner,
    /// The whole budget is in use.
    #[error("memory for connections is full")]
    All,
}

impl Full {
    /// Finds this error in the source chain of `error`.
    pub(crate) fn within(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(full) = error.downcast_ref::<Self>() {
                return Some(*full);
            }
            next = error.source();
        }
        None
    }
}

impl Owner {
    /// The owner for the client at `address`.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let site = address.to_bits() >> (128 - SITE_BITS) << (128 - SITE_BITS);
                Ipv6Addr::from_bits(site).into()
            }
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

impl Buffers {
    /// Creates a budget of `max` bytes.
    pub(crate) fn new(max: u64) -> Self {
        Self(Arc::new(Inner {
            max,
            used: Mutex::default(),
        }))
    }

    /// Takes `bytes` for `owner`; dropping the result returns them.
    pub(crate) fn try_take(&self, owner: &Owner, bytes: u64) -> Result<Held, Full> {
        let mut held = Held {
            from: self.clone(),
            owner: owner.clone(),
            bytes: 0,
        };
        held.grow(bytes)?;
        Ok(held)
    }

    /// Like [`Self::try_take`], but waits up to `patience` for room.
    pub(crate) async fn take(
        &self,
        owner: &Owner,
        bytes: u64,
        patience: Duration,
    ) -> Result<Held, Full> {
        let waiting = async {
            loop {
                match self.try_take(owner, bytes) {
                    Err(_) => sleep(POLL_INTERVAL).await,
                    Ok(held) => return held,
                }
            }
        };
        match timeout(patience, waiting).await {
            Ok(held) => Ok(held),
            Err(_) => self.try_take(owner, bytes),
        }
    }

    /// Takes `bytes` for `owner` even if that exceeds the budget, for answers that can no longer be
    /// refused. Later requests have that much less room.
    pub(crate) fn take_anyway(&self, owner: &Owner, bytes: u64) -> Held {
        self.lock().add(owner, bytes);
        Held {
            from: self.clone(),
            owner: owner.clone(),
            bytes,
        }
    }

    /// Whether more than half of the budget, or of the share of `owner`, is in use.
    pub(crate) fn is_scarce(&self, owner: &Owner) -> bool {
        let used = self.lock();
        let own = used.of.get(owner).copied().unwrap_or(0);
        used.all > self.0.max / 2 || own > self.share(owner) / 2
    }

    fn share(&self, owner: &Owner) -> u64 {
        match owner {
            Owner::Proxies => self.0.max,
            Owner::Address(_) | Owner::Project(_) => self.0.max / SHARES,
        }
    }

    fn add(&self, owner: &Owner, bytes: u64) -> Result<(), Full> {
        let mut used = self.lock();
        if used.all.saturating_add(bytes) > self.0.max {
            return Err(Full::All);
        }
        let own = used.of.get(owner).copied().unwrap_or(0);
        if own.saturating_add(bytes) > self.share(owner) {
            return Err(Full::Owner);
        }
        used.add(owner, bytes);
        Ok(())
    }

    fn give_back(&self, owner: &Owner, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut used = self.lock();
        used.all -= bytes;
        if let Some(own) = used.of.get_mut(owner) {
            *own -= bytes;
            if *own == 0 {
                used.of.remove(owner);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in use by all owners.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.lock().all
    }
}

impl Used {
    fn add(&mut self, owner: &Owner, bytes: u64) {
        // Nothing would ever remove the entry of an owner with zero bytes.
        if bytes == 0 {
            return;
        }
        self.all += bytes;
        match self.of.get_mut(owner) {
            Some(own) => *own += bytes,
            None => {
                self.of.insert(owner.clone(), bytes);
            }
        }
    }
}

/// Bytes taken by an owner; dropping this returns them.
#[derive(Debug)]
pub(crate) struct Held {
    from: Buffers,
    owner: Owner,
    bytes: u64,
}

impl Held {
    /// Takes `more` bytes.
    pub(crate) fn grow(&mut self, more: u64) -> Result<(), Full> {
        self.from.add(&self.owner, more)?;
        self.bytes += more;
        Ok(())
    }

    /// Returns all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        self.from.give_back(&self.owner, less);
        self.bytes -= less;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.from.give_back(&self.owner, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn address(text: &str) -> Owner {
        Owner::of_address(text.parse().unwrap())
    }

    #[test]
    fn p15_an_owner_has_its_share_and_others_have_room() {
        let buffers = Buffers::new(400);
        let one = address("192.0.2.1");
        let mut held = buffers.try_take(&one, 60).unwrap();
        held.grow(40).unwrap();
        assert_eq!(held.grow(1), Err(Full::Owner));
        assert_eq!(buffers.try_take(&one, 1).unwrap_err(), Full::Owner);
        let others: Vec<Held> = (2..5)
            .map(|last| buffers.try_take(&address(&format!("192.0.2.{last}")), 100))
            .collect::<Result<_, _>>()
            .unwrap();
        let late = address("192.0.2.9");
        assert_eq!(buffers.try_take(&late, 1).unwrap_err(), Full::All);
        held.shrink_to(30);
        assert_eq!(buffers.used(), 330);
        let _fits = buffers.try_take(&late, 70).unwrap();
        drop((held, others));
        assert_eq!(buffers.used(), 70);
        assert_eq!(buffers.lock().of.len(), 1, "who holds nothing is forgotten");
    }

    #[test]
    fn p15_a_site_is_one_owner_and_proxies_have_no_share() {
        let buffers = Buffers::new(400);
        let _held = buffers.try_take(&address("2001:db8:1::1"), 100).unwrap();
        let same_site = address("2001:db8:1:ffff::9");
        assert_eq!(buffers.try_take(&same_site, 1).unwrap_err(), Full::Owner);
        assert!(buffers.try_take(&address("2001:db8:2::1"), 1).is_ok());
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        let rest = buffers.try_take(&Owner::Proxies, 300);
        assert!(rest.is_ok());
    }

    #[test]
    fn what_cannot_be_refused_counts_for_those_who_come_next() {
        let buffers = Buffers::new(400);
        let one = address("192.0.2.1");
        let held = buffers.try_take(&one, 50).unwrap();
        assert!(!buffers.is_scarce(&one));
        let more = buffers.take_anyway(&one, 100);
        assert!(buffers.is_scarce(&one) && !buffers.is_scarce(&address("192.0.2.2")));
        assert_eq!(buffers.try_take(&one, 1).unwrap_err(), Full::Owner);
        drop((held, more));
        drop(buffers.take_anyway(&one, 0));
        drop(buffers.try_take(&one, 0));
        assert_eq!(buffers.used(), 0);
        assert!(buffers.lock().of.is_empty(), "nothing leaves no entry");
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the test measures in paused time"
    )]
    #[tokio::test(start_paused = true)]
    async fn room_is_waited_for_and_not_for_long() {
        let buffers = Buffers::new(400);
        let (one, wait) = (address("192.0.2.1"), Duration::from_secs(2));
        let held = buffers.try_take(&one, 100).unwrap();
        let begun = Instant::now();
        let refused = buffers.take(&one, 1, wait).await;
        assert_eq!(refused.unwrap_err(), Full::Owner);
        assert!(begun.elapsed() >= wait && begun.elapsed() < wait + POLL_INTERVAL);
        let (taken, ()) = tokio::join!(buffers.take(&one, 100, wait), async move {
            tokio::time::sleep(wait / 2).await;
            drop(held);
        });
        assert!(taken.is_ok());
    }
}
