//! Receives the library's call-backs during a call: progress and previews for the caller, lines for
//! the log, and the last warnings as the cause of a failure.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kinora_engine::{EngineError, JobControl, RgbPicture, WorkStage};

use crate::progress::Tracker;

/// Maximum number of stored warnings.
const COMPLAINTS_MAX: usize = 8;

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Debug,
    Info,
    Warning,
    Error,
}

/// The listener of one call, used from any of the library's threads.
pub(super) struct Listener<'a> {
    control: &'a JobControl,
    tracker: Mutex<Tracker>,
    complaints: Mutex<VecDeque<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Listener<'a> {
    /// A listener for a call with `steps` denoising steps.
    pub(super) fn new(steps: u32, control: &'a JobControl) -> Self {
        Self {
            control,
            tracker: Mutex::new(Tracker::new(steps)),
            complaints: Mutex::new(VecDeque::new()),
        }
    }

    pub(super) fn line(&self, level: Level, text: &str) {
        let text = text.trim_end();
        match level {
            Level::Debug => tracing::trace!(target: "stable_diffusion", "{text}"),
            Level::Info => tracing::debug!(target: "stable_diffusion", "{text}"),
            Level::Warning => tracing::warn!(target: "stable_diffusion", "{text}"),
            Level::Error => tracing::error!(target: "stable_diffusion", "{text}"),
        }
        if matches!(level, Level::Warning | Level::Error) {
            let mut complaints = lock(&self.complaints);
            if complaints.len() == COMPLAINTS_MAX {
                complaints.pop_front();
            }
            complaints.push_back(text.to_owned());
        }
        // The library says what it is doing only in its log.
        let mut tracker = lock(&self.tracker);
        let before = tracker.fraction();
        tracker.log(text);
        if tracker.fraction() > before {
            self.report(&tracker);
        }
    }

    pub(super) fn count(&self, step: u32, of: u32) {
        let mut tracker = lock(&self.tracker);
        let before = tracker.steps_done();
        tracker.count(step, of);
        let after = tracker.steps_done();
        if after > before {
            tracing::debug!(step = after, "denoising step done");
        }
        // Report even without progress, as a sign of life.
        self.report(&tracker);
    }

    pub(super) fn preview(&self, picture: RgbPicture) {
        self.control.preview.show(picture);
    }

    /// A cancel has no effect here; the caller checks for it when the library returns.
    fn report(&self, tracker: &Tracker) {
        let _ = self
            .control
            .report(WorkStage::Generating, tracker.fraction());
    }

    /// The error of a failed call: `what`, with the last warnings.
    pub(super) fn failure(&self, what: &str) -> EngineError {
        let complaints: Vec<String> = lock(&self.complaints).iter().cloned().collect();
        let cause = if complaints.is_empty() {
            what.to_owned()
        } else {
            format!("{what}: {}", complaints.join(" | "))
        };
        if reports_exhausted_memory(&cause) {
            EngineError::OutOfMemory(cause)
        } else {
            EngineError::Failed(cause)
        }
    }
}

/// How ggml's backends and the library report exhausted memory.
fn reports_exhausted_memory(cause: &str) -> bool {
    let cause = cause.to_lowercase();
    let words = [
        "out of memory",
        "out of device memory",
        "outofdevicememory",
        "insufficient memory",
        "failed to allocate",
        "alloc failed",
        "allocation failed",
        "bad_alloc",
    ];
    words.iter().any(|word| cause.contains(word))
        || (cause.contains("alloc") && cause.contains("fail"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_reports_exhausted_memory_is_one_of_memory() {
        let control = JobControl::default();
        let said = |line: &str| {
            let listener = Listener::new(1, &control);
            listener.line(Level::Error, line);
            listener.failure("nothing came")
        };
        for line in [
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 900.00 MiB on device 0: cudaMalloc failed: out of memory\n",
            "failed to alloc compute buffer: allocation of size 1 failed",
        ] {
            assert!(matches!(said(line), EngineError::OutOfMemory(_)), "{line}");
        }
        let other = said("model metadata validation failed\n");
        let EngineError::Failed(cause) = other else {
            panic!("{other}");
        };
        assert_eq!(cause, "nothing came: model metadata validation failed");
    }

    #[test]
    fn only_the_last_complaints_are_kept() {
        let control = JobControl::default();
        let listener = Listener::new(1, &control);
        for number in 0..50 {
            listener.line(Level::Warning, &format!("w{number}"));
        }
        let cause = listener.failure("x").to_string();
        assert!(cause.contains("w42") && cause.contains("w49") && !cause.contains("w41"));
    }
}
