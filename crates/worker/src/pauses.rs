//! The pauses that claims obey. They are read again before a claim once they are half a second old, so
//! a pause holds within two seconds however long the worker was busy. While the store cannot be read,
//! the last answer holds; before the first answer nothing is claimed, so a pause outlives a restart.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Clock;
use kinora_store::{OutageLog, PauseStore, Pauses};

use crate::worker::Worker;

/// Maximum age of the answer when a claim begins.
const AGE_MAX: Duration = Duration::from_millis(500);

/// The pauses as last read.
pub(crate) struct ObeyedPauses {
    store: Arc<dyn PauseStore>,
    clock: Arc<dyn Clock>,
    outage: OutageLog,
    /// Time of the last question, by the steady clock.
    asked: Option<Duration>,
    /// `None` until the store has answered once.
    known: Option<Pauses>,
}

impl ObeyedPauses {
    pub(crate) fn new(worker: &Worker) -> Self {
        Self {
            store: worker.pauses.clone(),
            clock: worker.patience.clone(),
            outage: OutageLog::new("readings of pauses", &worker.clock),
            asked: None,
            known: None,
        }
    }

    /// The pauses to obey now; `None` if nothing is known of them.
    pub(crate) async fn current(&mut self) -> Option<Pauses> {
        let now = self.clock.steady();
        let is_fresh = |asked| now.saturating_sub(asked) < AGE_MAX;
        if !self.asked.is_some_and(is_fresh) {
            // After a failure too: hints of new tasks must not make a store in trouble answer each.
            self.asked = Some(now);
            match self.store.pauses().await {
                Ok(pauses) => {
                    self.outage.record_success();
                    self.learn(pauses);
                }
                Err(error) => self.outage.record_failure(&error),
            }
        }
        self.known.clone()
    }

    fn learn(&mut self, pauses: Pauses) {
        let before = self.known.replace(pauses.clone());
        if before.unwrap_or_default() == pauses {
            return;
        }
        let models = pauses.iter().map(|one| one.model.as_deref());
        let models: Vec<&str> = models.map(|model| model.unwrap_or("all")).collect();
        tracing::info!(?models, "paused models changed");
    }
}
