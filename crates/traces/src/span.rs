//! Spans: a piece of work with its attributes, which ends when dropped, and the queue that
//! finished spans go to. Spans that find no room in the queue are dropped and counted.

use std::borrow::Cow;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kinora_contract::{Clock, TraceContext, UnixMs};
use metrics::counter;
use tokio::sync::mpsc;

/// Work in progress, or nothing if its trace is not recorded.
#[derive(Debug, Default)]
pub struct TaskSpan(Option<(Arc<SpanQueue>, Box<SpanRecord>)>);

impl TaskSpan {
    pub(crate) fn new(shared: Arc<SpanQueue>, record: SpanRecord) -> Self {
        Self(Some((shared, Box::new(record))))
    }

    /// Whether its trace is recorded.
    pub const fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// The parent of spans in other processes.
    pub fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(|(_, record)| TraceContext {
            trace: record.trace,
            span: record.id,
            sampled: true,
        })
    }

    /// The parent of spans in this process.
    pub fn trail(&self) -> SpanParent {
        let parts = self.0.as_ref().zip(self.context());
        SpanParent::new(parts.map(|((shared, _), context)| (shared.clone(), context)))
    }

    /// Sets the role in an exchange.
    #[must_use]
    pub fn with_role(mut self, kind: SpanRole) -> Self {
        if let Some((_, record)) = &mut self.0 {
            record.kind = kind;
        }
        self
    }

    /// Sets an attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        if let Some((_, record)) = &mut self.0 {
            record.attributes.push((name, value.into()));
        }
    }

    /// Marks the work as failed, with a stable code. The first one counts.
    pub fn fail(&mut self, code: impl Into<Cow<'static, str>>) {
        if let Some((_, record)) = &mut self.0
            && !record.is_error
        {
            record.is_error = true;
            let code = AttributeValue::Text(code.into());
            record.attributes.push(("error.type", code));
        }
    }

    /// Discards the span.
    pub fn discard(&mut self) {
        self.0 = None;
    }
}

impl Drop for TaskSpan {
    fn drop(&mut self) {
        if let Some((shared, mut record)) = self.0.take() {
            // The wall clock may have been set back meanwhile.
            record.ended_ms = shared.clock.now_ms().max(record.begun_ms);
            shared.enqueue(*record);
        }
    }
}

/// A place in a trace for further spans, or nothing if it is not recorded.
#[derive(Clone, Debug, Default)]
pub struct SpanParent(Option<(Arc<SpanQueue>, TraceContext)>);

impl SpanParent {
    pub(crate) const fn new(parts: Option<(Arc<SpanQueue>, TraceContext)>) -> Self {
        Self(parts)
    }

    /// Begins a span here.
    pub fn span(&self, name: &'static str) -> TaskSpan {
        let Some((shared, context)) = &self.0 else {
            return TaskSpan::default();
        };
        let now_ms = shared.clock.now_ms();
        let parent = Some(context.span);
        TaskSpan::new(
            shared.clone(),
            shared.record(name.into(), context.trace, parent, now_ms),
        )
    }

    /// Adds a finished span, by wall time.
    pub fn past(&self, name: &'static str, begun_ms: UnixMs, ended_ms: UnixMs) {
        if let Some((shared, context)) = &self.0 {
            let parent = Some(context.span);
            shared.enqueue(SpanRecord {
                ended_ms: ended_ms.max(begun_ms),
                ..shared.record(name.into(), context.trace, parent, begun_ms)
            });
        }
    }
}

/// The role of a span in an exchange, by its number in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanRole {
    /// Internal work.
    Internal = 1,
    /// The answer to a request.
    Server = 2,
    /// A request to another service.
    Client = 3,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Count(u32),
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<u32> for AttributeValue {
    fn from(count: u32) -> Self {
        Self::Count(count)
    }
}

/// The data of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpanRecord {
    pub name: Cow<'static, str>,
    pub kind: SpanRole,
    pub trace: NonZeroU128,
    pub id: NonZeroU64,
    pub parent: Option<NonZeroU64>,
    pub begun_ms: UnixMs,
    pub ended_ms: UnixMs,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    pub is_error: bool,
}

/// The increment of SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Shared by all spans of a process.
#[derive(Debug)]
pub(crate) struct SpanQueue {
    pub clock: Arc<dyn Clock>,
    ratio: f64,
    ids: AtomicU64,
    queue: mpsc::Sender<SpanRecord>,
    /// Number of spans dropped for lack of room since the last reset.
    pub lost: AtomicU64,
}

impl SpanQueue {
    /// `seed` is random: two processes must not produce the same ids. `ratio` is the share of tasks
    /// whose traces are recorded, from 0 to 1.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        seed: u64,
        ratio: f64,
        queue: mpsc::Sender<SpanRecord>,
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
    pub(crate) fn enqueue(&self, record: SpanRecord) {
        // Never waits: the work that a span describes must not depend on the collector.
        if self.queue.try_send(record).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
            counter!("kinora_spans_total", "outcome" => "dropped").increment(1);
        }
    }

    /// A new id: the numbers of SplitMix64 repeat only after all 2^64.
    fn id(&self) -> NonZeroU64 {
        // The counter visits every number once, because the increment is odd; the mixing is a
        // bijection, so ids of a process never repeat.
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
        // The same decision in every process that sees the task, without communication.
        (low as f64) < self.ratio * 2_f64.powi(64)
    }

    /// A span that begins at `begun_ms`, by wall time.
    pub(crate) fn record(
        &self,
        name: Cow<'static, str>,
        trace: NonZeroU128,
        parent: Option<NonZeroU64>,
        begun_ms: UnixMs,
    ) -> SpanRecord {
        SpanRecord {
            name,
            kind: SpanRole::Internal,
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
