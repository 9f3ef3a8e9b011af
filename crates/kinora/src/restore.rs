//! `kinora restore`: restores a backup into an empty data folder, after verifying it. It works in a
//! subfolder, and moves the complete result into place at the end; `kinora serve` refuses a data
//! folder with that subfolder.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use kinora_blobs::folder::{BlobFolder, TransferMethod};
use kinora_contract::{StoredFile, TaskId};
use kinora_store::{BackupSnapshot, TaskFiles, mark_key, open_snapshot};

use crate::backup::file_mover::FileMover;
use crate::backup::manifest::{BackupManifest, FileDigest, TaskCounts};
use crate::backup::{DATABASE, RESULTS, SIGNING_KEY, create_empty, lock_folder, sync_all_under};
use crate::cli::{HomeArgs, RestoreArgs, ResultsMode};
use crate::failure::Failure;
use crate::manifest_file::open_plain;
use crate::output::{count, print};
use crate::progress::ProgressLine;
use crate::{folder, shell_hint};

/// Restores a backup, and prints the next step.
pub(crate) fn run(args: &RestoreArgs) -> Result<(), Failure> {
    let manifest = BackupManifest::read(&args.source)?;
    // The files are collected inside the data folder, hence on its file system: publishing is a few
    // renames and not a second copy of everything.
    let target = RestoreTarget::create(&args.data)?;
    let mover = fill_target(&manifest, &args.source, &target.inside)?;
    target.publish()?;
    print(&report(args, &manifest, mover.as_ref()));
    Ok(())
}

/// Copies and verifies everything.
fn fill_target(
    manifest: &BackupManifest,
    source: &Path,
    to: &Path,
) -> Result<Option<FileMover>, Failure> {
    let progress = ProgressLine::new();
    progress.show_activity("verifying the database");
    let key = manifest.signing_key.iter();
    let parts = key.map(|part| (SIGNING_KEY, part));
    let opened = parts
        .chain([(DATABASE, &manifest.database)])
        .map(|(name, part)| {
            let from = source.join(name);
            Ok((name, part, open(&from, part)?, from))
        });
    // Every length is compared before anything is copied.
    for (name, part, mut file, from) in opened.collect::<Result<Vec<_>, Failure>>()? {
        copy(&mut file, &from, &to.join(name), part)?;
    }
    let database = to.join(DATABASE);
    let snapshot = open_snapshot(&database)
        .map_err(|error| Failure::because("The database of the backup is unusable", error))?;
    snapshot
        .check()
        .map_err(|error| Failure::because("The database of the backup is damaged", error))?;
    let counts = snapshot.counts()?;
    // The hash of the database was compared already. This finds a backup whose manifest and
    // database are from two runs, each intact by itself.
    if TaskCounts::from_counts(&counts) != manifest.tasks || counts.keys != manifest.keys {
        return Err(Failure::new(
            "The backup is damaged: its database does not match backup.json.",
        ));
    }
    if manifest.results.mode == ResultsMode::Reference {
        return Ok(None);
    }
    let progress = progress.with_total(counts.completed + counts.unfinished);
    restore_files(manifest, &snapshot, source, to, progress).map(Some)
}

/// Opens a file of the backup that has the length of `part`.
fn open(path: &Path, part: &FileDigest) -> Result<File, Failure> {
    let file = open_plain(path);
    let measured = file.and_then(|file| Ok((file.metadata()?.len(), file)));
    match measured {
        Ok((bytes, file)) if bytes == part.bytes => Ok(file),
        Ok(_) => Err(damaged(path)),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn copy(from: &mut File, path: &Path, to: &Path, part: &FileDigest) -> Result<(), Failure> {
    // No more than was measured, even if it grows meanwhile.
    let mut from = from.take(part.bytes);
    File::create_new(to)
        .and_then(|mut to| io::copy(&mut from, &mut to))
        .map_err(|error| unreadable(path, &error))?;
    if FileDigest::measure(to)? != *part {
        return Err(damaged(path));
    }
    Ok(())
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::at(path, "cannot be copied", error)
}

fn damaged(path: &Path) -> Failure {
    Failure::new(format!(
        "{} is damaged: its length or SHA-256 differs from backup.json.",
        path.display()
    ))
}

/// Compares the lengths of all files of tasks, which must be regular ones, before one is copied.
fn check_lengths(
    manifest: &BackupManifest,
    snapshot: &BackupSnapshot,
    from: &BlobFolder,
) -> Result<(), Failure> {
    snapshot.for_each_task(|task: TaskFiles| {
        let mut files = task.results.iter();
        files.try_for_each(|file| check_length(from, file))
    })?;
    let others = snapshot.uploads()?;
    let mut others = manifest.references.iter().chain(&others);
    others.try_for_each(|file| check_length(from, file))
}

fn check_length(from: &BlobFolder, file: &StoredFile) -> Result<(), Failure> {
    match from.plain_bytes(&file.key) {
        Ok(Some(bytes)) if bytes != file.bytes => Err(Failure::new(format!(
            "The file {} is damaged: it has {bytes} bytes instead of {}.",
            file.key, file.bytes
        ))),
        // What is missing may be gone by right.
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::because(
            format!("The file {} cannot be restored", file.key),
            error,
        )),
    }
}

/// Copies the files of all tasks; reads and compares each.
fn restore_files(
    manifest: &BackupManifest,
    snapshot: &BackupSnapshot,
    source: &Path,
    to: &Path,
    mut progress: ProgressLine,
) -> Result<FileMover, Failure> {
    let results = to.join(RESULTS);
    let [from, to] = [&source.join(RESULTS), &results].map(|root| BlobFolder::new(root));
    check_lengths(manifest, snapshot, &from)?;
    let gone: BTreeSet<TaskId> = manifest.results.gone.iter().copied().collect();
    // Linked where possible, and hashed in any case: a backup may be years old, and a restore is
    // the last moment to notice that a file in it has rotted.
    let mut mover = FileMover::new(from, to, TransferMethod::Link, true);
    snapshot.for_each_task(|task: TaskFiles| {
        progress.step("tasks restored");
        for file in &task.results {
            if !mover.transfer_known(file)? && !gone.contains(&task.task) {
                return Err(missing(&file.key));
            }
        }
        Ok::<(), Failure>(())
    })?;
    for file in &manifest.references {
        if !mover.transfer_known(file)? {
            return Err(missing(&file.key));
        }
    }
    for file in snapshot.uploads()? {
        let is_gone = manifest.results.gone_uploads.contains(&file.key);
        if !mover.transfer_known(&file)? && !is_gone {
            return Err(missing(&file.key));
        }
    }
    // As the store would: it takes results without its mark for another store's.
    if let Some(identity) = snapshot.identity()? {
        let mark = mark_key(identity);
        BlobFolder::new(&results)
            .put_empty(&mark)
            .map_err(|error| {
                Failure::because(format!("The file {mark} cannot be created"), error)
            })?;
    }
    if mover.files != manifest.results.files {
        return Err(Failure::new(format!(
            "The backup is damaged: it has {} files of results and references, but backup.json lists {}.",
            mover.files, manifest.results.files
        )));
    }
    Ok(mover)
}

fn missing(key: &str) -> Failure {
    Failure::new(format!("The backup is damaged: the file {key} is missing."))
}

fn report(args: &RestoreArgs, manifest: &BackupManifest, mover: Option<&FileMover>) -> String {
    let home = HomeArgs {
        data: Some(args.data.clone()),
        config: None,
    };
    let files = match mover {
        Some(mover) => format!(
            "{} of results and references ({} MiB)",
            count(mover.files, "file"),
            mover.bytes >> 20
        ),
        None if manifest.results.from.starts_with("s3:") => format!(
            "no results, which the backup only names. Stop the service that uses {0}, and name {0} as results.url in \
             the configuration",
            manifest.results.from.display()
        ),
        None => format!(
            "no results, which the backup only names. Put {} at {}, or stop the service that uses it and name it as \
             results.url in the configuration",
            manifest.results.from.display(),
            args.data.join(RESULTS).display()
        ),
    };
    format!(
        "Restored {}, {}, the signing key and {files}.\n\
         Unfinished tasks run when the service starts. Start it as the user who owns the folder, with the \
         configuration that it had:\n\n  {}\n",
        count(manifest.tasks.total(), "task"),
        count(manifest.keys, "key"),
        shell_hint::command("serve", &home)
    )
}

/// A data folder that stays unchanged until the restore is complete.
struct RestoreTarget {
    data: PathBuf,
    inside: PathBuf,
    /// The subfolder, locked.
    folder: File,
    /// Whether the data folder was created for this restore.
    made: bool,
    published: bool,
}

impl RestoreTarget {
    fn create(data: &Path) -> Result<Self, Failure> {
        let shown = data.display();
        let failed = |error: io::Error| Failure::because(format!("{shown} cannot be used"), error);
        let inside = folder::restoring_folder(data);
        let made = match fs::read_dir(data) {
            Ok(entries) => {
                // Many file systems have this folder at their root.
                let holds_something = entries
                    .filter_map(Result::ok)
                    .any(|entry| entry.file_name() != "lost+found");
                // From an interrupted restore.
                let left = inside.exists();
                if holds_something && (!left || has_lock_file(data)) {
                    return Err(Failure::new(format!(
                        "{shown} is not empty. Name a new folder, or empty this one first."
                    )));
                }
                if left {
                    let other = File::open(&inside)
                        .and_then(|folder| lock_folder(&folder).map(|()| folder));
                    // Held while the remains are cleared, so that two restores into one folder
                    // cannot clear each other's files.
                    let _other = other.map_err(failed)?;
                    remove_remains(data).map_err(failed)?;
                }
                false
            }
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(failed(error)),
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(data).map_err(failed)?;
        let folder = create_empty(&inside).map_err(failed)?;
        Ok(Self {
            data: data.to_owned(),
            inside,
            folder,
            made,
            published: false,
        })
    }

    /// Syncs everything and moves it into place; removes the subfolder last.
    fn publish(mut self) -> Result<(), Failure> {
        self.move_into_place()
            .map_err(|error| Failure::at(&self.data, "cannot be used", error))?;
        self.published = true;
        Ok(())
    }

    fn move_into_place(&self) -> io::Result<()> {
        sync_all_under(&self.folder)?;
        kinora_system::crash::point("restore.synced");
        // The database last. A folder without one is no store, so if power fails between two
        // renames, no process can serve tasks whose results are not in place yet. Until the
        // end, the subfolder marks the data folder as unfinished, and `kinora serve` refuses
        // it.
        for name in [RESULTS, SIGNING_KEY, DATABASE] {
            match fs::rename(self.inside.join(name), self.data.join(name)) {
                Err(error) if error.kind() == ErrorKind::NotFound && name != DATABASE => {}
                moved => moved?,
            }
            kinora_system::crash::point("restore.moved");
        }
        File::open(&self.data)?.sync_all()?;
        if self.made {
            let data = std::path::absolute(&self.data)?;
            File::open(data.parent().unwrap_or(&data))?.sync_all()?;
        }
        // `remove_dir` fails on a folder that is not empty: nothing that was forgotten above is
        // deleted.
        fs::remove_dir(&self.inside)?;
        File::open(&self.data)?.sync_all()
    }
}

impl Drop for RestoreTarget {
    fn drop(&mut self) {
        if !self.published {
            // Otherwise the next restore removes it.
            let _ = remove_remains(&self.data);
            if self.made {
                let _ = fs::remove_dir(&self.data);
            }
        }
    }
}

/// Whether a service has run on the folder, which is impossible with an unfinished restore.
fn has_lock_file(data: &Path) -> bool {
    data.join(format!("{DATABASE}.lock")).exists()
}

/// Removes the files of an unfinished restore from the data folder, and finally the subfolder.
fn remove_remains(data: &Path) -> io::Result<()> {
    for name in [DATABASE, SIGNING_KEY] {
        folder::remove_if_present(&data.join(name))?;
    }
    for folder in [data.join(RESULTS), folder::restoring_folder(data)] {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
