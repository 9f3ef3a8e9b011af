//! The spans of a task, across all processes that work on it, for an OpenTelemetry collector.
//!
//! 1. [`Tracer`]: begins or continues the trace of a task. [`Trail`]: the parent of further spans.
//! 2. [`Span`]: a piece of work, until it is dropped. Then it goes into a bounded queue.
//! 3. [`Exporter`]: sends the queue in batches (`otlp`) to the collector in the [`Options`].
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

pub use exporter::{Exporter, start};
pub use options::{Options, OptionsError};
pub use span::{Kind, Span, Trail, Value};
pub use tracer::Tracer;
