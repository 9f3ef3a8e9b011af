//! Lists keys in the order of their bytes, page by page, without reading folders that lie
//! outside of the page. Files that are no blobs (their names are no keys) are left out.

use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::is_absent;
use crate::{BlobEntry, BlobError, BlobKey};

/// One page's bounds, and what was found for it.
pub(super) struct Walk {
    prefix: String,
    after: Option<String>,
    limit: usize,
    found: Vec<BlobEntry>,
}

impl Walk {
    pub(super) fn new(prefix: &str, after: Option<&str>, limit: usize) -> Self {
        Self {
            prefix: prefix.to_owned(),
            after: after.map(str::to_owned),
            limit,
            found: Vec::new(),
        }
    }

    pub(super) fn run(mut self, objects: &Path) -> Result<Vec<BlobEntry>, BlobError> {
        self.folder(objects, "")?;
        Ok(self.found)
    }

    /// `at` is the key of the folder with its closing slash; empty for the root.
    fn folder(&mut self, path: &Path, at: &str) -> Result<(), BlobError> {
        let entries = match fs::read_dir(path) {
            // Deleted since it was seen.
            Err(error) if is_absent(&error) => return Ok(()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
            names.push((format!("{at}{name}{slash}"), entry));
        }
        // With its slash a folder sorts exactly where its keys do.
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (key, entry) in names {
            if self.found.len() >= self.limit {
                break;
            }
            if key.ends_with('/') {
                if self.may_hold(&key) {
                    self.folder(&entry.path(), &key)?;
                }
            } else if self.takes(&key) {
                self.found.extend(blob(key, &entry)?);
            }
        }
        Ok(())
    }

    fn takes(&self, key: &str) -> bool {
        key.starts_with(&self.prefix) && self.after.as_deref().is_none_or(|after| after < key)
    }

    /// Whether a key of this folder can be in the page.
    fn may_hold(&self, folder: &str) -> bool {
        (folder.starts_with(&self.prefix) || self.prefix.starts_with(folder))
            && self
                .after
                .as_deref()
                .is_none_or(|after| after < folder || after.starts_with(folder))
    }
}

fn blob(key: String, entry: &DirEntry) -> Result<Option<BlobEntry>, BlobError> {
    let data = match entry.metadata() {
        Err(error) if is_absent(&error) => return Ok(None),
        data => data?,
    };
    if BlobKey::parse(&key).is_err() || !data.is_file() {
        return Ok(None);
    }
    let age = data
        .modified()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let modified_at_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Ok(Some(BlobEntry {
        key,
        bytes: data.len(),
        modified_at_ms,
    }))
}
