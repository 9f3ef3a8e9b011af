//! Everything that is logged in this thread, as text.

use std::fmt::Debug;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Metadata, Subscriber};

#[derive(Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<String>>);

impl Logs {
    /// Everything that this thread logs until both guards are dropped. With one dispatcher alone, `tracing` asks that
    /// of the thread which logs first at a place, and other tests' threads have none.
    pub(crate) fn start() -> (Self, Dispatch, DefaultGuard) {
        let logs = Self::default();
        let second = Dispatch::new(Self::default());
        let guard = tracing::subscriber::set_default(logs.clone());
        (logs, second, guard)
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

struct Words<'a>(&'a mut String);

impl Visit for Words<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Logs {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        attributes.record(&mut Words(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Words(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Words(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
