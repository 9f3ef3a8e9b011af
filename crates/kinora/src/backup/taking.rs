//! Copies the files that a snapshot refers to into the backup. A second look at the store
//! distinguishes files that were removed since the snapshot from lost ones.

use kinora_blobs::folder::{Folder, Transfer};
use kinora_contract::{StoredFile, TaskId};
use kinora_store::{BackupSource, TaskFiles};

use super::mover::Mover;
use super::progress::Progress;
use crate::cli::{BackupArgs, ResultsMode};
use crate::failure::Failure;

/// Maximum number of files named in an error.
const NAMED_MAX: usize = 5;

/// The files in the backup.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) gone: Vec<TaskId>,
    pub(super) unreadable: u64,
    pub(super) references: Vec<StoredFile>,
}

/// The transfer of all files.
pub(super) struct Taking<'a> {
    source: &'a dyn BackupSource,
    mover: Mover,
    progress: Progress,
    taken: Taken,
    missing: Vec<String>,
}

impl<'a> Taking<'a> {
    pub(super) fn new(
        source: &'a dyn BackupSource,
        from: Folder,
        to: Folder,
        args: &BackupArgs,
        progress: Progress,
    ) -> Self {
        let how = match args.results {
            ResultsMode::Copy => Transfer::Copy,
            ResultsMode::Link | ResultsMode::Reference => Transfer::Link,
        };
        Self {
            source,
            mover: Mover::new(from, to, how, args.verify),
            progress,
            taken: Taken::default(),
            missing: Vec::new(),
        }
    }

    /// Transfers the files of one task.
    pub(super) fn take(&mut self, task: &TaskFiles) -> Result<(), Failure> {
        self.progress.step("tasks backed up");
        kinora_crash::point("backup.task");
        let mut absent = Vec::new();
        for file in &task.results {
            if !self.mover.give(file)? {
                absent.push(file.key.clone());
            }
        }
        for key in &task.references {
            match self.mover.take(key)? {
                Some(file) => self.taken.references.push(file),
                // Not fetched yet, or fetched again when needed.
                None if !task.completed => {}
                None => absent.push(key.clone()),
            }
        }
        if absent.is_empty() {
            return Ok(());
        }
        if self.source.has_result(task.task)? {
            self.missing.append(&mut absent);
        } else {
            self.taken.gone.push(task.task);
        }
        Ok(())
    }

    /// The transferred files, and notes for the operator.
    pub(super) fn end(mut self, unreadable: u64) -> Result<(Taken, Vec<String>), Failure> {
        drop(self.progress);
        if !self.missing.is_empty() {
            let named: Vec<&str> = self
                .missing
                .iter()
                .take(NAMED_MAX)
                .map(String::as_str)
                .collect();
            return Err(Failure::new(format!(
                "{} files of completed tasks are missing from the results, so that no backup of them would be \
                 whole: {}{}. Put them back, or delete their tasks; `--results reference` backs up all but \
                 the results.",
                self.missing.len(),
                named.join(", "),
                if self.missing.len() > NAMED_MAX {
                    ", ..."
                } else {
                    ""
                },
            )));
        }
        self.taken.files = self.mover.files;
        self.taken.bytes = self.mover.bytes;
        self.taken.unreadable = unreadable;
        let gone = self.taken.gone.len();
        let notes = [
            (self.mover.fallback.as_ref())
                .map(|error| format!("files were copied, since they cannot be linked: {error}")),
            (gone > 0).then(|| {
                format!("{gone} tasks were deleted or expired meanwhile; their files are not in the backup")
            }),
            (unreadable > 0).then(|| {
                format!("{unreadable} tasks cannot be read; their files are not in the backup")
            }),
        ];
        Ok((self.taken, notes.into_iter().flatten().collect()))
    }
}
