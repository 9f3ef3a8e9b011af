//! The number of messages that an engine's process may send in a job, or while it opens: far more than any needs, and few
//! enough that reading them costs the service little.

use std::sync::Arc;

use kinora_contract::limits::{ENGINE_MESSAGES_MAX, ENGINE_MESSAGES_PER_SECOND_MAX};
use kinora_contract::{Clock, FailureCode, Stopwatch};
use kinora_engine::EngineError;

pub(crate) struct MessageRate {
    told: u64,
    begun: Stopwatch,
}

impl MessageRate {
    pub(crate) fn from_now(clock: &Arc<dyn Clock>) -> Self {
        Self {
            told: 0,
            begun: Stopwatch::start(clock),
        }
    }

    /// Counts a message.
    ///
    /// # Errors
    /// [`EngineError::Crashed`] for one too many; the process must be killed.
    pub(crate) fn count(&mut self) -> Result<(), EngineError> {
        self.told += 1;
        let more = self.begun.elapsed().as_secs() * ENGINE_MESSAGES_PER_SECOND_MAX;
        if self.told > ENGINE_MESSAGES_MAX + more {
            return Err(EngineError::Crashed {
                code: FailureCode::GenerationFailed,
                cause: "engine process killed: it sends too many messages".to_owned(),
            });
        }
        Ok(())
    }
}
