//! The line from an engine process to the service. The process kills itself once the service
//! stops reading.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Signal, getpid, kill_process};

use crate::message::Told;
use crate::wire::Message;

/// Sends messages to the service.
#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<Mutex<File>>);

impl Line {
    /// A line whose messages go to `output`.
    pub(crate) fn to(output: File) -> Self {
        Self(Arc::new(Mutex::new(output)))
    }

    /// Writes a message. If the service does not read any more, the process ends here.
    pub(crate) fn tell(&self, told: Told) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.write(&mut *output).is_err() {
            die();
        }
    }
}

/// Kills this process immediately. The engine may be in the middle of native code, whose cleanup on
/// a normal exit can hang or crash.
pub(crate) fn die() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    // Unreachable on systems that have the signal.
    std::process::abort()
}
