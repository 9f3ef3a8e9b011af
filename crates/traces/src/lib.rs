//! The spans of a task, over all processes that have to do with it, for an OpenTelemetry collector.
//!
//! 1. [`Tracer`]: begins the trace of a task, or goes on with it. [`Trail`]: the place of further spans.
//! 2. [`Span`]: a piece of work, from its beginning until it is dropped. A bounded queue takes it from there.
//! 3. [`Exporter`]: sends what the queue holds, in batches (`otlp`), to the collector of the [`Options`].
//!
//! It refuses to hold anything up: what finds no room in the queue is dropped and counted. A tracer without a collector
//! keeps nothing. No prompt, no URL and no key belongs in a span.

#![forbid(unsafe_code)]

mod collector;
mod exporter;
mod options;
mod otlp;
mod record;
mod shared;
mod span;
mod tracer;

pub use exporter::{Exporter, start};
pub use options::{Options, OptionsError};
pub use record::{Kind, Value};
pub use span::{Span, Trail};
pub use tracer::Tracer;
