//! `kinora backup`: writes everything that a service needs to continue elsewhere into a folder,
//! while the service runs. The folder has a temporary name until the backup is complete and
//! verified.

pub(crate) mod file_mover;
pub(crate) mod manifest;
pub(crate) mod staging;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use kinora_blobs::folder::{BlobFolder, TransferMethod};
use kinora_contract::{Clock, StoredFile, TaskId};
use kinora_store::{BackupSnapshot, BackupSource, OpenError, TaskFiles, open_snapshot};
use serde::{Deserialize, Serialize};

use crate::cli::{BackupArgs, HomeArgs, ResultsMode};
use crate::config::Config;
use crate::failure::Failure;
use crate::folder::{self, LAST_BACKUP};
use crate::output::{first_names, print};
use crate::progress::ProgressLine;
use crate::system::SystemClock;
use crate::{shell_hint, store_access};
use file_mover::FileMover;
use manifest::{BackupManifest, BackupResults, FORMAT, FileDigest, TaskCounts};
use staging::StagingFolder;
pub(crate) use staging::{create_empty, lock_folder, sync_all_under};

/// File names in a backup, which are also those in a data folder.
pub(crate) const DATABASE: &str = "kinora.db";
pub(crate) const SIGNING_KEY: &str = "signing.key";
pub(crate) const RESULTS: &str = "results";

/// Makes a backup and prints its contents.
pub(crate) fn run(args: &BackupArgs) -> Result<(), Failure> {
    let config = store_access::config(&args.home)?;
    let source = open(&config, &args.home)?;
    refuse_loss(&config, "back up")?;
    let results = results(&config, args.results)?;
    // Everything that can be refused without work has been by now: a folder appears only for a
    // backup that can begin.
    let staging = StagingFolder::create(&args.dest)?;
    let made_at = SystemClock.now_ms() / 1000;
    // Recorded before the work: `kinora doctor` can then report a backup that started and never
    // ended, which a record of successes alone would hide.
    let record = BackupRecord::start(&config.data, staging.to(), made_at);
    let job = BackupJob {
        source: &*source,
        data: &config.data,
        results,
        args,
        made_at,
    };
    let (manifest, notes) = job.make(staging.path())?;
    let to = staging.publish()?;
    record.end(&config.data);
    let report = if args.json {
        manifest.json(&to, &notes)
    } else {
        manifest.summary(&to, &notes)
    };
    print(&report);
    Ok(())
}

/// The folder of the results, or the URL of remote ones, which a backup only records.
fn results(config: &Config, mode: ResultsMode) -> Result<PathBuf, Failure> {
    let root = kinora_blobs::local_root(&config.results_url())
        .map_err(|error| Failure::because("The results cannot be backed up", error))?;
    match root {
        Some(folder) => Ok(std::path::absolute(&folder).unwrap_or(folder)),
        None if mode == ResultsMode::Reference => Ok(config.results_shown().into()),
        None => Err(Failure::new(format!(
            "The results are in {}, which this command cannot copy. Back up all but the results with `--results \
             reference`, and protect the bucket with its own tools: versions or replication.",
            config.results_shown()
        ))),
    }
}

fn open(config: &Config, home: &HomeArgs) -> Result<Box<dyn BackupSource>, Failure> {
    let opened = kinora_store::open_source(&config.store_url());
    opened.map_err(|error| match error {
        OpenError::NotHere => Failure::new(
            "The store is a PostgreSQL database, which PostgreSQL's own tools back up: use `pg_dump`, or base backups \
             with WAL archiving for point-in-time recovery. Back up the results with the tools of their store. \
             `kinora export` writes both into a folder, for another store of any kind.",
        ),
        error => shell_hint::open_failure(error, "serve", home),
    })
}

/// Refuses a store that lacks acknowledged changes: its backup or export would look complete.
/// `verb` is the operation.
pub(crate) fn refuse_loss(config: &Config, verb: &str) -> Result<(), Failure> {
    let loss = match kinora_store::inspect(&config.store_url()) {
        Ok(Some(store)) => store.loss(),
        // The store has no high-water mark yet.
        Ok(None) | Err(OpenError::OlderSchema { .. }) => Ok(None),
        Err(error) => Err(error),
    };
    match loss {
        Ok(None) => Ok(()),
        Ok(Some(loss)) => Err(Failure::new(format!(
            "{loss}. Restore an earlier backup; or start the service once with --accept-loss, then {verb}."
        ))),
        Err(error) => Err(Failure::because("The store cannot be checked", error)),
    }
}

/// A backup in progress.
struct BackupJob<'a> {
    source: &'a dyn BackupSource,
    data: &'a Path,
    results: PathBuf,
    args: &'a BackupArgs,
    made_at: u64,
}

impl BackupJob<'_> {
    /// Fills the folder `to`; the manifest is written last.
    fn make(&self, to: &Path) -> Result<(BackupManifest, Vec<String>), Failure> {
        let database = to.join(DATABASE);
        let progress = ProgressLine::new();
        progress.show_activity("copying the database");
        // The database first, the files after it. A task's files are stored before its row says
        // that it is completed, so each file that the snapshot names exists, unless its task has
        // expired or been deleted since. In the other order, tasks that complete in between would
        // be in the backup without their files.
        self.source
            .snapshot(&database)
            .map_err(|error| Failure::because("The database could not be copied", error))?;
        kinora_system::crash::point("backup.snapshot");
        progress.show_activity("verifying the copy of the database");
        // The copy is checked, and not the original: the copy is what a restore will read, and it
        // stays as it is while the check runs.
        let snapshot = open_snapshot(&database)
            .map_err(|error| Failure::because("The copy of the database is unusable", error))?;
        snapshot
            .check()
            .map_err(|error| Failure::because("The copy of the database is damaged", error))?;
        let key = if snapshot.has_signing_key()? {
            None
        } else {
            Some(self.signing_key(to)?)
        };
        let taken = self.copy_files(&snapshot, to, progress)?;
        let manifest = self.build_manifest(&snapshot, &database, key, taken.0)?;
        // Last, since a folder with a manifest counts as a complete backup.
        manifest.write(to)?;
        kinora_system::crash::point("backup.described");
        Ok((manifest, taken.1))
    }

    /// The key that signs result URLs, if an earlier version left it in a file. Without it, URLs
    /// that were handed out stop working.
    fn signing_key(&self, to: &Path) -> Result<FileDigest, Failure> {
        let from = self.data.join(SIGNING_KEY);
        let path = to.join(SIGNING_KEY);
        fs::read(&from)
            .and_then(|bytes| folder::write_private(&path, &bytes))
            .map_err(|error| Failure::at(&from, "cannot be copied", error))?;
        FileDigest::measure(&path)
    }

    fn copy_files(
        &self,
        snapshot: &BackupSnapshot,
        to: &Path,
        progress: ProgressLine,
    ) -> Result<(CollectedFiles, Vec<String>), Failure> {
        if self.args.results == ResultsMode::Reference {
            return Ok((CollectedFiles::default(), Vec::new()));
        }
        let counts = snapshot.counts()?;
        let from = BlobFolder::new(&self.results);
        let to = BlobFolder::new(&to.join(RESULTS));
        let tasks = counts.completed + counts.unfinished;
        let how = match self.args.results {
            ResultsMode::Copy => TransferMethod::Copy,
            ResultsMode::Link | ResultsMode::Reference => TransferMethod::Link,
        };
        let mut taking = FileCollector {
            source: self.source,
            mover: FileMover::new(from, to, how, self.args.verify),
            progress: progress.with_total(tasks),
            taken: CollectedFiles::default(),
            missing: Vec::new(),
        };
        let unreadable = snapshot.for_each_task(|task| taking.collect(&task))?;
        for file in snapshot.uploads()? {
            taking.collect_upload(file)?;
        }
        taking.end(unreadable)
    }

    fn build_manifest(
        &self,
        snapshot: &BackupSnapshot,
        database: &Path,
        signing_key: Option<FileDigest>,
        taken: CollectedFiles,
    ) -> Result<BackupManifest, Failure> {
        let counts = snapshot.counts()?;
        Ok(BackupManifest {
            format: FORMAT,
            kinora: env!("CARGO_PKG_VERSION").to_owned(),
            made_at: self.made_at,
            schema: snapshot.schema()?,
            tasks: TaskCounts::from_counts(&counts),
            keys: counts.keys,
            database: FileDigest::measure(database)?,
            signing_key,
            results: BackupResults {
                mode: self.args.results,
                from: self.results.clone(),
                files: taken.files,
                bytes: taken.bytes,
                gone: taken.gone,
                gone_uploads: taken.gone_uploads,
                unreadable: taken.unreadable,
            },
            references: taken.references,
        })
    }
}

// Copies the files that a snapshot refers to into the backup. A second look at the store
// distinguishes files that were removed since the snapshot from lost ones.

/// The files that are in the backup, and those that are not.
#[derive(Debug, Default)]
struct CollectedFiles {
    files: u64,
    bytes: u64,
    gone: Vec<TaskId>,
    gone_uploads: Vec<String>,
    unreadable: u64,
    references: Vec<StoredFile>,
}

/// Copies the files of all tasks into the backup.
struct FileCollector<'a> {
    source: &'a dyn BackupSource,
    mover: FileMover,
    progress: ProgressLine,
    taken: CollectedFiles,
    missing: Vec<String>,
}

impl FileCollector<'_> {
    /// Transfers the files of one task.
    fn collect(&mut self, task: &TaskFiles) -> Result<(), Failure> {
        self.progress.step("tasks backed up");
        kinora_system::crash::point("backup.task");
        let mut absent = Vec::new();
        for file in &task.results {
            if !self.mover.transfer_known(file)? {
                absent.push(file.key.clone());
            }
        }
        for key in &task.references {
            match self.mover.transfer_unknown(key)? {
                Some(file) => self.taken.references.push(file),
                // Not fetched yet, or fetched again when needed.
                None if !task.completed => {}
                None => absent.push(key.clone()),
            }
        }
        if absent.is_empty() {
            return Ok(());
        }
        // The snapshot is older than this question. If the live store still has the task's result,
        // its file was lost; if not, the task expired or was deleted meanwhile, and its files went
        // with it.
        if self.source.has_result(task.task)? {
            self.missing.append(&mut absent);
        } else {
            self.taken.gone.push(task.task);
        }
        Ok(())
    }

    /// Transfers an uploaded file.
    fn collect_upload(&mut self, file: StoredFile) -> Result<(), Failure> {
        if self.mover.transfer_known(&file)? {
            return Ok(());
        }
        // As for results: it expired or was deleted since the snapshot, or it is lost.
        if self.source.has_upload(&file.key)? {
            self.missing.push(file.key);
        } else {
            self.taken.gone_uploads.push(file.key);
        }
        Ok(())
    }

    /// The transferred files, and notes for the operator.
    fn end(mut self, unreadable: u64) -> Result<(CollectedFiles, Vec<String>), Failure> {
        // Clears the progress line before an error or a report is printed in its place.
        drop(self.progress);
        if !self.missing.is_empty() {
            return Err(Failure::new(format!(
                "{} files of completed tasks or uploads are missing from the results, so that a backup of them would be \
                 incomplete: {}. Put them back, or delete what names them; `--results reference` backs up all but \
                 the results.",
                self.missing.len(),
                first_names(&self.missing),
            )));
        }
        self.taken.files = self.mover.files;
        self.taken.bytes = self.mover.bytes;
        self.taken.unreadable = unreadable;
        let (gone, gone_uploads) = (self.taken.gone.len(), self.taken.gone_uploads.len());
        let notes = [
            (self.mover.fallback.as_ref())
                .map(|error| format!("files were copied, since they cannot be linked: {error}")),
            (gone > 0).then(|| {
                format!("{gone} tasks were deleted or expired meanwhile; their files are not in the backup")
            }),
            (gone_uploads > 0).then(|| {
                format!("{gone_uploads} uploaded files were deleted or expired meanwhile; they are not in the backup")
            }),
            (unreadable > 0).then(|| {
                format!("{unreadable} tasks cannot be read; their files are not in the backup")
            }),
        ];
        Ok((self.taken, notes.into_iter().flatten().collect()))
    }
}

/// The record of backups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupRecord {
    /// The last complete backup.
    pub(crate) whole: Option<BackupRun>,
    /// A backup that was started and has not ended.
    pub(crate) begun: Option<BackupRun>,
}

/// The start and destination of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupRun {
    /// Start of the backup, in Unix seconds.
    pub(crate) at: u64,
    pub(crate) to: PathBuf,
}

impl BackupRecord {
    /// Reads the record; `None` if it is missing or unreadable.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        let text = fs::read_to_string(data.join(LAST_BACKUP)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Records that a backup has started. If the data folder is not writable, there is no record,
    /// but the backup proceeds.
    fn start(data: &Path, to: &Path, at: u64) -> Self {
        let mut record = Self::read(data).unwrap_or_default();
        let to = to.to_owned();
        record.begun = Some(BackupRun { at, to });
        let _ = record.write(data);
        record
    }

    /// Records that the backup is complete.
    fn end(mut self, data: &Path) {
        self.whole = self.begun.take();
        let _ = self.write(data);
    }

    fn write(&self, data: &Path) -> io::Result<()> {
        let path = data.join(LAST_BACKUP);
        let staged = data.join(format!("{LAST_BACKUP}.{}", std::process::id()));
        fs::write(&staged, format!("{}\n", serde_json::to_string(self)?))?;
        // Lets the service's user read it even if another user made the backup; only root can give
        // it away.
        if let Ok(owner) = fs::metadata(data) {
            let _ = std::os::unix::fs::chown(&staged, Some(owner.uid()), Some(owner.gid()));
        }
        // Renamed into place, so that `kinora doctor` never reads half a record. There is no sync:
        // losing the record costs a note of the doctor, and no data.
        fs::rename(&staged, &path)
    }
}
