//! Stores that fail, in test builds only: the variable `FAULT_PPM` says how many calls per million
//! fail before they are done, and how many after; as many are held back. `FAULT_SEED` says which.
//! `CLOCK_SETTLE_MS` is how long the clocks must have agreed before anything ends by time.

use std::sync::Arc;

use kinora_blobs::BlobStore;
use kinora_blobs::faulty::{self as blobs, FaultyBlobs};
use kinora_store::Stores;
use kinora_store::faulty::{self as store, FaultyStore};

type Opened = (Stores, Arc<dyn BlobStore>);

/// How long the clocks must have agreed, where the variable says so.
pub(crate) fn clock_settle_ms() -> Option<u64> {
    std::env::var("CLOCK_SETTLE_MS").ok()?.parse().ok()
}

/// Both, with faults where the variables ask for them.
pub(crate) fn around(stores: Stores, blobs: Arc<dyn BlobStore>) -> Opened {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let Some(ppm) = number("FAULT_PPM") else {
        return (stores, blobs);
    };
    let (ppm, seed) = (ppm as u32, number("FAULT_SEED").unwrap_or(1));
    let of_tasks = store::Plan::seeded(seed);
    of_tasks.set(store::Rates::each(ppm));
    // Who repeats a cancel or a delete that was done after all is told so, by 409 or 404: right,
    // and not what a test that cancels once expects.
    // A fetch or a chore whose lease was given out, and told to nobody, waits for its end: right, and longer than
    // tests wait.
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
