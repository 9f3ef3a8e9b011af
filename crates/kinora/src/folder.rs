//! The data folder is private to its owner: it contains prompts, references and secrets. It is
//! created so, closed to others if possible, and refused otherwise.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config::models_folder;
use crate::failure::Failure;

/// Permission bits of everybody but the owner.
const OTHERS: u32 = 0o077;
/// Entries that an earlier start may have left in a folder, and their modes.
const CONTENTS: [&str; 10] = [
    "kinora.db",
    "kinora.db-wal",
    "kinora.db-shm",
    "kinora.db.lock",
    "kinora.mark",
    "signing.key",
    "results",
    "work",
    FIRST_KEY,
    LAST_BACKUP,
];
/// The record of the last backup, for `kinora doctor`.
pub(crate) const LAST_BACKUP: &str = "last-backup.json";
/// The file with the first key if there is no terminal.
const FIRST_KEY: &str = "first-key";

/// Makes all files and folders that this process creates private.
pub(crate) fn make_private_files() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(OTHERS));
}

/// Creates the data folder, or closes an existing one to other users.
///
/// # Errors
/// If it cannot be created, or if others can enter it and it must stay open: it contains other
/// things (`--data /srv` must not lock everybody out of `/srv`), or this user may not change it.
pub(crate) fn prepare(folder: &Path) -> Result<(), Failure> {
    let shown = folder.display();
    refuse_unfinished_restore(folder)?;
    // Synced together with its parents: after a power loss the folder must not be missing under a
    // database whose commits were acknowledged.
    kinora_system::durable::make_folder_by(DirBuilder::new().recursive(true).mode(0o700), folder)
        .map_err(|error| Failure::because(format!("{shown} cannot be created"), error))?;
    match remove_access_if_ours(folder) {
        Ok(None) => {}
        Ok(Some(mode)) => tracing::warn!(
            folder = %shown,
            "data folder was open to other users (mode {mode:o}); closed it"
        ),
        Err(error) => {
            return Err(Failure::new(format!(
                "Other users can enter the data folder {shown}, and the service cannot close it to \
                 them: {error}. Run `chmod 700 {shown}` as its owner, or name a folder inside it, \
                 which the service makes for itself: --data {shown}/kinora"
            )));
        }
    }
    for name in CONTENTS {
        // The folder is closed already, so a file of another owner is harmless.
        let _ = remove_access(&folder.join(name));
    }
    Ok(())
}

/// Says to other commands, as long as the file is open, that a service runs on this folder; see [`is_served`].
pub(crate) fn mark_served(data: &Path) -> Option<File> {
    let folder = File::open(data).ok()?;
    // No other process serves the folder, so nothing uses what an earlier one had.
    if folder.try_lock().is_ok() {
        models_folder::forget_served(data);
    }
    folder.lock_shared().ok()?;
    Some(folder)
}

/// Whether a service runs on this folder. One that cannot be locked may have one.
pub(crate) fn is_served(data: &Path) -> bool {
    !File::open(data).is_ok_and(|folder| folder.try_lock().is_ok())
}

/// The folder in which a restore collects its files; removed at its end.
pub(crate) fn restoring_folder(data: &Path) -> PathBuf {
    data.join("restoring")
}

/// Refuses a data folder with an unfinished restore.
pub(crate) fn refuse_unfinished_restore(data: &Path) -> Result<(), Failure> {
    if !restoring_folder(data).exists() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "A restore into {} was started but has not ended. Run `kinora restore` again.",
        data.display()
    )))
}

/// The mode of `path`, if others have any access to it.
pub(crate) fn foreign_access_mode(path: &Path) -> io::Result<Option<u32>> {
    // Without the type of the file, which `st_mode` has as well.
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    Ok(Some(mode).filter(|mode| mode & OTHERS != 0))
}

/// Like [`remove_access`], for a folder that contains only our files.
fn remove_access_if_ours(folder: &Path) -> io::Result<Option<u32>> {
    if foreign_access_mode(folder)?.is_some() && has_foreign_files(folder)? {
        return Err(io::Error::other("it contains files that are not Kinora's"));
    }
    remove_access(folder)
}

/// Whether a folder is not empty and has no database, secret or model of an earlier command.
pub(crate) fn has_foreign_files(folder: &Path) -> io::Result<bool> {
    if ["kinora.db", "signing.key", "models.d"]
        .iter()
        .any(|name| folder.join(name).exists())
    {
        return Ok(false);
    }
    for entry in fs::read_dir(folder)? {
        // The root of a new ext4 file system contains this folder.
        if entry?.file_name() != "lost+found" {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the access of others to `path`; returns the mode that granted any.
fn remove_access(path: &Path) -> io::Result<Option<u32>> {
    let Some(mode) = foreign_access_mode(path)? else {
        return Ok(None);
    };
    fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))?;
    // Some file systems accept the change but ignore it.
    match foreign_access_mode(path)? {
        None => Ok(Some(mode)),
        Some(_) => Err(io::Error::other(
            "its file system does not support permissions",
        )),
    }
}

/// The path of the file with the first key.
pub(crate) fn first_key_path(data: &Path) -> PathBuf {
    let path = data.join(FIRST_KEY);
    std::path::absolute(&path).unwrap_or(path)
}

/// Writes the first key into a private file, and returns its path. Replaces the file of an earlier
/// start that was interrupted.
pub(crate) fn write_first_key(data: &Path, key: &str) -> Result<PathBuf, Failure> {
    let path = first_key_path(data);
    replace_private(&path, format!("{key}\n").as_bytes())
        .map_err(|error| Failure::at(&path, "cannot be written", error))?;
    Ok(path)
}

/// Writes a file that only this user may read, in place of one that an earlier process left.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove_if_present(path)?;
    // `create_new` in there makes the file with its final mode, and does not follow a link that
    // somebody else has put at this path.
    write_private(path, bytes)
}

/// Removes a file that may be absent.
pub(crate) fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a new file that only this user may read, synced.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Reads the first key of a service on `data` from its file.
pub(crate) fn read_first_key(data: &Path) -> Result<String, Failure> {
    let path = first_key_path(data);
    let key =
        fs::read_to_string(&path).map_err(|error| Failure::at(&path, "cannot be read", error))?;
    Ok(key.trim().to_owned())
}

/// Removes the file of an unused first key.
pub(crate) fn remove_first_key(file: &Path) -> Result<(), Failure> {
    let removed = fs::remove_file(file);
    removed.map_err(|error| Failure::at(file, "cannot be removed", error))
}

/// The folder itself, or the one in which it will be created.
pub(crate) fn nearest_existing(data: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(data).ok()?;
    let existing = absolute.ancestors().find(|folder| folder.is_dir())?;
    Some(existing.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_folder_is_its_owner_s() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("outer/data");
        prepare(&data).unwrap();
        assert_eq!(mode(&data), 0o700);
    }

    #[test]
    fn an_open_folder_and_its_files_are_closed() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let (database, results) = (data.join("kinora.db"), data.join("results"));
        fs::create_dir_all(&results).unwrap();
        fs::write(&database, "").unwrap();
        for (path, open) in [(&data, 0o755), (&results, 0o777), (&database, 0o644)] {
            fs::set_permissions(path, Permissions::from_mode(open)).unwrap();
        }
        prepare(&data).unwrap();
        let modes = [&data, &results, &database].map(|path| mode(path));
        assert_eq!(modes, [0o700, 0o700, 0o600]);
        prepare(&data).unwrap();
    }

    #[test]
    fn an_open_folder_that_cannot_be_closed_is_refused_with_what_to_do() {
        // Nobody, not even root, may change the permissions of a process's folder.
        let folder = Path::new("/proc/self/task");
        assert!(remove_access(folder).is_err());
        let error = prepare(folder).unwrap_err().to_string();
        for advice in [
            "`chmod 700 /proc/self/task`",
            "--data /proc/self/task/kinora",
        ] {
            assert!(error.contains(advice), "{error}");
        }
    }

    #[test]
    fn an_open_folder_with_other_things_in_it_is_refused_and_stays_open() {
        let root = tempfile::tempdir().unwrap();
        let shared = root.path().join("srv");
        fs::create_dir_all(shared.join("www")).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
        let error = prepare(&shared).unwrap_err().to_string();
        assert!(error.contains("not Kinora's"), "{error}");
        assert!(error.contains("/srv/kinora"), "{error}");
        assert_eq!(mode(&shared), 0o755);
        // A new disk's root, and a folder that is closed already, are taken as they are.
        fs::rename(shared.join("www"), shared.join("lost+found")).unwrap();
        prepare(&shared).unwrap();
        assert_eq!(mode(&shared), 0o700);
        fs::write(shared.join("notes"), "").unwrap();
        prepare(&shared).unwrap();
    }

    #[test]
    fn the_first_key_replaces_an_unused_one_and_is_its_owner_s() {
        let root = tempfile::tempdir().unwrap();
        let old = root.path().join("first-key");
        fs::write(&old, "old").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
        let path = write_first_key(root.path(), "kinora_new").unwrap();
        assert_eq!(path, old);
        assert_eq!(fs::read_to_string(&path).unwrap(), "kinora_new\n");
        assert_eq!(mode(&path), 0o600);
    }
}
