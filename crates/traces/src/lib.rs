//! The spans of a task, across all processes that work on it, for an OpenTelemetry collector.
//!
//! 1. [`TaskTracer`]: begins or continues the trace of a task. [`SpanParent`]: the parent of further spans.
//! 2. [`TaskSpan`]: a piece of work, until it is dropped. Then it goes into a bounded queue.
//! 3. [`SpanExporter`]: sends the queue in batches (`otlp`) to the collector in the [`TraceOptions`].
//!
//! Tracing never delays anything: spans that find no room in the queue are dropped and counted. A
//! tracer without a collector keeps nothing. Prompts, URLs and keys must never appear in a span.

#![forbid(unsafe_code)]

mod collector;
mod exporter;
mod options;
mod otlp;
mod span;
mod tracer;

pub use exporter::{SpanExporter, start};
pub use options::{TraceOptions, TraceOptionsError};
pub use span::{AttributeValue, SpanParent, SpanRole, TaskSpan};
pub use tracer::TaskTracer;
