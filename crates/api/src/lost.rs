//! Result files that are missing or truncated on disk although their task is completed. The answer
//! says so, and never that the video has expired. The log has one error per file and one line per
//! request.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::{ErrorCode, State, StoredFile, TaskId};
use kinora_store::Tasks;

use crate::error::ApiError;

/// Maximum number of remembered files; beyond it, files are logged as errors again.
const REMEMBERED_MAX: usize = 10_000;

/// The keys of files already logged as lost.
#[derive(Clone, Debug, Default)]
pub struct LostFiles(Arc<Mutex<HashSet<String>>>);

impl LostFiles {
    /// Whether this file has not been logged before.
    fn is_new(&self, key: &str) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= REMEMBERED_MAX {
            logged.clear();
        }
        logged.insert(key.to_owned())
    }

    /// The answer for a file of a completed task that has the length `found`, or is missing. The
    /// task may have been deleted or have expired meanwhile.
    pub(crate) async fn refusal(
        &self,
        tasks: &dyn Tasks,
        id: TaskId,
        file: &StoredFile,
        found: Option<u64>,
    ) -> ApiError {
        let task = match tasks.task(id).await {
            Ok(Some(task)) => task,
            Ok(None) => return ApiError::video_not_found(),
            Err(error) => return error.into(),
        };
        match &task.state {
            State::Completed(artifact) if artifact.files().contains(&file) => {
                if self.is_new(&file.key) {
                    tracing::error!(
                        task = %id,
                        key = file.key,
                        bytes = file.bytes,
                        found,
                        "result file lost: missing or truncated; restore it from a backup"
                    );
                } else {
                    // Lets this answer's request id lead to its cause as well.
                    tracing::info!(task = %id, key = file.key, "result file still lost");
                }
                let message =
                    "A file of this video was lost on the server; it cannot be downloaded.";
                ApiError::new(ErrorCode::ContentLost, message).final_answer()
            }
            _ => ApiError::expired(),
        }
    }
}
