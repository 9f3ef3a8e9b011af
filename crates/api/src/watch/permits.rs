//! Limits on waiting requests and open streams: one for all, and one per API key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffers::Full;

/// Hands out permits. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct WaitPermits {
    taken: Arc<Mutex<Taken>>,
    max: usize,
    of_key_max: usize,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<Arc<str>, usize>,
}

/// A taken permit; dropping it frees it.
#[derive(Debug)]
pub(crate) struct WaitPermit {
    permits: WaitPermits,
    key: Arc<str>,
}

impl WaitPermits {
    pub(super) fn new(max: usize, of_key_max: usize) -> Self {
        Self {
            taken: Arc::default(),
            max,
            of_key_max,
        }
    }

    /// Takes a permit for the key with this id.
    pub(crate) fn take(&self, key: &str) -> Result<WaitPermit, Full> {
        let mut taken = self.lock();
        let (name, own) = match taken.of.get_key_value(key) {
            Some((name, own)) => (name.clone(), *own),
            None => (key.into(), 0),
        };
        if own >= self.of_key_max {
            return Err(Full::Owner);
        }
        if taken.all >= self.max {
            return Err(Full::All);
        }
        taken.all += 1;
        taken.of.insert(name.clone(), own + 1);
        Ok(WaitPermit {
            permits: self.clone(),
            key: name,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitPermit {
    fn drop(&mut self) {
        let mut taken = self.permits.lock();
        taken.all -= 1;
        if let Some(own) = taken.of.get_mut(&self.key) {
            *own -= 1;
            if *own == 0 {
                taken.of.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p08_waits_are_bounded_for_all_and_for_each_key_and_come_back() {
        let permits = WaitPermits::new(3, 2);
        let held = [permits.take("one").unwrap(), permits.take("one").unwrap()];
        assert_eq!(permits.take("one").unwrap_err(), Full::Owner);
        let other = permits.take("two").unwrap();
        assert_eq!(permits.take("two").unwrap_err(), Full::All);
        drop(other);
        let _other = permits.take("two").unwrap();
        drop(held);
        drop(permits.take("one").unwrap());
        assert_eq!(
            permits.lock().of.len(),
            1,
            "keys without permits are forgotten"
        );
    }
}
