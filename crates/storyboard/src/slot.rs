//! Places for things that many threads share while they are needed. Nothing is made before its first use.

use std::sync::{Arc, Mutex, PoisonError};

/// A thing that is made at its first use and let go after its last.
pub(crate) type Slot<T> = Mutex<Option<Arc<T>>>;

/// The thing in `slot`, made if it is not there.
pub(crate) fn held<T>(slot: &Slot<T>, make: impl FnOnce() -> T) -> Arc<T> {
    let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(held.get_or_insert_with(|| Arc::new(make())))
}

/// Empty places.
pub(crate) fn slots<T>(count: usize) -> Vec<Slot<T>> {
    (0..count).map(|_| Mutex::new(None)).collect()
}

/// Empties `slot`; current users keep their reference.
pub(crate) fn release<T>(slot: &Slot<T>) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = None;
}
