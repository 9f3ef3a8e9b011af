//! Checks the stored data thoroughly and read-only: the database, the files of its tasks, the key
//! that signs their URLs, and the age of the last backup. It does not disturb a running service, and
//! never creates a store. PostgreSQL's own tools check a PostgreSQL database.

use std::path::Path;
use std::sync::Arc;

use kinora_blobs::BlobStore;
use kinora_blobs::sign::SigningSecret;
use kinora_contract::{StoredFile, Task, TaskId, TaskState};
use kinora_store::{OpenError, StoreInspection};
use tokio::runtime::Runtime;

use super::report::Finding;
use super::result_files::{SHOWN_MAX, file_fault, first_few, result_reader, unreadable, uploads};
use crate::backup::{BackupRecord, BackupRun};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::{count, date};
use crate::progress::ProgressLine;
use crate::system::SystemClock;
use crate::{damage, orphans, signing, store_access};

/// Maximum number of files to check again, since their tasks may have been deleted or have expired
/// meanwhile.
const SUSPECTS_MAX: usize = 1000;

type NamedFinding = (&'static str, Finding);

/// Checks all stored data.
pub(super) fn check_store(config: &Config) -> Vec<NamedFinding> {
    let url = config.store_url();
    if kinora_store::is_shared(&url) {
        return check_shared_store(config).unwrap_or_else(|bad| vec![("database", bad)]);
    }
    let store = match kinora_store::inspect(&url) {
        Ok(Some(store)) => store,
        Ok(None) => {
            let none = Finding::Good("none yet; the first `kinora serve` creates it".to_owned());
            return vec![("database", none)];
        }
        Err(OpenError::OlderSchema { .. }) => {
            let older = "from an earlier version; the next `kinora serve` updates it";
            return vec![("database", Finding::Note(older.to_owned()))];
        }
        Err(error) => return vec![("database", damage::open_failure(error).into())],
    };
    let mut stored = StoredTasks::default();
    let database = database(&store, &mut stored);
    let mut found = vec![("database", database), ("results", results(config, &store))];
    found.extend(uploads(config, &store).map(|finding| ("uploads", finding)));
    found.push(("signing key", signing_key(config, &store, &stored)));
    found.push(("orphans", orphan_finding(config)));
    found
}

/// Files that tasks refer to.
#[derive(Debug, Default)]
struct StoredTasks {
    tasks: u64,
    /// Why some tasks cannot be read: the first reasons.
    unreadable: Vec<String>,
    unreadable_count: u64,
}

fn database(store: &StoreInspection, stored: &mut StoredTasks) -> Finding {
    let mut wrong = Vec::new();
    match store.loss() {
        Ok(None) => {}
        Ok(Some(loss)) => wrong.push(damage::describe_loss(&loss)),
        Err(error) => wrong.push(error.to_string()),
    }
    let progress = ProgressLine::new();
    progress.show_activity("checking the database");
    match store.check() {
        Ok(findings) => wrong.extend(findings),
        Err(error) => wrong.push(error.to_string()),
    }
    let mut progress = progress.with_total(store.count().unwrap_or(0));
    let read = store.tasks(&mut |task| {
        stored.tasks += 1;
        progress.step("tasks checked");
        if let Err(error) = task {
            stored.unreadable_count += 1;
            if stored.unreadable.len() < SHOWN_MAX {
                stored.unreadable.push(error.to_string());
            }
        }
    });
    wrong.extend(read.err().map(|error| error.to_string()));
    if stored.unreadable_count > 0 {
        wrong.push(format!(
            "{} cannot be read, for example {}",
            count(stored.unreadable_count, "task"),
            first_few(&stored.unreadable)
        ));
    }
    if wrong.is_empty() {
        return Finding::Good(format!("whole, with {}", count(stored.tasks, "task")));
    }
    Finding::Bad(format!("{}; restore a backup", first_few(&wrong)))
}

fn results(config: &Config, store: &StoreInspection) -> Finding {
    match compare(config, store) {
        Ok((files, wrong)) if wrong.is_empty() => Finding::Good(format!(
            "all {files} files of completed tasks are there, with the right lengths"
        )),
        Ok((_, wrong)) => Finding::Bad(format!("{}; restore a backup", first_few(&wrong))),
        Err(failure) => failure.into(),
    }
}

/// Number of files that completed tasks refer to, and the problems with them.
fn compare(config: &Config, store: &StoreInspection) -> Result<(u64, Vec<String>), Failure> {
    let (runtime, blobs) = result_reader(config)?;
    let marked = runtime.block_on(kinora_worker::is_marked(store, &*blobs));
    let marked = marked.map_err(|error| unreadable(&error))?;
    let looked =
        ResultCheck::check_all(&runtime, store, &*blobs).map_err(|error| unreadable(&error))?;
    let mut wrong = looked.confirm(&runtime, store, &*blobs);
    // After a restore, the results have no mark until the next start.
    if !marked && looked.files > 0 && looked.wrong == looked.files {
        let results = config.results_shown();
        wrong.insert(
            0,
            format!("{results} are not the results of this store: is the volume mounted?"),
        );
    }
    Ok((looked.files, wrong))
}

/// State of the files of all completed tasks.
#[derive(Debug, Default)]
struct ResultCheck {
    files: u64,
    wrong: u64,
    /// The first problems.
    suspects: Vec<(TaskId, StoredFile)>,
}

impl ResultCheck {
    fn check_all(
        runtime: &Runtime,
        store: &StoreInspection,
        blobs: &dyn BlobStore,
    ) -> Result<Self, kinora_store::StoreError> {
        let mut looked = Self::default();
        let mut progress = ProgressLine::new().with_total(store.count().unwrap_or(0));
        store.tasks(&mut |task| {
            progress.step("results checked");
            if let Ok(task) = task {
                looked.check_task(runtime, task, blobs);
            }
        })?;
        Ok(looked)
    }

    fn check_task(&mut self, runtime: &Runtime, task: &Task, blobs: &dyn BlobStore) {
        let TaskState::Completed(artifact) = &task.state else {
            return;
        };
        for file in artifact.files() {
            self.files += 1;
            if runtime.block_on(file_fault(blobs, file)).is_some() {
                self.wrong += 1;
                if self.suspects.len() < SUSPECTS_MAX {
                    self.suspects.push((task.id, file.clone()));
                }
            }
        }
    }

    /// Problems with files that tasks still refer to.
    fn confirm(
        &self,
        runtime: &Runtime,
        store: &StoreInspection,
        blobs: &dyn BlobStore,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        for (id, file) in &self.suspects {
            // A running service may have deleted tasks since the first look. A file counts as
            // missing only if its task still names it, so the doctor reports no damage on a service
            // that works.
            let is_named = match store.task(*id) {
                Ok(None) => false,
                Ok(Some(task)) => matches!(task.state, TaskState::Completed(_)),
                Err(_) => true,
            };
            if is_named {
                wrong.extend(runtime.block_on(file_fault(blobs, file)));
            }
        }
        let more = self.wrong - self.suspects.len() as u64;
        if more > 0 {
            wrong.push(format!("{more} more files are missing or truncated"));
        }
        wrong
    }
}

fn signing_key(config: &Config, store: &StoreInspection, stored: &StoredTasks) -> Finding {
    let own = &config.results.signing_key_file;
    let path = signing::legacy_key_file(&config.data);
    let shown = path.display();
    match store.has_signing_key() {
        Err(error) => return Finding::Bad(error.to_string()),
        Ok(_) if !own.as_os_str().is_empty() => return operator_key(own),
        Ok(true) => return Finding::Good("in the database".to_owned()),
        Ok(false) => {}
    }
    if path.exists() {
        Finding::Good(format!(
            "in {shown}; the next start imports it into the database"
        ))
    } else if stored.tasks == 0 {
        Finding::Good("the next start creates it".to_owned())
    } else {
        Finding::Bad(format!(
            "missing in the database and in {shown}: result URLs that were handed out would stop working; restore a backup"
        ))
    }
}

fn operator_key(path: &Path) -> Finding {
    let shown = path.display();
    match SigningSecret::load(path) {
        Ok(Some(_)) => Finding::Good(format!(
            "{shown}; all processes of the service need the same"
        )),
        Ok(None) => Finding::Bad(format!(
            "the file {shown} in results.signing_key_file does not exist"
        )),
        Err(error) => Finding::Bad(format!("{shown} cannot be read: {error}")),
    }
}

fn orphan_finding(config: &Config) -> Finding {
    match orphans::find_orphans(config, false) {
        Err(failure) => failure.into(),
        Ok(None) => Finding::Note(
            "not checked: another store has left its mark in the same results".to_owned(),
        ),
        Ok(Some(found)) if found.files == 0 => {
            Finding::Good("every result file belongs to a task, or is an uploaded one".to_owned())
        }
        Ok(Some(found)) => Finding::Note(format!(
            "{} result files ({} bytes) without a task; see `kinora orphans`",
            found.files, found.bytes
        )),
    }
}

/// Connects to a shared database as the service would, and reads its live workers.
fn check_shared_store(config: &Config) -> Result<Vec<NamedFinding>, Finding> {
    let runtime = store_access::runtime()?;
    let url = config.store_url();
    let living = runtime.block_on(kinora_store::living_workers(&url, Arc::new(SystemClock)));
    let living = living.map_err(damage::open_failure)?;
    let settings = runtime.block_on(kinora_store::unsafe_settings(&url));
    let settings = settings.map_err(damage::open_failure)?;
    if !settings.is_empty() {
        let settings = settings.join(" and ");
        return Err(Finding::Bad(format!(
            "the server has {settings}: a power loss may take acknowledged tasks. Set it to on in postgresql.conf"
        )));
    }
    let usable = "usable, with the schema of this version; PostgreSQL checks its own files";
    let workers = match living.len() as u64 {
        0 => Finding::Note(
            "none: accepted tasks wait. Start one with `kinora serve` or `kinora worker`"
                .to_owned(),
        ),
        number => Finding::Good(format!("{}; see `kinora workers`", count(number, "worker"))),
    };
    Ok(vec![
        ("database", Finding::Good(usable.to_owned())),
        ("workers", workers),
        ("orphans", orphan_finding(config)),
    ])
}

/// An older backup gets a note.
const OLD_SECONDS: u64 = 7 * 24 * 60 * 60;

/// The last backup of the data folder.
pub(super) fn last_backup(data: &Path, now_ms: u64) -> Finding {
    let record = BackupRecord::read(data).unwrap_or_default();
    let begun = record.begun.as_ref().map_or_else(String::new, |made| {
        format!("; one started at {} has not ended", backup_shown(made))
    });
    let Some(whole) = record.whole else {
        return Finding::Note(format!(
            "no backup yet{begun}; run `kinora backup` regularly"
        ));
    };
    let text = format!(
        "the last complete one is from {}{begun}",
        backup_shown(&whole)
    );
    if (now_ms / 1000).saturating_sub(whole.at) > OLD_SECONDS {
        return Finding::Note(format!("{text}; it is older than a week"));
    }
    if begun.is_empty() {
        Finding::Good(text)
    } else {
        Finding::Note(text)
    }
}

fn backup_shown(made: &BackupRun) -> String {
    format!("{} UTC, in {}", date(made.at * 1000), made.to.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_missing_or_unfinished_backup_is_noted() {
        const NOW: u64 = 1_800_000_000;
        let found = |whole: Option<u64>, begun: Option<u64>| {
            let data = tempfile::tempdir().unwrap();
            let made = |at: u64| BackupRun {
                at,
                to: "/backups/a".into(),
            };
            let record = BackupRecord {
                whole: whole.map(made),
                begun: begun.map(made),
            };
            let text = serde_json::to_string(&record).unwrap();
            std::fs::write(data.path().join(crate::folder::LAST_BACKUP), text).unwrap();
            last_backup(data.path(), NOW * 1000)
        };
        let is_note = |finding: &Finding, part: &str| match finding {
            Finding::Note(text) => assert!(text.contains(part), "{text}"),
            other => panic!("{other:?}"),
        };
        assert!(matches!(
            found(Some(NOW - OLD_SECONDS), None),
            Finding::Good(_)
        ));
        is_note(
            &found(Some(NOW - OLD_SECONDS - 1), None),
            "older than a week",
        );
        is_note(&found(Some(NOW), Some(NOW)), "has not ended");
        is_note(&found(None, Some(NOW)), "no backup yet");
        let empty = tempfile::tempdir().unwrap();
        is_note(&last_backup(empty.path(), NOW * 1000), "no backup yet");
    }
}
