//! The files of a result: their names for clients, and the ones that were lost on disk although
//! their task is completed. A lost file is reported as lost, never as expired.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use kinora_contract::{Artifact, ErrorCode, StoredFile, TaskId, TaskState};
use kinora_store::TaskStore;

use crate::error::ApiError;

/// One of a result's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultVariant {
    /// The MP4.
    Video,
    /// The poster image.
    Thumbnail,
    /// Frames over time in one picture.
    Spritesheet,
    /// The first frame in full size.
    FirstFrame,
    /// The last frame in full size.
    LastFrame,
}

impl ResultVariant {
    pub(crate) const ALL: [Self; 5] = [
        Self::Video,
        Self::Thumbnail,
        Self::Spritesheet,
        Self::FirstFrame,
        Self::LastFrame,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Thumbnail => "thumbnail",
            Self::Spritesheet => "spritesheet",
            Self::FirstFrame => "first_frame",
            Self::LastFrame => "last_frame",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The variant whose [`Self::query`] begins `query`, that of an address which this service has signed.
    pub(crate) fn from_query(query: &str) -> Self {
        let mut others = Self::ALL.into_iter().filter(|one| *one != Self::Video);
        let found = others.find(|one| query.starts_with(&one.query()));
        found.unwrap_or(Self::Video)
    }

    /// The part of a URL's query before the signature; empty for the default variant.
    pub(crate) fn query(self) -> String {
        match self {
            Self::Video => String::new(),
            _ => format!("variant={}&", self.name()),
        }
    }

    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Video => "video/mp4",
            Self::Thumbnail => "image/webp",
            Self::Spritesheet | Self::FirstFrame | Self::LastFrame => "image/jpeg",
        }
    }

    /// The suffix of a downloaded file's name.
    const fn ending(self) -> &'static str {
        match self {
            Self::Video => ".mp4",
            Self::Thumbnail => ".webp",
            Self::Spritesheet => "-sheet.jpg",
            Self::FirstFrame => "-first.jpg",
            Self::LastFrame => "-last.jpg",
        }
    }

    /// Lets browsers play a file inline, and save it under the name of its task.
    pub(crate) fn disposition(self, task: TaskId) -> String {
        format!("inline; filename=\"{task}{}\"", self.ending())
    }

    /// The file; `None` if the result lacks it.
    pub(crate) const fn file_in(self, artifact: &Artifact) -> Option<&StoredFile> {
        match self {
            Self::Video => Some(&artifact.video),
            Self::Thumbnail => Some(&artifact.thumbnail),
            Self::Spritesheet => Some(&artifact.spritesheet),
            Self::FirstFrame => artifact.first_frame.as_ref(),
            Self::LastFrame => artifact.last_frame.as_ref(),
        }
    }
}

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
            // No order of age is kept: at worst, a file is reported as an error once more.
            logged.clear();
        }
        logged.insert(key.to_owned())
    }

    /// The answer for a file of a completed task that has the length `found`, or is missing. The
    /// task may have been deleted or have expired meanwhile.
    pub(crate) async fn refusal(
        &self,
        tasks: &dyn TaskStore,
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
            TaskState::Completed(artifact) if artifact.files().any(|one| one == file) => {
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
