//! `kinora orphans`: counts the files that no task refers to, and removes them on request. Works
//! beside a running service, and never creates a store.

use std::sync::Arc;

use kinora_blobs::BlobStore;
use kinora_contract::Clock;
use kinora_store::{OpenError, OpenOptions, StoreInspection};
use kinora_worker::{KnownTasks, OrphanCount, OrphanError};
use serde_json::json;

use crate::cli::OrphansArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::{date, print, unix_seconds};
use crate::store_access;
use crate::system::SystemClock;

/// Counts or removes them, and prints the result.
pub(crate) fn run(args: &OrphansArgs) -> Result<(), Failure> {
    let config = Config::load(&args.home)?;
    let Some(found) = find_orphans(&config, args.remove)? else {
        return Err(Failure::new(format!(
            "Another store uses the results in {}: its mark {}* is there, and the files of its tasks \
             look like orphans. Give each store results of its own, or remove the mark of one that \
             is gone.",
            config.results_shown(),
            kinora_store::MARKS
        )));
    };
    print(&if args.json {
        as_json(&found, args.remove)
    } else {
        as_text(&found, args.remove)
    });
    Ok(())
}

/// The orphans of the service with this configuration; `None` if another store uses its results.
pub(crate) fn find_orphans(config: &Config, removes: bool) -> Result<Option<OrphanCount>, Failure> {
    let blobs = kinora_blobs::open_beside(&config.results_url(), &config.s3())
        .map_err(|error| Failure::because("The result store cannot be opened", error))?;
    let runtime = store_access::runtime()?;
    runtime.block_on(async {
        let url = config.store_url();
        // A SQLite store belongs to one process at a time, so the look beside a running service
        // goes through its read-only inspection.
        let looked = if kinora_store::is_shared(&url) {
            // Any number of processes may open this store.
            let options = OpenOptions::new(Arc::new(SystemClock));
            let stores = kinora_store::open(&url, &options)
                .await
                .map_err(open_failure)?;
            find_in(&*stores.chores, &*blobs, removes).await
        } else {
            find_in(&inspect(&url)?, &*blobs, removes).await
        };
        looked.map_err(|error| Failure::because("Not all files could be checked", error))
    })
}

async fn find_in(
    tasks: &(impl KnownTasks + ?Sized),
    blobs: &dyn BlobStore,
    removes: bool,
) -> Result<Option<OrphanCount>, OrphanError> {
    kinora_worker::find_orphans(tasks, blobs, SystemClock.now_ms(), removes).await
}

fn inspect(url: &str) -> Result<StoreInspection, Failure> {
    let store = kinora_store::inspect(url).map_err(open_failure)?;
    store.ok_or_else(|| {
        Failure::new(
            "There is no store here. Name the data folder of your service with --data, or its \
             configuration file with --config.",
        )
    })
}

fn open_failure(error: OpenError) -> Failure {
    Failure::because("The store cannot be read", error)
}

fn as_text(found: &OrphanCount, removed: bool) -> String {
    let (Some(oldest), Some(newest)) = (found.oldest_ms, found.newest_ms) else {
        return "Every file has its task.\n".to_owned();
    };
    let verb = if removed { "removed" } else { "found" };
    let then = if removed {
        ""
    } else {
        "Restore the database that has their tasks, or remove the files with --remove.\n"
    };
    format!(
        "{} files without a task {verb}: {} bytes, of tasks from {} to {} UTC.\n{then}",
        found.files,
        found.bytes,
        date(oldest),
        date(newest),
    )
}

fn as_json(found: &OrphanCount, removed: bool) -> String {
    let object = json!({
        "files": found.files,
        "bytes": found.bytes,
        "oldest_at": unix_seconds(found.oldest_ms),
        "newest_at": unix_seconds(found.newest_ms),
        "removed": removed,
    });
    format!("{object}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_shown_for_people_and_programs() {
        let none = OrphanCount::default();
        assert!(as_text(&none, false).starts_with("Every file"));
        let some = OrphanCount {
            files: 3,
            bytes: 1_000,
            oldest_ms: Some(0),
            newest_ms: Some(86_400_000),
        };
        let text = as_text(&some, false);
        for part in [
            "3 files",
            "1000 bytes",
            "1970-01-01",
            "1970-01-02",
            "--remove",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!as_text(&some, true).contains("--remove"));
        let json: serde_json::Value = serde_json::from_str(&as_json(&some, true)).unwrap();
        assert_eq!(
            (&json["newest_at"], &json["removed"]),
            (&86_400.into(), &true.into())
        );
    }
}
