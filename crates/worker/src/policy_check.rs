//! The third step of a run: asks the operator's policy service about a result before any part of it
//! is published. Only an [`ApprovedRecording`] can be published, so an unchecked one never is, even if
//! the process dies.

use std::path::Path;
use std::time::Duration;

use kinora_contract::limits::POLICY_RESULT_SECONDS;
use kinora_contract::{Failure, FailureCode, Stopwatch};
use kinora_policy::{PolicyError, PolicyService, PolicyVerdict, QuestionSubject, ResultSummary};

use crate::error::RunEnd;
use crate::record::RecordedVideo;
use crate::task_run::TaskRun;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A recording that may be published.
pub(crate) struct ApprovedRecording(RecordedVideo);

impl ApprovedRecording {
    pub(crate) fn into_recorded(self) -> RecordedVideo {
        self.0
    }
}

impl TaskRun<'_> {
    /// Clears the recording while the lease is held. Without a policy service, every recording is
    /// cleared.
    pub(crate) async fn clear(&self, recorded: RecordedVideo) -> Result<ApprovedRecording, RunEnd> {
        let Some(policy) = &self.worker.policy else {
            return Ok(ApprovedRecording(recorded));
        };
        let asking = ask_policy(policy, &recorded, self);
        match self.unless_stopped(None, asking).await? {
            Ok(PolicyVerdict::Allowed) => Ok(ApprovedRecording(recorded)),
            Ok(PolicyVerdict::Refused(reason)) => {
                tracing::info!("result refused by policy");
                Err(RunEnd::Refused(Failure::new(
                    FailureCode::ContentPolicy,
                    reason,
                )))
            }
            Err(error) => {
                tracing::error!(%error, "policy service did not answer; task failed");
                Err(RunEnd::Refused(FailureCode::PolicyUnavailable.into()))
            }
        }
    }
}

/// Repeats the question until there is an answer or the time is up.
async fn ask_policy(
    policy: &PolicyService,
    recorded: &RecordedVideo,
    run: &TaskRun<'_>,
) -> Result<PolicyVerdict, PolicyError> {
    let task = &run.claim.task;
    let subject = QuestionSubject::new(&task.project, &task.spec, &task.metadata);
    let path = absolute(recorded.staged.path());
    let recording = &recorded.recording;
    let made = ResultSummary {
        task_id: task.id,
        engine: &run.engine_name,
        duration: recording.info.duration_seconds,
        bytes: recorded.written.bytes,
        sha256: &recorded.written.sha256,
        path: &path,
        thumbnail: &recording.poster_webp,
        spritesheet: &recording.spritesheet_jpeg,
    };
    let begun = Stopwatch::start(&run.worker.patience);
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match policy.judge_result(&subject, &made).await {
            Ok(verdict) => return Ok(verdict),
            Err(error) => error,
        };
        if begun.elapsed() + pause > Duration::from_secs(POLICY_RESULT_SECONDS) {
            return Err(error);
        }
        tracing::warn!(%error, ?pause, "policy service did not answer; retrying");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// The scratch folder may be relative to this process's working directory.
fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    path.to_string_lossy().into_owned()
}
