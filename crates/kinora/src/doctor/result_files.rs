//! The files in the result store, for reading alone: whether one is there as its row says, and the check of those that
//! callers uploaded. Files without a row are orphans.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use kinora_blobs::BlobStore;
use kinora_contract::{Clock, StoredFile};
use kinora_store::{StoreError, StoreInspection};
use tokio::runtime::Runtime;

use super::report::Finding;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::count;
use crate::store_access;
use crate::system::SystemClock;

/// Maximum number of findings of one kind that are shown.
pub(super) const SHOWN_MAX: usize = 3;
/// A serving process removes expired files within minutes.
const LATE_MS: u64 = 60 * 60 * 1000;

/// `None` if there are no uploaded files.
pub(super) fn uploads(config: &Config, store: &StoreInspection) -> Option<Finding> {
    check(config, store).unwrap_or_else(|failure| Some(failure.into()))
}

fn check(config: &Config, store: &StoreInspection) -> Result<Option<Finding>, Failure> {
    let files = store.uploads().map_err(|error| unreadable(&error))?;
    if files.is_empty() {
        return Ok(None);
    }
    let (runtime, blobs) = result_reader(config)?;
    let wrong = faults(&runtime, store, &*blobs, &files).map_err(|error| unreadable(&error))?;
    if !wrong.is_empty() {
        return Ok(Some(Finding::Bad(format!(
            "{}; tasks that name them fail: restore a backup, or upload them again",
            first_few(&wrong)
        ))));
    }
    let late_ms = SystemClock.now_ms().saturating_sub(LATE_MS);
    let late = store.overdue_uploads(late_ms);
    let late = late.map_err(|error| unreadable(&error))?;
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let shown = format!(
        "all {} files of uploads are there, with the right lengths ({bytes} bytes)",
        files.len()
    );
    Ok(Some(match late {
        0 => Finding::Good(shown),
        late => Finding::Note(format!(
            "{shown}; {} expired more than an hour ago: the service removes them while it runs",
            count(late, "upload")
        )),
    }))
}

/// Problems with files that uploads still refer to: a running service may have removed some since the first look.
fn faults(
    runtime: &Runtime,
    store: &StoreInspection,
    blobs: &dyn BlobStore,
    files: &[StoredFile],
) -> Result<Vec<String>, StoreError> {
    let faulty = |file: &&StoredFile| runtime.block_on(file_fault(blobs, file)).is_some();
    let suspects: Vec<&StoredFile> = files.iter().filter(faulty).collect();
    let keys: Vec<String> = suspects.iter().map(|file| file.key.clone()).collect();
    let named: HashSet<String> = store.find_uploads(&keys)?;
    let named = suspects.iter().filter(|file| named.contains(&file.key));
    let faults = named.filter_map(|file| runtime.block_on(file_fault(blobs, file)));
    Ok(faults.collect())
}

/// The first of several texts.
pub(super) fn first_few(all: &[String]) -> String {
    let mut text = all[..all.len().min(SHOWN_MAX)].join("; ");
    if all.len() > SHOWN_MAX {
        // Writing to a string cannot fail.
        let _ = write!(text, "; and {} more", all.len() - SHOWN_MAX);
    }
    text
}

/// The results, for reading alone: it creates nothing, and refuses puts, so the doctor changes nothing on a store
/// that is in use.
pub(super) fn result_reader(config: &Config) -> Result<(Runtime, Arc<dyn BlobStore>), Failure> {
    let blobs = kinora_blobs::open_beside(&config.results_url(), &config.s3());
    let blobs = blobs.map_err(|error| unreadable(&error))?;
    Ok((store_access::runtime()?, blobs))
}

pub(super) fn unreadable(error: &dyn std::fmt::Display) -> Failure {
    Failure::because("The results cannot be read", error)
}

/// A problem with a file.
pub(super) async fn file_fault(blobs: &dyn BlobStore, file: &StoredFile) -> Option<String> {
    let StoredFile { key, bytes, .. } = file;
    match blobs.head(key).await {
        Ok(Some(found)) if found == *bytes => None,
        Ok(Some(found)) => Some(format!("{key} has {found} bytes instead of {bytes}")),
        Ok(None) => Some(format!("{key} is missing")),
        Err(error) => Some(format!("{key}: {error}")),
    }
}
