//! What becomes of a run that failed at a place: a device, or a server. A failure that may be the
//! place's goes to another place once, without losing an attempt; the second place's word is final.
//! What the next attempt must know is kept with the task, as its ticket.

use kinora_engine::EngineError;
use kinora_engine::places::{FailedJob, Places};
use kinora_media::MediaError;
use kinora_store::WorkerState;
use serde::{Deserialize, Serialize};

use crate::error::{RecordError, is_engines_fault};
use crate::task_run::TaskRun;

/// Number of runs of one task whose processes said that they are broken; then the task is.
const BROKEN_RUNS_MAX: u32 = 3;
/// Maximum number of failed runs at one place while another worker could run the task: with the
/// growing pauses of a place, about half an hour.
const FAILED_RUNS_MAX: u32 = 30;

/// The failed runs of a task that went back to the queue, instead of a ticket of its engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailedRuns {
    /// Where, each place once. A device's name includes its machine and engine.
    failed_at: Vec<String>,
    runs: u32,
}

/// Who may be at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The task, or this service: final.
    Task,
    /// The place or the task.
    Unclear,
    /// The place, if the job did not break it.
    Broken,
    /// The place; the job was not begun.
    NoPlace,
    /// A process died: another attempt, which counts.
    Crash,
}

impl Blame {
    pub(crate) fn of(error: &RecordError) -> Self {
        match error {
            RecordError::Engine(error) => Self::of_engine(error),
            RecordError::Media(MediaError::Lost(_)) => Self::Crash,
            RecordError::Media(error) if !matches!(error, MediaError::Io(_)) => Self::Unclear,
            _ => Self::Task,
        }
    }

    fn of_engine(error: &EngineError) -> Self {
        match error {
            EngineError::Failed(_) | EngineError::JobFailed { .. } => Self::Unclear,
            EngineError::Sink(cause) if is_engines_fault(&**cause) => Self::Unclear,
            EngineError::Broken(_) => Self::Broken,
            EngineError::NoPlace(_) => Self::NoPlace,
            EngineError::Crashed { .. } => Self::Crash,
            _ => Self::Task,
        }
    }
}

impl FailedRuns {
    /// The failed runs in `ticket`, unless it is an engine's own.
    pub(crate) fn read(ticket: &str) -> Option<Self> {
        serde_json::from_str(ticket).ok()
    }

    pub(crate) fn ticket(&self) -> String {
        serde_json::json!({"failed_at": self.failed_at, "runs": self.runs}).to_string()
    }

    /// Names of the engine's own places in the list, for a worker on this machine.
    fn names(&self, places: &Places, owner: &str) -> Vec<String> {
        let mut names = self.failed_at.clone();
        if !places.are_shared() {
            names = names
                .iter()
                .filter_map(|place| place.strip_prefix(owner)?.strip_prefix('/'))
                .map(str::to_owned)
                .collect();
        }
        names
    }

    fn is_elsewhere(&self, here: &str) -> bool {
        self.failed_at.iter().any(|place| place != here)
    }

    fn and(&self, here: String) -> Self {
        let mut next = self.clone();
        next.runs = next.runs.saturating_add(1);
        if !next.failed_at.contains(&here) {
            next.failed_at.push(here);
        }
        next
    }
}

impl TaskRun<'_> {
    /// Earlier runs of the task that failed at their places.
    fn failed_runs(&self) -> FailedRuns {
        let ticket = self.claim.ticket.as_deref();
        ticket.and_then(FailedRuns::read).unwrap_or_default()
    }

    /// Asks the engine for other places than those at which the task has failed.
    pub(crate) fn avoid_failed_places(&self) {
        if let Some(places) = self.served.engine.places() {
            let names = self.failed_runs().names(places, &self.owner());
            self.control.place.avoid(names);
        }
    }

    /// Records a failed run with its place. Returns what the next attempt must know, or `None` if
    /// the failure is final.
    pub(crate) async fn next_elsewhere(&self, blame: Blame, error: &str) -> Option<FailedRuns> {
        let (places, name) = self.control.place.chosen()?;
        let here = if places.are_shared() {
            name
        } else {
            format!("{}/{name}", self.owner())
        };
        let before = self.failed_runs();
        let has_elsewhere = !places.are_shared() && self.is_served_elsewhere().await;
        let has_other = has_elsewhere || places.count() > 1;
        if blame == Blame::Unclear {
            self.control.place.job_failed(FailedJob {
                key: &self.claim.lease.task.to_string(),
                has_elsewhere,
                has_failed_elsewhere: before.is_elsewhere(&here),
                error,
            });
        }
        let may = match blame {
            Blame::Unclear => {
                let is_first = !before.is_elsewhere(&here) && before.runs < FAILED_RUNS_MAX;
                has_other && is_first && self.served.engine.repeats_failed_jobs()
            }
            Blame::Broken => before.runs + 1 < BROKEN_RUNS_MAX,
            Blame::Crash => has_other,
            Blame::Task | Blame::NoPlace => false,
        };
        may.then(|| before.and(here))
    }

    /// The machine and the engine, which own devices of the same name.
    fn owner(&self) -> String {
        let engine = &self.served.engine.describe().name;
        format!("{}/{engine}", self.worker.settings.origin.host)
    }

    /// Whether another live worker serves the model. If the registry cannot be read, one may.
    async fn is_served_elsewhere(&self) -> bool {
        let model = &self.claim.task.spec.model;
        match self.worker.workers.living().await {
            Ok(living) => living.iter().any(|one| {
                let other = &one.worker;
                let mut models = other.models.iter();
                other.id != self.worker.settings.name
                    && other.state == WorkerState::Serving
                    && models.any(|served| served.model == *model && served.is_available)
            }),
            Err(error) => {
                tracing::debug!(%error, "live workers not read");
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_runs_are_read_back_and_an_engine_s_ticket_is_none() {
        let once = FailedRuns::default().and("host/wan/device 0".to_owned());
        let again = once.and("host/wan/device 0".to_owned());
        assert_eq!((again.runs, again.failed_at.len()), (2, 1));
        assert_eq!(FailedRuns::read(&again.ticket()), Some(again.clone()));
        assert!(!again.is_elsewhere("host/wan/device 0"));
        assert!(again.is_elsewhere("host/wan/device 1"));
        for ticket in [
            r#"{"upstream": "http://a/v1", "id": "video_1"}"#,
            r#"{"comfyui": "http://a", "prompt_id": "1"}"#,
            "half a frame",
        ] {
            assert_eq!(FailedRuns::read(ticket), None, "{ticket}");
        }
    }
}
