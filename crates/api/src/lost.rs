//! Files of completed tasks that are not as they were stored: gone or cut behind the service's back.
//! The answer says so, never that the video has expired. The log has one error for each file, and a line for
//! each request.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::{ErrorCode, State, StoredFile, TaskId};
use kinora_store::Tasks;

use crate::error::ApiError;

/// Maximum number of remembered files; past it every file is logged as an error again.
const REMEMBERED_MAX: usize = 10_000;

/// The keys of files that were logged as lost.
#[derive(Clone, Debug, Default)]
pub struct LostFiles(Arc<Mutex<HashSet<String>>>);

impl LostFiles {
    /// Whether this file was not logged before.
    fn is_new(&self, key: &str) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= REMEMBERED_MAX {
            logged.clear();
        }
        logged.insert(key.to_owned())
    }

    /// The answer where a file of a task that was completed has the length `found` instead of its own, or
    /// is not there: the task may have been deleted or have expired meanwhile.
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
                        "result file lost: it is gone or cut; restore it from a backup"
                    );
                } else {
                    // So that this answer's request id leads to its cause as well.
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
