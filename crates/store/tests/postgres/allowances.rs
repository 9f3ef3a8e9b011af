//! Rate limits that several processes share.

use std::sync::Arc;

use kinora_contract::ManualClock;
use kinora_store::conformance::fixtures::NOW;
use kinora_store::{AllowanceGrant, AllowanceStore, OpenOptions, open};

use crate::harness::{database, exact};

/// A handle of a process, by this clock.
async fn allowances(url: &str, clock: &Arc<ManualClock>) -> Arc<dyn AllowanceStore> {
    let options = OpenOptions {
        postgres: exact(),
        ..OpenOptions::new(clock.clone())
    };
    let stores = open(url, &options).await.unwrap();
    stores.allowances.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p12_an_allowance_is_taken_once_over_two_handles_and_refills() {
    let url = database().await;
    let clock = Arc::new(ManualClock::at(NOW));
    let both = [
        allowances(&url, &clock).await,
        allowances(&url, &clock).await,
    ];
    let takes = (0..64).map(|number| {
        let one = both[number % 2].clone();
        tokio::spawn(async move { one.acquire("key", 100, 3).await.unwrap() })
    });
    let mut granted = 0;
    for take in takes.collect::<Vec<_>>() {
        granted += take.await.unwrap().granted;
    }
    assert_eq!(granted, 100);
    let none = |next_ms| AllowanceGrant {
        granted: 0,
        left: 0,
        next_ms,
    };
    assert_eq!(both[0].acquire("key", 100, 3).await.unwrap(), none(600));
    // Another key has its own.
    let other = both[1].acquire("other", 100, 1).await.unwrap();
    assert_eq!((other.granted, other.left, other.next_ms), (1, 99, 0));
    clock.advance(599);
    assert_eq!(both[1].acquire("key", 100, 3).await.unwrap(), none(1));
    clock.advance(1_201);
    let third = both[0].acquire("key", 100, 9).await.unwrap();
    assert_eq!((third.granted, third.left), (3, 0));
    clock.advance(10 * 60_000);
    let full = both[1].acquire("key", 100, u32::MAX).await.unwrap();
    assert_eq!((full.granted, full.left), (100, 0), "and no fuller");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p10_a_clock_that_is_set_back_neither_locks_out_nor_gives_for_nothing() {
    let url = database().await;
    let clock = Arc::new(ManualClock::at(NOW));
    let one = allowances(&url, &clock).await;
    let granted = async || one.acquire("key", 1, 9).await.unwrap().granted;
    assert_eq!((granted().await, granted().await), (1, 0));
    clock.set(NOW - 30_000);
    assert_eq!(granted().await, 0);
    clock.set(NOW + 30_000);
    assert_eq!(
        granted().await,
        0,
        "half a minute has passed, not a whole one"
    );
    clock.set(NOW - 3_600_000);
    assert_eq!(granted().await, 0);
    clock.advance(60_000);
    assert_eq!(granted().await, 1, "a minute later there is one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_was_changed_holds_from_then_on() {
    let url = database().await;
    let one = allowances(&url, &Arc::new(ManualClock::at(NOW))).await;
    assert_eq!(
        one.acquire("key", u32::MAX, 1).await.unwrap().left,
        u32::MAX - 1
    );
    let fewer = one.acquire("key", 10, 1).await.unwrap();
    assert_eq!((fewer.granted, fewer.left), (1, 9));
}
