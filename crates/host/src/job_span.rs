//! The span of the job that a process works on. Threads that log what the process says live as long as it does,
//! longer than a job: they enter the span of the moment for each line, so that each names its task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::Span;

/// A span that changes with the job. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct JobSpan(Arc<Mutex<Span>>);

impl JobSpan {
    /// The span of the caller.
    pub(crate) fn current() -> Self {
        Self(Arc::new(Mutex::new(Span::current())))
    }

    /// From now on, the span of the caller. It stays after the job: its last lines may come late.
    pub(crate) fn follow_caller(&self) {
        *self.lock() = Span::current();
    }

    /// Writes a line of the log as one of the job.
    pub(crate) fn log(&self, line: impl FnOnce()) {
        let span = self.lock().clone();
        span.in_scope(line);
    }

    fn lock(&self) -> MutexGuard<'_, Span> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
