//! The limit of the main memory of an engine's process, which holds from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Clock, FailureCode, Stopwatch};
use kinora_engine::EngineError;

use crate::process::EngineProcess;

/// Time between checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Checks what a process and its group hold.
pub(crate) struct MemoryLimit<'a> {
    process: &'a EngineProcess,
    /// In bytes, resident. `None`: limited only by the system.
    most: Option<u64>,
    checked: Stopwatch,
}

impl<'a> MemoryLimit<'a> {
    pub(crate) fn of(
        process: &'a EngineProcess,
        most: Option<u64>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        Self {
            process,
            most,
            checked: Stopwatch::start(clock),
        }
    }

    /// Checks, if it is time. After an error the process must be killed.
    ///
    /// # Errors
    /// [`EngineError::Crashed`] with `out_of_memory`.
    pub(crate) fn check(&mut self) -> Result<(), EngineError> {
        let Some(most) = self
            .most
            .filter(|_| self.checked.elapsed() >= CHECK_INTERVAL)
        else {
            return Ok(());
        };
        self.checked.restart();
        match self.process.resident_bytes() {
            Some(held) if held > most => Err(EngineError::Crashed {
                code: FailureCode::OutOfMemory,
                cause: format!("killed at {held} bytes of memory, of {most} allowed"),
            }),
            _ => Ok(()),
        }
    }
}
