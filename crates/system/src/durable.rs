//! Makes file names survive a power cut. The name of a new folder or file is on disk only after its
//! parent folder is synced, and likewise for each new folder above.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Creates `folder` with all missing parents, and syncs the parent of each.
///
/// # Errors
/// If a folder cannot be created, or its parent cannot be synced.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    make_folder_by(DirBuilder::new().recursive(true), folder)
}

/// Like [`make_folder`], with the permissions of a recursive `builder`.
///
/// # Errors
/// As [`make_folder`].
pub fn make_folder_by(builder: &DirBuilder, folder: &Path) -> io::Result<()> {
    let above = folder.ancestors().filter(|at| !at.as_os_str().is_empty());
    let (there, missing): (Vec<&Path>, Vec<&Path>) = above.partition(|at| at.is_dir());
    builder.create(folder)?;
    // From the outermost new folder inwards: a name is reachable only if those above it are.
    for new in missing.into_iter().rev() {
        match sync_name(new) {
            // A user who may add to a folder may not be allowed to open it.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    if let Some(lowest) = there.first() {
        // An earlier process may have created it and died before the sync. If syncing fails, the
        // folder still exists, so ignore the error.
        let _ = sync_name(lowest);
    }
    Ok(())
}

/// Syncs the parent folder of `path`, so that a new file or folder keeps its name.
///
/// # Errors
/// If the parent cannot be opened or synced.
pub fn sync_name(path: &Path) -> io::Result<()> {
    sync_folder(holder(path))
}

/// Syncs a folder's entries to disk.
///
/// # Errors
/// If it cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The parent folder of `path`.
fn holder(path: &Path) -> &Path {
    let above = path.parent().unwrap_or(path);
    if above.as_os_str().is_empty() {
        Path::new(".")
    } else {
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_folders_are_made_and_existing_ones_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("one/two/three");
        for _ in 0..2 {
            make_folder(&deep).unwrap();
            assert!(deep.is_dir());
        }
        // A folder that cannot be synced is accepted if it already exists.
        make_folder(Path::new("/proc/self/task")).unwrap();
        make_folder(Path::new("/")).unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        make_folder(&root.path().join("file")).unwrap_err();
        make_folder(&root.path().join("file/below")).unwrap_err();
    }

    #[test]
    fn a_folder_is_held_by_the_one_above_it() {
        for (folder, above) in [("a/b", "a"), ("a", "."), ("/a", "/"), ("/", "/")] {
            assert_eq!(holder(Path::new(folder)), Path::new(above));
        }
    }
}
