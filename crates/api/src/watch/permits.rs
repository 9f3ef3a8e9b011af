//! Limits on waiting requests and open streams: one for all, and one per API key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffers::Full;

/// Hands out places. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    taken: Arc<Mutex<Taken>>,
    max: usize,
    of_key_max: usize,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<Arc<str>, usize>,
}

/// A taken place; dropping it frees it.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    key: Arc<str>,
}

impl Places {
    pub(super) fn new(max: usize, of_key_max: usize) -> Self {
        Self {
            taken: Arc::default(),
            max,
            of_key_max,
        }
    }

    /// Takes a place for the key with this id.
    pub(crate) fn take(&self, key: &str) -> Result<Place, Full> {
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
        Ok(Place {
            places: self.clone(),
            key: name,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
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
    fn p08_places_are_bounded_for_all_and_for_each_key_and_come_back() {
        let places = Places::new(3, 2);
        let held = [places.take("one").unwrap(), places.take("one").unwrap()];
        assert_eq!(places.take("one").unwrap_err(), Full::Owner);
        let other = places.take("two").unwrap();
        assert_eq!(places.take("two").unwrap_err(), Full::All);
        drop(other);
        let _other = places.take("two").unwrap();
        drop(held);
        drop(places.take("one").unwrap());
        assert_eq!(
            places.lock().of.len(),
            1,
            "keys without places are forgotten"
        );
    }
}
