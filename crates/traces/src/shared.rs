//! Shared by all spans of a process: the clock, the ids, and the queue.

use std::borrow::Cow;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kinora_contract::{Clock, UnixMs};
use metrics::counter;
use tokio::sync::mpsc;

use crate::record::{Kind, Record};

/// The increment of SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Shared by all spans of a process.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn Clock>,
    ratio: f64,
    ids: AtomicU64,
    queue: mpsc::Sender<Record>,
    /// Number of spans that found no room since the last query.
    pub(crate) lost: AtomicU64,
}

impl Shared {
    /// `seed` is random: two processes must not produce the same ids. `ratio` is the share of tasks
    /// whose traces are recorded, from 0 to 1.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        seed: u64,
        ratio: f64,
        queue: mpsc::Sender<Record>,
    ) -> Self {
        Self {
            clock,
            ratio,
            ids: AtomicU64::new(seed),
            queue,
            lost: AtomicU64::new(0),
        }
    }

    /// Queues a finished span, or drops it.
    pub(crate) fn keep(&self, record: Record) {
        if self.queue.try_send(record).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
            counter!("kinora_spans_total", "outcome" => "dropped").increment(1);
        }
    }

    /// A new id: the numbers of SplitMix64 repeat only after all 2^64.
    fn id(&self) -> NonZeroU64 {
        let mut mixed = self
            .ids
            .fetch_add(GOLDEN, Ordering::Relaxed)
            .wrapping_add(GOLDEN);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        NonZeroU64::new(mixed ^ (mixed >> 31)).unwrap_or(NonZeroU64::MIN)
    }

    /// Whether the trace with this number is recorded; depends on its low half, which is random.
    pub(crate) fn samples(&self, trace: NonZeroU128) -> bool {
        let low = trace.get() as u64;
        (low as f64) < self.ratio * 2_f64.powi(64)
    }

    /// A span that begins at `begun_ms`, by wall time.
    pub(crate) fn record(
        &self,
        name: Cow<'static, str>,
        trace: NonZeroU128,
        parent: Option<NonZeroU64>,
        begun_ms: UnixMs,
    ) -> Record {
        Record {
            name,
            kind: Kind::Internal,
            trace,
            id: self.id(),
            parent,
            begun_ms,
            ended_ms: begun_ms,
            attributes: Vec::new(),
            is_error: false,
        }
    }
}
