//! Stores that fail, in test builds only. The variable `FAULT_PPM` sets how many calls per million
//! fail before they take effect, and as many after it; as many again are delayed. `FAULT_SEED`
//! selects which. `CLOCK_SETTLE_MS` is how long the clocks must agree before anything expires.

use std::sync::Arc;

use kinora_blobs::BlobStore;
use kinora_blobs::faulty::{self as blobs, FaultyBlobs};
use kinora_store::Stores;
use kinora_store::faulty::{self as store, FaultyStore};

type Opened = (Stores, Arc<dyn BlobStore>);

/// How long the clocks must agree, if the variable is set.
pub(crate) fn clock_settle_ms() -> Option<u64> {
    std::env::var("CLOCK_SETTLE_MS").ok()?.parse().ok()
}

/// Wraps both stores with faults if the variables ask for them.
pub(crate) fn around(stores: Stores, blobs: Arc<dyn BlobStore>) -> Opened {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let Some(ppm) = number("FAULT_PPM") else {
        return (stores, blobs);
    };
    let (ppm, seed) = (ppm as u32, number("FAULT_SEED").unwrap_or(1));
    let of_tasks = store::Plan::seeded(seed);
    of_tasks.set(store::Rates::each(ppm));
    // A client that repeats a cancel or delete which took effect after all gets 409 or 404:
    // correct, but not what a test that cancels once expects. A fetch or chore whose lease was
    // granted, with the answer lost, waits for the lease to end: correct, but longer than tests
    // wait.
    for method in [
        store::Method::Cancel,
        store::Method::Delete,
        store::Method::TakeFetches,
        store::Method::TakeChores,
    ] {
        let rates = store::Rates {
            after_ppm: 0,
            ..store::Rates::each(ppm)
        };
        of_tasks.set_of(method, Some(rates));
    }
    let of_blobs = blobs::Plan::seeded(seed + 1);
    of_blobs.set(blobs::Rates::each(ppm));
    tracing::warn!(ppm, seed, "stores fail on purpose");
    (
        FaultyStore::wrap(stores, Arc::new(of_tasks)),
        Arc::new(FaultyBlobs::new(blobs, Arc::new(of_blobs))),
    )
}
