//! Named places in the life of a task where a test may kill the process. Without the feature
//! `armed` a point is nothing at all; with it, the variable `CRASH_AT=NAME:N` aborts the
//! process when it comes to the point of that name for the N-th time (from 1).

/// Every point, in the order in which a task comes by.
pub const POINTS: &[&str] = &[
    "store.before_commit",
    "store.after_commit",
    "api.before_answer",
    "worker.reference_fetched",
    "worker.reference_stored",
    "worker.claimed",
    "worker.prepared",
    "worker.recorded",
    "blobs.synced",
    "blobs.linked",
    "worker.published",
    "worker.before_finish",
    "worker.finished",
    "worker.swept_file",
];

/// Ends the process here, as a power cut would, when this point was asked for.
#[inline]
pub fn point(name: &str) {
    #[cfg(feature = "armed")]
    armed::point(name);
    #[cfg(not(feature = "armed"))]
    let _ = name;
}

#[cfg(feature = "armed")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Order {
        name: String,
        left: AtomicU64,
    }

    /// `NAME:N`; anything else asks for nothing.
    fn read(text: &str) -> Option<Order> {
        let (name, count) = text.split_once(':')?;
        Some(Order {
            name: name.to_owned(),
            left: AtomicU64::new(count.parse().ok()?),
        })
    }

    pub(super) fn point(name: &str) {
        static ORDER: OnceLock<Option<Order>> = OnceLock::new();
        let order = ORDER.get_or_init(|| read(&std::env::var("CRASH_AT").ok()?));
        let Some(order) = order.as_ref().filter(|order| order.name == name) else {
            return;
        };
        if order.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
    }
}
