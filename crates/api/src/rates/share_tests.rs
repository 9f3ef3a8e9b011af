//! Several processes that share one allowance, on a test clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use kinora_contract::{Clock, ManualClock};
use kinora_store::StoreError;
use proptest::prelude::*;

use super::*;

const NOW: UnixMs = 1_800_000_000_000;

/// A store with one key's allowance, which may be unavailable.
#[derive(Debug)]
struct Pool {
    clock: ManualClock,
    bucket: Mutex<Option<TokenBucket>>,
    asked: AtomicU64,
    away: AtomicBool,
    hangs: AtomicBool,
}

impl Pool {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            clock: ManualClock::at(NOW),
            bucket: Mutex::default(),
            asked: AtomicU64::new(0),
            away: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
        })
    }

    fn process(self: &Arc<Self>) -> Process {
        Process(RateLimits::new(0, Some(self.clone())), self.clone())
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl AllowanceStore for Pool {
    async fn acquire(
        &self,
        _key: &str,
        per_minute: u32,
        wanted: u32,
    ) -> Result<AllowanceGrant, StoreError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("away".into()));
        }
        let now_ms = self.clock.now_ms();
        let mut bucket = self.bucket.lock().unwrap();
        let bucket = bucket.get_or_insert_with(|| TokenBucket {
            level: u64::from(per_minute) * REQUEST,
            per_minute,
            at_ms: now_ms,
            share: Arc::default(),
        });
        bucket.fill(now_ms);
        let granted = wanted.min(u32::try_from(bucket.level / REQUEST).unwrap());
        bucket.level -= u64::from(granted) * REQUEST;
        Ok(AllowanceGrant {
            granted,
            left: u32::try_from(bucket.level / REQUEST).unwrap(),
            next_ms: REQUEST
                .saturating_sub(bucket.level)
                .div_ceil(per_minute.into()),
        })
    }
}

/// One of the processes.
struct Process(RateLimits, Arc<Pool>);

impl Process {
    async fn ask(&self, limit: u32) -> RateLimitStatus {
        let standing = self.0.count("k", Some(limit), self.1.clock.now_ms()).await;
        standing.unwrap()
    }

    /// Whether it admits a request while the store answers at once.
    fn admits(&self, limit: u32) -> bool {
        let standing = self.ask(limit).now_or_never().unwrap();
        standing.retry_after_seconds.is_none()
    }
}

#[tokio::test]
async fn one_process_alone_spends_the_whole_limit_and_asks_once_a_batch() {
    let pool = Pool::new();
    let (busy, idle) = (pool.process(), pool.process());
    let admitted = (0..700).filter(|_| busy.admits(600)).count();
    assert_eq!(admitted, 600);
    // Ten at a time, and once in vain: refusals are remembered.
    assert_eq!(pool.asked(), 61);
    let refused = idle.ask(600).await;
    assert_eq!(refused.retry_after_seconds, Some(1));
    assert_eq!((refused.remaining, refused.reset_ms), (0, 60_000));
}

#[tokio::test]
async fn p12_who_waits_as_told_is_let_in_at_any_process() {
    let pool = Pool::new();
    let (one, two) = (pool.process(), pool.process());
    assert!(one.admits(2) && two.admits(2));
    assert!(!one.admits(2));
    let told = two.ask(2).await;
    assert_eq!(told.retry_after_seconds, Some(30));
    pool.clock.advance(29_999);
    assert_eq!(one.ask(2).await.retry_after_seconds, Some(1));
    pool.clock.advance(1);
    assert!(one.admits(2) && !two.admits(2));
}

#[tokio::test]
async fn what_is_left_is_told_over_all_processes() {
    let pool = Pool::new();
    let (one, two) = (pool.process(), pool.process());
    assert_eq!(one.ask(60).await.remaining, 59);
    assert_eq!(two.ask(60).await.remaining, 58);
    let third = one.ask(60).await;
    assert_eq!((third.remaining, third.reset_ms), (57, 3_000));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_each_process_keeps_the_limit_for_itself() {
    let pool = Pool::new();
    let both = [pool.process(), pool.process()];
    assert!(both[0].admits(3));
    pool.away.store(true, Ordering::SeqCst);
    for (process, more) in both.iter().zip([2, 3]) {
        for _ in 0..more {
            assert!(process.admits(3));
        }
        assert!(!process.admits(3), "bounded by its own bucket");
    }
    // It is not asked again at once, nor does a store that hangs hold up more than one request.
    assert_eq!(pool.asked(), 3);
    pool.clock.advance(1_000);
    pool.hangs.store(true, Ordering::SeqCst);
    let told = both[0].ask(3).await.retry_after_seconds;
    assert_eq!(told, Some(19), "of its own bucket");
    assert!(!both[0].admits(3));
    assert_eq!(pool.asked(), 4);
    // It comes back.
    pool.away.store(false, Ordering::SeqCst);
    pool.hangs.store(false, Ordering::SeqCst);
    pool.clock.advance(1_000);
    assert!(both[1].admits(3));
}

#[tokio::test]
async fn p10_a_clock_that_is_set_back_ends_a_pause() {
    let pool = Pool::new();
    let process = pool.process();
    assert!(process.admits(1) && !process.admits(1));
    let back = process.0.count("k", Some(1), NOW - 3_600_000).await;
    assert_eq!(back.unwrap().retry_after_seconds, Some(60));
    assert_eq!(pool.asked(), 3);
}

proptest! {
    #[test]
    fn p08_processes_together_pass_a_limit_by_what_they_hold_at_most(
        limit in 1..500_u32,
        processes in 1..5_usize,
        steps in prop::collection::vec((0..5_usize, 0..400_u64, 1..60_u32), 1..200),
    ) {
        let timers = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = timers.enter();
        let pool = Pool::new();
        let all: Vec<Process> = (0..processes).map(|_| pool.process()).collect();
        let (mut admitted, mut passed_ms) = (0_u64, 0);
        for (process, pause_ms, requests) in steps {
            pool.clock.advance(pause_ms);
            passed_ms += pause_ms;
            for _ in 0..requests {
                admitted += u64::from(all[process % processes].admits(limit));
            }
            // From the beginning nothing is held: what was admitted was taken before.
            let refilled = passed_ms * u64::from(limit) / 60_000;
            prop_assert!(admitted <= u64::from(limit) + refilled);
        }
        // A process that goes on alone gets everything but what the others hold.
        pool.clock.advance(60_000);
        let held = (processes as u64 - 1) * u64::from(limit.div_ceil(BATCHES_PER_MINUTE));
        let rest = (0..2 * limit).filter(|_| all[0].admits(limit)).count() as u64;
        prop_assert!(rest >= u64::from(limit) - held.min(limit.into()));
        prop_assert!(rest <= u64::from(limit) + u64::from(limit.div_ceil(BATCHES_PER_MINUTE)));
    }
}
