//! Checks whether a put would succeed by running every step of one. The file's name is not a valid
//! key, so it is neither listed nor read. Blocking.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::PoisonError;

use super::folders::Folders;
use super::publish::sync_folder;

/// Followed by the name of the process's staging folder, so processes do not collide.
const PREFIX: &str = ".probe-";
/// The name in the staging folder; earlier versions used it in both folders.
const NAME: &str = ".probe";
/// Smaller than the smallest results, so a probe never fails where a result would fit.
const BYTES: usize = 64 * 1024;

/// Puts a small file, reads it back and removes it. Restores missing folders.
pub(super) fn probe(folders: &Folders) -> io::Result<()> {
    let _alone = folders
        .probing
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let (staging, owner) = folders.staging()?;
    let staged = staging.join(NAME);
    let named = folders.objects.join(format!("{PREFIX}{owner}"));
    // An earlier probe may have failed to remove its files.
    remove(&staged)?;
    remove(&named)?;
    // Remove both names whatever happened, and report the first error.
    let put = put(&staged, &named, &folders.objects);
    let removed = remove(&named).and(remove(&staged));
    put.and(removed)
}

/// Removes probe files of crashed processes, and leaves those of live ones.
pub(super) fn remove_leftovers(folders: &Folders) {
    if let Err(error) = try_remove_leftovers(folders) {
        tracing::debug!(%error, "leftover probe file not removed");
    }
}

fn try_remove_leftovers(folders: &Folders) -> io::Result<()> {
    let staging = folders.staging()?.0;
    let shared = staging.parent().unwrap_or(staging);
    for entry in fs::read_dir(&folders.objects)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_left = match name.strip_prefix(PREFIX) {
            // Another live process may be in the middle of its probe.
            Some(owner) => !kinora_scratch::is_occupied(shared, owner),
            None => name == NAME,
        };
        if is_left {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn put(staged: &Path, named: &Path, objects: &Path) -> io::Result<()> {
    // 251 is prime, so a shifted or repeated block does not read back as equal.
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
            "the file system returned other bytes than were written",
        ))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
