//! Checks the files that callers uploaded: their bytes are there, and expired ones do not remain. Files without a row
//! are orphans.

use std::collections::HashSet;

use kinora_blobs::BlobStore;
use kinora_contract::{Clock, StoredFile};
use kinora_store::{StoreError, StoreInspection};
use tokio::runtime::Runtime;

use super::report::Finding;
use super::store::{file_fault, first_few, result_reader, unreadable};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::count;
use crate::system::SystemClock;

/// A serving process removes expired files within minutes.
const LATE_MS: u64 = 60 * 60 * 1000;

/// `None` if there are no uploaded files.
pub(super) fn uploads(config: &Config, store: &StoreInspection) -> Option<Finding> {
    match check(config, store) {
        Ok(found) => found,
        Err(failure) => Some(Finding::Bad(failure.to_string())),
    }
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
        "{} of uploaded files, {bytes} bytes, all there with the right lengths",
        count(files.len() as u64, "file")
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
