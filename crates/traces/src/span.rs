//! A piece of work with its attributes. It ends when it is dropped, however far the work got.

use std::borrow::Cow;
use std::sync::Arc;

use kinora_contract::{TraceContext, UnixMs};

use crate::record::{Kind, Record, Value};
use crate::shared::Shared;

/// Work in progress, or nothing if its trace is not recorded.
#[derive(Debug, Default)]
pub struct Span(Option<(Arc<Shared>, Box<Record>)>);

impl Span {
    pub(crate) fn of(shared: Arc<Shared>, record: Record) -> Self {
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
    pub fn trail(&self) -> Trail {
        let parts = self.0.as_ref().zip(self.context());
        Trail::of(parts.map(|((shared, _), context)| (shared.clone(), context)))
    }

    /// Sets the role in an exchange.
    #[must_use]
    pub fn of_kind(mut self, kind: Kind) -> Self {
        if let Some((_, record)) = &mut self.0 {
            record.kind = kind;
        }
        self
    }

    /// Sets an attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
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
            let code = Value::Text(code.into());
            record.attributes.push(("error.type", code));
        }
    }

    /// Discards the span.
    pub fn discard(&mut self) {
        self.0 = None;
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some((shared, mut record)) = self.0.take() {
            record.ended_ms = shared.clock.now_ms().max(record.begun_ms);
            shared.keep(*record);
        }
    }
}

/// A place in a trace for further spans, or nothing if it is not recorded.
#[derive(Clone, Debug, Default)]
pub struct Trail(Option<(Arc<Shared>, TraceContext)>);

impl Trail {
    pub(crate) const fn of(parts: Option<(Arc<Shared>, TraceContext)>) -> Self {
        Self(parts)
    }

    /// Begins a span here.
    pub fn span(&self, name: &'static str) -> Span {
        let Some((shared, context)) = &self.0 else {
            return Span::default();
        };
        let now_ms = shared.clock.now_ms();
        let parent = Some(context.span);
        Span::of(
            shared.clone(),
            shared.record(name.into(), context.trace, parent, now_ms),
        )
    }

    /// Adds a finished span, by wall time.
    pub fn past(&self, name: &'static str, begun_ms: UnixMs, ended_ms: UnixMs) {
        if let Some((shared, context)) = &self.0 {
            let parent = Some(context.span);
            shared.keep(Record {
                ended_ms: ended_ms.max(begun_ms),
                ..shared.record(name.into(), context.trace, parent, begun_ms)
            });
        }
    }
}
