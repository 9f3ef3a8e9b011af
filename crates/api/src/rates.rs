//! Rate limits per key, in requests per minute: a token bucket that refills steadily. A key may
//! spend a minute's worth at once, and then as fast as the bucket refills. Buckets live in memory,
//! so a restart refills all of them. When several processes serve one store, a shared allowance
//! decides; the local bucket applies only while the store does not answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use kinora_contract::UnixMs;
use kinora_store::{AllowanceGrant, AllowanceStore};
use tokio::time::timeout;

/// The cost of one request. A limit of `n` per minute adds `n` per millisecond, which keeps the
/// arithmetic exact in integers.
const REQUEST: u64 = 60_000;
/// Number of buckets from which full ones are removed.
const FORGET_FROM: usize = 1024;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit-requests");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining-requests");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset-requests");

/// The buckets of all keys.
#[derive(Debug)]
pub(crate) struct RateLimits {
    /// Requests per minute of keys without their own limit; 0 is unlimited.
    default_per_minute: u32,
    /// The allowance shared between processes; `None` if this is the only process.
    allowances: Option<Arc<dyn AllowanceStore>>,
    buckets: Mutex<BucketTable>,
}

#[derive(Debug, Default)]
struct BucketTable {
    of_keys: HashMap<String, TokenBucket>,
    /// The size at which full buckets are removed.
    forget_at: usize,
}

#[derive(Debug)]
struct TokenBucket {
    level: u64,
    per_minute: u32,
    at_ms: UnixMs,
    /// This process's part of the shared allowance.
    share: Arc<AllowanceShare>,
}

/// A key's rate limit after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimitStatus {
    /// Requests per minute.
    limit: u32,
    /// Requests that may follow immediately.
    remaining: u32,
    /// Time until the bucket is full again.
    reset_ms: u64,
    /// When to retry a request over the limit; `None` if it was admitted.
    pub(crate) retry_after_seconds: Option<u64>,
}

/// Counts a request once, for its endpoint, and keeps the result for the response's headers.
#[derive(Debug)]
pub(crate) struct RequestMeter {
    limits: Arc<RateLimits>,
    standing: OnceLock<RateLimitStatus>,
}

impl RateLimits {
    pub(crate) fn new(
        default_per_minute: u32,
        allowances: Option<Arc<dyn AllowanceStore>>,
    ) -> Self {
        Self {
            default_per_minute,
            allowances,
            buckets: Mutex::default(),
        }
    }

    /// Counts a request of the key `id`; `None` if the key has no limit.
    async fn count(&self, id: &str, own: Option<u32>, now_ms: UnixMs) -> Option<RateLimitStatus> {
        let limit = own.unwrap_or(self.default_per_minute);
        if limit == 0 {
            return None;
        }
        let Some(allowances) = &self.allowances else {
            return Some(self.count_here(id, limit, now_ms));
        };
        let share = self.with_bucket(id, limit, now_ms, |bucket| bucket.share.clone());
        let spent = share.spend(&**allowances, id, limit, now_ms).await;
        if let SpendOutcome::Refused { retry_ms } = spent {
            return Some(RateLimitStatus::refused(limit, retry_ms));
        }
        // The local bucket runs along although the shared allowance decides: when the store stops
        // answering, it already knows what this process has spent.
        let own = self.count_here(id, limit, now_ms);
        Some(match spent {
            SpendOutcome::Admitted { left } => own.admitted(left),
            // The local bucket limits this process in the meantime.
            _ => own,
        })
    }

    /// Like [`Self::count`], by this process alone, for what is no key.
    fn count_here(&self, id: &str, limit: u32, now_ms: UnixMs) -> RateLimitStatus {
        self.with_bucket(id, limit, now_ms, |bucket| bucket.consume(limit, now_ms))
    }

    /// Runs `f` with the key's bucket, creating a full one if there is none.
    fn with_bucket<T>(
        &self,
        id: &str,
        limit: u32,
        now_ms: UnixMs,
        act: impl FnOnce(&mut TokenBucket) -> T,
    ) -> T {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.of_keys.get_mut(id) {
            return act(bucket);
        }
        let mut bucket = TokenBucket {
            level: u64::from(limit) * REQUEST,
            per_minute: limit,
            at_ms: now_ms,
            share: Arc::default(),
        };
        let done = act(&mut bucket);
        buckets.add(id.to_owned(), bucket);
        done
    }
}

impl BucketTable {
    /// A full bucket equals none: full ones are removed each time the number of buckets doubles.
    fn add(&mut self, id: String, bucket: TokenBucket) {
        if self.of_keys.len() >= self.forget_at.max(FORGET_FROM) {
            let now_ms = bucket.at_ms;
            self.of_keys.retain(|_, one| {
                one.fill(now_ms);
                one.level < one.capacity()
            });
            self.forget_at = self.of_keys.len() * 2;
        }
        self.of_keys.insert(id, bucket);
    }
}

impl TokenBucket {
    fn capacity(&self) -> u64 {
        u64::from(self.per_minute) * REQUEST
    }

    /// Adds the tokens accrued since the last call. If the clock is set back, refilling only pauses for a moment.
    fn fill(&mut self, now_ms: UnixMs) {
        let passed_ms = now_ms.saturating_sub(self.at_ms);
        let come = passed_ms.saturating_mul(self.per_minute.into());
        self.level = self.level.saturating_add(come).min(self.capacity());
        self.at_ms = now_ms;
    }

    fn consume(&mut self, limit: u32, now_ms: UnixMs) -> RateLimitStatus {
        self.per_minute = limit;
        self.fill(now_ms);
        // Example: 2 requests per minute. The bucket holds 120,000, a request takes 60,000, and
        // each millisecond adds 2: two requests at once, then one every 30 s. All in integers, so
        // nobody loses a request to rounding.
        let missing = REQUEST.saturating_sub(self.level);
        if missing == 0 {
            self.level -= REQUEST;
        }
        RateLimitStatus {
            limit,
            remaining: u32::try_from(self.level / REQUEST).unwrap_or(u32::MAX),
            reset_ms: (self.capacity() - self.level).div_ceil(limit.into()),
            retry_after_seconds: (missing > 0)
                .then(|| missing.div_ceil(limit.into()).div_ceil(1000)),
        }
    }
}

impl RateLimitStatus {
    /// The standing of a request that the shared allowance admits, with `left` more to come.
    fn admitted(self, left: u32) -> Self {
        let remaining = self.remaining.min(left);
        let missing = u64::from(self.limit - remaining) * REQUEST;
        Self {
            remaining,
            reset_ms: missing.div_ceil(self.limit.into()),
            retry_after_seconds: None,
            ..self
        }
    }

    /// The standing of a request that the shared allowance will admit after `retry_ms`.
    fn refused(limit: u32, retry_ms: u64) -> Self {
        // After `retry_ms` there is room for one request; the rest of the bucket fills after that.
        let others = u64::from(limit.saturating_sub(1)) * REQUEST;
        Self {
            limit,
            remaining: 0,
            reset_ms: retry_ms + others.div_ceil(limit.into()),
            retry_after_seconds: Some(retry_ms.div_ceil(1000).max(1)),
        }
    }

    /// Writes the limit into the answer, in OpenAI's headers.
    pub(crate) fn write(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, self.limit.into());
        headers.insert(REMAINING, self.remaining.into());
        if let Ok(reset) = HeaderValue::try_from(span(self.reset_ms)) {
            headers.insert(RESET, reset);
        }
    }
}

/// A time span as OpenAI writes it: `250ms`, `12s`, `6m0s`.
fn span(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        _ => match ms.div_ceil(1000) {
            seconds @ 0..60 => format!("{seconds}s"),
            seconds => format!("{}m{}s", seconds / 60, seconds % 60),
        },
    }
}

impl RequestMeter {
    pub(crate) const fn new(limits: Arc<RateLimits>) -> Self {
        Self {
            limits,
            standing: OnceLock::new(),
        }
    }

    /// Counts this request once against the key `id`; [`Self::status`] returns the same result
    /// later.
    pub(crate) async fn count(
        &self,
        id: &str,
        own: Option<u32>,
        now_ms: UnixMs,
    ) -> Option<RateLimitStatus> {
        let standing = self.limits.count(id, own, now_ms).await?;
        Some(*self.standing.get_or_init(|| standing))
    }

    /// Counts this request once against `id`, which is no key, in this process alone.
    pub(crate) fn count_here(&self, id: &str, limit: u32, now_ms: UnixMs) -> RateLimitStatus {
        let standing = self.limits.count_here(id, limit, now_ms);
        *self.standing.get_or_init(|| standing)
    }

    /// The rate limit of the request's key, if it has one.
    pub(crate) fn status(&self) -> Option<RateLimitStatus> {
        self.standing.get().copied()
    }
}

/// A batch is a minute's worth of requests divided by this. It bounds how many a process holds
/// unspent.
const BATCHES_PER_MINUTE: u32 = 60;
/// How long requests wait for the store: a rate limit must not delay them for long.
const ASK_MAX: Duration = Duration::from_millis(500);
/// How long to wait before asking the store again after it did not answer.
const AWAY_MS: u64 = 1_000;

/// The decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpendOutcome {
    /// Admitted; about `left` more requests are available.
    Admitted { left: u32 },
    /// Refused: the allowance is used up, with room again after this time.
    Refused { retry_ms: u64 },
    /// The store did not answer.
    Away,
}

/// One key's share.
#[derive(Debug, Default)]
struct AllowanceShare {
    held: Mutex<ShareState>,
    /// Only one request at a time asks the store; the others use its result.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct ShareState {
    /// Requests that may be spent without asking the store.
    requests: u32,
    /// Requests that remain in the shared allowance.
    left: u32,
    pause: Option<QueryPause>,
}

/// A period in which the store is not asked.
#[derive(Clone, Copy, Debug)]
struct QueryPause {
    since_ms: UnixMs,
    for_ms: u64,
    away: bool,
}

impl AllowanceShare {
    /// Spends one request of the key `id`, whose limit is `limit` per minute.
    async fn spend(
        &self,
        allowances: &dyn AllowanceStore,
        id: &str,
        limit: u32,
        now_ms: UnixMs,
    ) -> SpendOutcome {
        if let Some(spent) = self.lock().spend(now_ms) {
            return spent;
        }
        // One request asks the store for a batch; the others wait here and then find it spent or
        // not below.
        let _asking = self.asking.lock().await;
        if let Some(spent) = self.lock().spend(now_ms) {
            return spent;
        }
        let wanted = limit.div_ceil(BATCHES_PER_MINUTE);
        let answer = match timeout(ASK_MAX, allowances.acquire(id, limit, wanted)).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(late) => Err(late.to_string()),
        };
        if let Err(error) = &answer {
            tracing::debug!(
                error,
                "shared rate limit not read; limiting by this process alone"
            );
        }
        let mut held = self.lock();
        held.record_grant(answer.ok(), now_ms);
        held.spend(now_ms).unwrap_or(SpendOutcome::Away)
    }

    fn lock(&self) -> MutexGuard<'_, ShareState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShareState {
    /// `None` if the store must be asked.
    fn spend(&mut self, now_ms: UnixMs) -> Option<SpendOutcome> {
        if let Some(requests) = self.requests.checked_sub(1) {
            self.requests = requests;
            let left = self.left.saturating_add(requests);
            return Some(SpendOutcome::Admitted { left });
        }
        let pause = self.pause?;
        // If the clock was set back, the pause ends.
        let passed_ms = now_ms.checked_sub(pause.since_ms)?;
        let retry_ms = pause
            .for_ms
            .checked_sub(passed_ms)
            .filter(|left| *left > 0)?;
        Some(if pause.away {
            SpendOutcome::Away
        } else {
            SpendOutcome::Refused { retry_ms }
        })
    }

    /// Records the store's answer; `None` if there was none.
    fn record_grant(&mut self, taken: Option<AllowanceGrant>, now_ms: UnixMs) {
        if let Some(taken) = taken {
            self.requests = taken.granted;
            self.left = taken.left;
        }
        // Only refusals are remembered, and that there was no answer.
        self.pause = taken
            .is_none_or(|taken| taken.granted == 0)
            .then(|| QueryPause {
                since_ms: now_ms,
                for_ms: taken.map_or(AWAY_MS, |taken| taken.next_ms.max(1)),
                away: taken.is_none(),
            });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use proptest::prelude::*;

    use super::*;

    const NOW: UnixMs = 1_800_000_000_000;

    impl RateLimits {
        fn alone(default_per_minute: u32) -> Self {
            Self::new(default_per_minute, None)
        }

        /// Alone, a process waits for nothing.
        fn counted(&self, id: &str, own: Option<u32>, now_ms: UnixMs) -> Option<RateLimitStatus> {
            self.count(id, own, now_ms).now_or_never().unwrap()
        }
    }

    #[test]
    fn p12_a_minute_s_worth_at_once_then_one_when_it_was_said() {
        let limits = RateLimits::alone(0);
        let take = |at| limits.counted("k", Some(2), at).unwrap();
        assert_eq!(
            take(NOW),
            RateLimitStatus {
                limit: 2,
                remaining: 1,
                reset_ms: 30_000,
                retry_after_seconds: None
            }
        );
        assert_eq!(take(NOW).remaining, 0);
        let refused = take(NOW + 500);
        assert_eq!(refused.retry_after_seconds, Some(30));
        assert_eq!(take(NOW + 29_999).retry_after_seconds, Some(1));
        assert_eq!(take(NOW + 500 + 30_000).retry_after_seconds, None);
    }

    #[test]
    fn keys_have_buckets_of_their_own_and_some_have_no_limit() {
        let limits = RateLimits::alone(1);
        assert!(
            limits
                .counted("a", None, NOW)
                .unwrap()
                .retry_after_seconds
                .is_none()
        );
        assert!(
            limits
                .counted("a", None, NOW)
                .unwrap()
                .retry_after_seconds
                .is_some()
        );
        assert!(
            limits
                .counted("b", None, NOW)
                .unwrap()
                .retry_after_seconds
                .is_none()
        );
        assert_eq!(limits.counted("c", Some(0), NOW), None);
        assert_eq!(RateLimits::alone(0).counted("d", None, NOW), None);
    }

    #[test]
    fn p10_a_clock_that_is_set_back_neither_locks_out_nor_gives_for_nothing() {
        let limits = RateLimits::alone(0);
        let take = |at| {
            limits
                .counted("k", Some(1), at)
                .unwrap()
                .retry_after_seconds
        };
        assert_eq!(take(NOW), None);
        let back = NOW - 10 * 3_600_000;
        assert_eq!(take(back), Some(60));
        assert_eq!(take(back + 60_000), None);
        assert_eq!(take(NOW), None, "a jump ahead fills the bucket");
        assert_eq!(take(NOW), Some(60), "and no further");
    }

    #[test]
    fn p08_buckets_of_keys_that_went_away_are_forgotten() {
        let limits = RateLimits::alone(60);
        for number in 0..50_000_u64 {
            // A new key every second: one second later its bucket is full again.
            limits.counted(&format!("key_{number}"), None, NOW + number * 1000);
        }
        assert!(limits.buckets.lock().unwrap().of_keys.len() <= FORGET_FROM);
    }

    #[test]
    fn spans_are_written_as_openai_does() {
        for (ms, text) in [
            (0, "0ms"),
            (250, "250ms"),
            (1000, "1s"),
            (1001, "2s"),
            (59_001, "1m0s"),
            (360_000, "6m0s"),
            (61_000, "1m1s"),
        ] {
            assert_eq!(span(ms), text);
        }
    }

    proptest! {
        #[test]
        fn p12_who_waits_as_told_is_let_in(
            limit in prop_oneof![1..100_u32, Just(u32::MAX)],
            steps in prop::collection::vec(0..5_000_u64, 1..300),
        ) {
            let limits = RateLimits::alone(limit);
            let mut now_ms = NOW;
            for step in steps {
                now_ms += step;
                let standing = limits.counted("k", None, now_ms).unwrap();
                prop_assert!(standing.reset_ms <= 60_000);
                if let Some(seconds) = standing.retry_after_seconds {
                    prop_assert!((1..=60).contains(&seconds));
                    now_ms += seconds * 1000;
                    let again = limits.counted("k", None, now_ms).unwrap();
                    prop_assert_eq!(again.retry_after_seconds, None);
                }
            }
        }
    }
}

#[cfg(test)]
mod share_tests;
