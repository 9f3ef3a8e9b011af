//! Whether a blob could be put now, found out by doing everything that a put does with a file of no
//! blob: its name is no key, so that it is neither listed nor read. Blocking.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::PoisonError;

use super::folders::Folders;
use super::publish::sync_folder;

const NAME: &str = ".probe";
/// Less than the smallest results: what can still be stored is not held back.
const BYTES: usize = 64 * 1024;

/// Puts a small file, reads it back and removes it, in folders that are made again where they are gone.
pub(super) fn probe(folders: &Folders) -> io::Result<()> {
    let _alone = folders
        .probing
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    folders.make_missing()?;
    let (staged, named) = (folders.staging.join(NAME), folders.objects.join(NAME));
    // What an earlier one could not remove.
    remove(&staged)?;
    remove(&named)?;
    let put = put(&staged, &named, &folders.objects);
    let removed = remove(&named).and(remove(&staged));
    put.and(removed)
}

/// Removes what a crash in the middle of a probe has left.
pub(super) fn remove_leftover(folders: &Folders) {
    if let Err(error) = remove(&folders.objects.join(NAME)) {
        tracing::debug!(%error, "leftover of a probe not removed");
    }
}

fn put(staged: &Path, named: &Path, objects: &Path) -> io::Result<()> {
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let mut file = File::create_new(staged)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::hard_link(staged, named)?;
    sync_folder(objects)?;
    if fs::read(named)? == bytes {
        Ok(())
    } else {
        Err(io::Error::other(
            "the file system does not keep what was written",
        ))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
