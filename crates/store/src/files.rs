//! The blob keys of a task's files. Both sides know them: the worker puts the files there, and the
//! store notes them as garbage in the transaction that makes them useless.

use kinora_contract::{Reference, State, Task, TaskId, VideoSpec};

use crate::Lease;

impl Lease {
    /// What a run under this lease publishes: video, thumbnail, spritesheet. The keys carry the
    /// token, so that no two attempts share one; they are garbage once the lease ended otherwise
    /// than in a completed task.
    #[must_use]
    pub fn file_keys(&self) -> [String; 3] {
        ["video.mp4", "thumbnail.webp", "spritesheet.jpg"]
            .map(|name| format!("videos/{}/{}/{name}", self.task, self.token))
    }
}

/// The fetched references of a task, in the order of [`kinora_contract::Inputs::references`].
/// They serve every attempt, and are garbage once the task has ended; those of a completed draft
/// are kept as long as the draft, for its final.
#[must_use]
pub fn reference_keys(task: &Task) -> Vec<String> {
    reference_keys_of(task.id, &task.spec)
}

/// The same of a task of which no more is known.
pub(crate) fn reference_keys_of(task: TaskId, spec: &VideoSpec) -> Vec<String> {
    (0..spec.inputs.references().len())
        .map(|index| format!("references/{task}/{index}"))
        .collect()
}

/// The mark that a store leaves beside its results: an empty file, named after the store's own number.
#[must_use]
pub fn mark_key(identity: u64) -> String {
    format!("stores/{identity:016x}")
}

/// Bytes that a reference is charged with until it is known what it takes: what most pictures take
/// once they are cut down to their frame, and 15 s of stereo in 16 bits.
const IMAGE_ALLOWANCE_BYTES: u64 = 4 << 20;
const AUDIO_ALLOWANCE_BYTES: u64 = 3 << 20;

/// What the references of a task are charged with before they are fetched.
pub(crate) fn reference_allowance(task: &Task) -> u64 {
    let references = task.spec.inputs.references();
    let allowance = |reference: &Reference<'_>| match reference {
        Reference::Image(_) => IMAGE_ALLOWANCE_BYTES,
        Reference::Audio(_) => AUDIO_ALLOWANCE_BYTES,
    };
    references.iter().map(allowance).sum()
}

/// Whether `key` is a file that `task` has, or may still get while it is unfinished.
#[must_use]
pub fn names_file(task: &Task, key: &str) -> bool {
    match &task.state {
        State::Waiting | State::Running => true,
        State::Completed(artifact) => {
            let files = [&artifact.video, &artifact.thumbnail, &artifact.spritesheet];
            files.iter().any(|file| file.key == key)
                || keeps_references(task) && reference_keys(task).iter().any(|own| own == key)
        }
        State::Failed(_) | State::Expired => false,
    }
}

/// Whether a task in this state still needs its references.
pub(crate) fn keeps_references(task: &Task) -> bool {
    match task.state {
        State::Waiting | State::Running => true,
        State::Completed(_) => task.spec.draft,
        State::Failed(_) | State::Expired => false,
    }
}
