//! Folders that outlast a power cut: a new folder's name is on disk only once the folder that holds
//! it is synced, and so up to the first that was there before.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Makes `folder` and every folder above it that is missing, and syncs the folder that holds each.
///
/// # Errors
/// When a folder cannot be made, or its name not be synced.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    make_folder_by(DirBuilder::new().recursive(true), folder)
}

/// As [`make_folder`], by a recursive `builder` that says what may be done with the new folders.
///
/// # Errors
/// As [`make_folder`].
pub fn make_folder_by(builder: &DirBuilder, folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        // An earlier start may have made it and died before the sync. A file system that syncs no
        // folders, or one that this user may not read, is no reason to refuse a folder that is there.
        let _ = sync_folder(holder(folder));
        return Ok(());
    }
    let missing = folder
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
    let missing: Vec<&Path> = missing.collect();
    builder.create(folder)?;
    for new in missing.into_iter().rev() {
        match sync_folder(holder(new)) {
            // Who may add to a folder need not be able to open it.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Makes the entries of a folder last.
///
/// # Errors
/// When it cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder in which `folder` has its name.
fn holder(folder: &Path) -> &Path {
    let above = folder.parent().unwrap_or(folder);
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
        // One that cannot be synced is taken all the same where it is there already.
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
