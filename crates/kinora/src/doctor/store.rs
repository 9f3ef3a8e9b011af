//! What is stored, looked at thoroughly and read-only: the database, the files of its tasks, the key
//! that signs their addresses. A running service is not disturbed, and no store is made.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use kinora_blobs::BlobStore;
use kinora_contract::{State, StoredFile};
use kinora_store::{Inspection, OpenError};

use super::Finding;
use crate::config::Config;
use crate::failure::Failure;
use crate::{damage, orphans};

/// Findings of one kind that are shown.
const SHOWN_MAX: usize = 3;
/// Tasks between two lines of progress.
const PROGRESS_EVERY: u64 = 1000;

type Found = (&'static str, Finding);

/// Looks at everything that is stored.
pub(super) fn examine(config: &Config) -> Vec<Found> {
    let store = match kinora_store::inspect(&config.store_url()) {
        Ok(Some(store)) => store,
        Ok(None) => {
            let none = Finding::Good("none yet; the first `kinora serve` makes it".to_owned());
            return vec![("database", none)];
        }
        Err(OpenError::OlderSchema { .. }) => {
            let older = "of an earlier version; the next `kinora serve` brings it up to date";
            return vec![("database", Finding::Note(older.to_owned()))];
        }
        Err(error) => {
            let refused = damage::refused(error).to_string();
            return vec![("database", Finding::Bad(refused))];
        }
    };
    let mut stored = Stored::default();
    let database = database(&store, &mut stored);
    vec![
        ("database", database),
        ("results", results(config, &store, &stored)),
        ("signing key", signing_key(config, &stored)),
        ("orphans", stray(config)),
    ]
}

/// What the tasks name.
#[derive(Debug, Default)]
struct Stored {
    tasks: u64,
    unreadable: Vec<String>,
    files: Vec<StoredFile>,
}

fn database(store: &Inspection, stored: &mut Stored) -> Finding {
    let mut wrong = Vec::new();
    match store.loss() {
        Ok(None) => {}
        Ok(Some(loss)) => wrong.push(damage::lost(&loss)),
        Err(error) => wrong.push(error.to_string()),
    }
    let mut progress = Progress::begin("checking the database");
    match store.check() {
        Ok(findings) => wrong.extend(findings),
        Err(error) => wrong.push(error.to_string()),
    }
    progress.whole = store.count().unwrap_or(0);
    let read = store.tasks(&mut |task| {
        stored.tasks += 1;
        progress.show(stored.tasks);
        match task {
            Ok(task) => {
                if let State::Completed(artifact) = &task.state {
                    stored.files.extend(artifact.files().map(Clone::clone));
                }
            }
            Err(error) => stored.unreadable.push(error.to_string()),
        }
    });
    progress.end();
    wrong.extend(read.err().map(|error| error.to_string()));
    if !stored.unreadable.is_empty() {
        let count = stored.unreadable.len();
        wrong.push(format!(
            "{count} tasks cannot be read: {}",
            some(&stored.unreadable)
        ));
    }
    if wrong.is_empty() {
        return Finding::Good(format!("whole, with {} tasks", stored.tasks));
    }
    Finding::Bad(format!("{}; restore a backup", some(&wrong)))
}

/// The first of several.
fn some(all: &[String]) -> String {
    let mut text = all[..all.len().min(SHOWN_MAX)].join("; ");
    if all.len() > SHOWN_MAX {
        // Writing to a string cannot fail.
        let _ = write!(text, "; and {} more", all.len() - SHOWN_MAX);
    }
    text
}

fn results(config: &Config, store: &Inspection, stored: &Stored) -> Finding {
    match compare(config, store, stored) {
        Ok(wrong) if wrong.is_empty() => {
            let files = stored.files.len();
            Finding::Good(format!(
                "all {files} files of completed tasks, with their lengths"
            ))
        }
        Ok(wrong) => Finding::Bad(format!("{}; restore a backup", some(&wrong))),
        Err(failure) => Finding::Bad(failure.to_string()),
    }
}

/// What is wrong with the files that the tasks name.
fn compare(config: &Config, store: &Inspection, stored: &Stored) -> Result<Vec<String>, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::because("The results cannot be read", error);
    let blobs = kinora_blobs::open_beside(&config.results_url());
    let blobs = blobs.map_err(|error| failed(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| failed(&error))?;
    let marked = runtime.block_on(kinora_worker::is_marked(store, &*blobs));
    let mut wrong = Vec::new();
    if !stored.files.is_empty() && !marked.map_err(|error| failed(&error))? {
        wrong.push(format!(
            "the mark of this store is not in {}: is its volume mounted?",
            config.results_url()
        ));
    }
    wrong.extend(runtime.block_on(differing(&*blobs, &stored.files)));
    Ok(wrong)
}

async fn differing(blobs: &dyn BlobStore, files: &[StoredFile]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut progress = Progress::begin("checking results");
    progress.whole = files.len() as u64;
    for (number, file) in (1..).zip(files) {
        progress.show(number);
        let StoredFile { key, bytes, .. } = file;
        match blobs.head(key).await {
            Ok(Some(found)) if found == *bytes => {}
            Ok(Some(found)) => wrong.push(format!("{key} has {found} bytes instead of {bytes}")),
            Ok(None) => wrong.push(format!("{key} is gone")),
            Err(error) => wrong.push(format!("{key}: {error}")),
        }
    }
    progress.end();
    wrong
}

fn signing_key(config: &Config, stored: &Stored) -> Finding {
    let path = damage::signing_key(config);
    let shown = path.display();
    if path.exists() {
        Finding::Good(format!("{shown}"))
    } else if stored.tasks == 0 {
        Finding::Good("made at the next start".to_owned())
    } else {
        Finding::Bad(format!(
            "{shown} is missing: addresses that were handed out would be refused; restore a backup"
        ))
    }
}

fn stray(config: &Config) -> Finding {
    match orphans::look(config, false) {
        Err(failure) => Finding::Bad(failure.to_string()),
        Ok(None) => Finding::Note(
            "not looked for: another store has left its mark in the same results".to_owned(),
        ),
        Ok(Some(found)) if found.files == 0 => {
            Finding::Good("every result file has its task".to_owned())
        }
        Ok(Some(found)) => Finding::Note(format!(
            "{} result files ({} bytes) without a task; see `kinora orphans`",
            found.files, found.bytes
        )),
    }
}

/// A line on a terminal that says how far a long check is.
struct Progress {
    what: &'static str,
    whole: u64,
    shown: bool,
}

impl Progress {
    fn begin(what: &'static str) -> Self {
        let progress = Self {
            what,
            whole: 0,
            shown: std::io::stderr().is_terminal(),
        };
        progress.write(&format!("{what} ..."));
        progress
    }

    fn show(&self, done: u64) {
        if done.is_multiple_of(PROGRESS_EVERY) {
            self.write(&format!("{}: {done} of {}", self.what, self.whole));
        }
    }

    fn end(self) {
        self.write("");
    }

    fn write(&self, text: &str) {
        if self.shown {
            // A terminal that has gone needs no line.
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }
}
