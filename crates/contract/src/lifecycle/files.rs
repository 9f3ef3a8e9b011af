//! The blob keys of all files; no other code knows their layout. The worker uses them to store
//! files, and the store records them as garbage in the transaction that makes them useless.

use super::event::Lease;
use crate::id::{FileId, TaskId};
use crate::spec::{ReferenceItem, VideoSpec};
use crate::task::{Task, TaskState};

/// Results: `videos/TASK/TOKEN/NAME`.
const RESULTS: &str = "videos/";
/// Fetched references: `references/TASK/INDEX`.
const REFERENCES: &str = "references/";
/// Every key of a task's file begins with one of these.
pub const TASK_FILES: [&str; 2] = [RESULTS, REFERENCES];
/// Files that callers upload: `uploads/FILE`.
pub const UPLOADS: &str = "uploads/";
/// Every key of a store's mark begins with this.
pub const MARKS: &str = "stores/";

impl Lease {
    /// Files that a run under this lease publishes: video, thumbnail, spritesheet, first and last
    /// frame. The keys contain the token, so no two attempts share one. They are garbage if the lease
    /// ends in any other way than with a completed task.
    #[must_use]
    pub fn file_keys(&self) -> [String; 5] {
        [
            "video.mp4",
            "thumbnail.webp",
            "spritesheet.jpg",
            "first_frame.jpg",
            "last_frame.jpg",
        ]
        .map(|name| format!("{RESULTS}{}/{}/{name}", self.task, self.token))
    }
}

/// The fetched references of a task, in the order of [`crate::VideoInputs::references`]. All attempts
/// use them, and they are garbage once the task has ended; those of a completed draft are kept as
/// long as the draft, for its final.
#[must_use]
pub fn reference_keys(task: &Task) -> Vec<String> {
    reference_keys_for(task.id, &task.spec)
}

/// The references that are kept for `task` now: while it is unfinished, and for a draft's final.
#[must_use]
pub fn kept_reference_keys(task: &Task) -> Vec<String> {
    if keeps_references(task) {
        reference_keys(task)
    } else {
        Vec::new()
    }
}

/// [`reference_keys`] of a task of which only the identifier and the spec are known.
#[must_use]
pub fn reference_keys_for(task: TaskId, spec: &VideoSpec) -> Vec<String> {
    (0..spec.inputs.references().len())
        .map(|index| format!("{REFERENCES}{task}/{index}"))
        .collect()
}

/// The mark that a store leaves beside its results: an empty file, named after the store's own
/// number.
#[must_use]
pub fn mark_key(identity: u64) -> String {
    format!("{MARKS}{identity:016x}")
}

/// The task that a file with this key belongs to; `None` if the key is not a task's.
#[must_use]
pub fn task_of_file(key: &str) -> Option<TaskId> {
    // Both layouts have the task's id as their second component. Anything else in the blob store is
    // not ours to judge.
    let rest = TASK_FILES
        .iter()
        .find_map(|begin| key.strip_prefix(begin))?;
    rest.split_once('/')?.0.parse().ok()
}

/// The kinds of uploaded files, which are those of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// A picture.
    Image,
    /// A sound.
    Audio,
}

/// The key of an uploaded file's bytes. Files of one project with equal bytes share the key of the
/// first.
#[must_use]
pub fn upload_key(file: FileId) -> String {
    format!("{UPLOADS}{file}")
}

/// The uploaded file that the bytes with this key were stored for; `None` if the key is not one of
/// [`upload_key`].
#[must_use]
pub fn upload_of_key(key: &str) -> Option<FileId> {
    key.strip_prefix(UPLOADS)?.parse().ok()
}

/// Bytes charged for a reference until its size is known: the size of most pictures once cropped to
/// their frame, and of 15 s of 16-bit stereo.
const IMAGE_ALLOWANCE_BYTES: u64 = 4 << 20;
const AUDIO_ALLOWANCE_BYTES: u64 = 3 << 20;

/// Charge for a task's references before they are fetched, in bytes.
pub(crate) fn reference_allowance(task: &Task) -> u64 {
    let references = task.spec.inputs.references();
    references
        .iter()
        .map(|reference| match reference {
            ReferenceItem::Image(_) => IMAGE_ALLOWANCE_BYTES,
            ReferenceItem::Audio(_) => AUDIO_ALLOWANCE_BYTES,
        })
        .sum()
}

/// Whether `key` is a file that `task` has, or may still get if it is unfinished.
#[must_use]
pub fn owns_file(task: &Task, key: &str) -> bool {
    match &task.state {
        // An unfinished task may publish files at any moment, under tokens that are not known yet:
        // none of its files is an orphan.
        TaskState::Waiting | TaskState::Running => true,
        TaskState::Completed(artifact) => {
            artifact.files().any(|file| file.key == key)
                || kept_reference_keys(task).iter().any(|own| own == key)
        }
        TaskState::Failed(_) | TaskState::Expired => false,
    }
}

/// Whether a task in this state still needs its references.
pub(crate) fn keeps_references(task: &Task) -> bool {
    match task.state {
        TaskState::Waiting | TaskState::Running => true,
        TaskState::Completed(_) => task.spec.draft,
        TaskState::Failed(_) | TaskState::Expired => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_tells_its_task_and_a_mark_tells_none() {
        let task = TaskId::from_parts(1_760_000_000_000, [7; 10]);
        let lease = Lease { task, token: 9 };
        let reference = format!("{REFERENCES}{task}/0");
        for key in lease.file_keys().iter().chain([&reference]) {
            assert_eq!(task_of_file(key), Some(task), "{key}");
            assert!(TASK_FILES.iter().any(|begin| key.starts_with(begin)));
        }
        let bare = format!("{RESULTS}{task}");
        for key in [&*mark_key(7), "videos/one/2", "videos/", "", &bare] {
            assert_eq!(task_of_file(key), None, "{key}");
        }
        assert!(mark_key(7).starts_with(MARKS));

        let file = FileId::from_parts(1_760_000_000_000, [7; 10]);
        assert_eq!(upload_of_key(&upload_key(file)), Some(file));
        assert_eq!(task_of_file(&upload_key(file)), None);
        assert_eq!(upload_of_key(&format!("{UPLOADS}{task}")), None);
    }
}
