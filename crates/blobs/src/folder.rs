//! Direct access to a blob store's files while a process has the store open: backups link or copy
//! them. It opens no store and empties no staging folder, and like a store it never overwrites.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use kinora_contract::StoredFile;

use crate::local::{is_absent, objects_of};
use crate::measure::measure;
use crate::{BlobError, BlobKey};

/// The folder of a blob store.
#[derive(Clone, Debug)]
pub struct BlobFolder {
    objects: PathBuf,
}

/// How to transfer a file from one folder to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferMethod {
    /// Hard link: takes no space, and survives the removal of the original.
    Link,
    /// Synced copy.
    Copy,
}

impl BlobFolder {
    /// The store in the folder `root`, which may not exist.
    pub fn new(root: &Path) -> Self {
        Self {
            objects: objects_of(root),
        }
    }

    /// The folder of its files.
    pub fn path(&self) -> &Path {
        &self.objects
    }

    /// The length of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// [`BlobError`] if the length cannot be determined.
    pub fn bytes(&self, key: &str) -> Result<Option<u64>, BlobError> {
        match fs::metadata(self.file(key)?) {
            Ok(found) if found.is_file() => Ok(Some(found.len())),
            Ok(_) => Ok(None),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The length of a regular file, following no symbolic link below the store's root; `None`
    /// if the file does not exist. For folders of untrusted origin.
    ///
    /// # Errors
    /// [`BlobError`] for anything else.
    pub fn plain_bytes(&self, key: &str) -> Result<Option<u64>, BlobError> {
        let file = self.file(key)?;
        // The key's own components, the folder `objects` and the root: links above the root are
        // the operator's choice.
        let folders = 2 + Path::new(key).components().count();
        let mut found = None;
        for path in file
            .ancestors()
            .take(folders)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
        {
            // From the outside in, because the metadata of an inner path is only as trustworthy
            // as the folders that lead to it.
            found = match fs::symlink_metadata(path) {
                Ok(entry) if entry.is_dir() && path != file => None,
                Ok(entry) if entry.is_file() && path == file => Some(entry.len()),
                Ok(_) => {
                    let message = format!("{} is a link, or no regular file", path.display());
                    let error = io::Error::new(ErrorKind::InvalidInput, message);
                    return Err(error.into());
                }
                Err(error) if is_absent(&error) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        }
        Ok(found)
    }

    /// Reads a whole file for its length and SHA-256.
    ///
    /// # Errors
    /// [`BlobError::NotFound`], or another [`BlobError`] if it cannot be read.
    pub fn measure(&self, key: &str) -> Result<StoredFile, BlobError> {
        let mut file = File::open(self.file(key)?).map_err(|error| not_found_or(key, error))?;
        let (bytes, sha256) = measure(&mut file)?;
        Ok(StoredFile {
            key: key.to_owned(),
            bytes,
            sha256,
        })
    }

    /// Transfers a file to `to`. Creates folders, but does not sync them.
    ///
    /// # Errors
    /// [`BlobError::NotFound`] if it is absent here, [`BlobError::Exists`] if `to` already has it;
    /// otherwise the error of the link or copy.
    pub fn transfer(&self, key: &str, to: &Self, how: TransferMethod) -> Result<(), BlobError> {
        let (from, to) = (self.file(key)?, to.file(key)?);
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        match how {
            TransferMethod::Link => fs::hard_link(&from, &to).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => BlobError::Exists(key.to_owned()),
                _ => not_found_or(key, error),
            }),
            TransferMethod::Copy => copy(key, &from, &to),
        }
    }

    /// Creates an empty file, as stores use for marks.
    ///
    /// # Errors
    /// [`BlobError::Exists`] if the key is taken, or another [`BlobError`] if it cannot be created.
    pub fn put_empty(&self, key: &str) -> Result<(), BlobError> {
        let path = self.file(key)?;
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        create(key, &path).map(|_| ())
    }

    /// The path of a file, which may not exist.
    ///
    /// # Errors
    /// [`BlobError::InvalidKey`].
    pub fn file(&self, key: &str) -> Result<PathBuf, BlobError> {
        Ok(self.objects.join(BlobKey::parse(key)?.as_str()))
    }
}

fn copy(key: &str, from: &Path, to: &Path) -> Result<(), BlobError> {
    let mut from = File::open(from).map_err(|error| not_found_or(key, error))?;
    let mut to = create(key, to)?;
    io::copy(&mut from, &mut to)?;
    Ok(to.sync_all()?)
}

fn create(key: &str, path: &Path) -> Result<File, BlobError> {
    File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => BlobError::Exists(key.to_owned()),
        _ => error.into(),
    })
}

fn not_found_or(key: &str, error: io::Error) -> BlobError {
    if is_absent(&error) {
        return BlobError::NotFound(key.to_owned());
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_linked_or_copied_once_and_whole() {
        let root = tempfile::tempdir().unwrap();
        let [from, linked, copied] =
            ["from", "linked", "copied"].map(|name| BlobFolder::new(&root.path().join(name)));
        let key = "videos/a/1/video.mp4";
        let path = from.path().join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, b"frames").unwrap();
        for (to, how) in [
            (&linked, TransferMethod::Link),
            (&copied, TransferMethod::Copy),
        ] {
            from.transfer(key, to, how).unwrap();
            assert_eq!(to.measure(key).unwrap(), from.measure(key).unwrap());
            let again = from.transfer(key, to, how);
            assert!(matches!(again, Err(BlobError::Exists(_))), "{again:?}");
            let missing = from.transfer("videos/b", to, how);
            assert!(
                matches!(missing, Err(BlobError::NotFound(_))),
                "{missing:?}"
            );
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(from.bytes(key).unwrap(), None);
        assert_eq!(linked.bytes(key).unwrap(), Some(6));
        copied.put_empty("stores/1").unwrap();
        assert_eq!(copied.bytes("stores/1").unwrap(), Some(0));
        assert_eq!(linked.plain_bytes(key).unwrap(), Some(6));
        assert_eq!(from.plain_bytes(key).unwrap(), None);
        for place in ["videos/a/1/video.mp4", "videos/a/1", "videos"] {
            let path = copied.path().join(place);
            let moved = root.path().join("elsewhere");
            fs::rename(&path, &moved).unwrap();
            std::os::unix::fs::symlink(&moved, &path).unwrap();
            assert_eq!(copied.bytes(key).unwrap(), Some(6));
            let refused = copied.plain_bytes(key).unwrap_err().to_string();
            assert!(refused.contains("is a link"), "{place}: {refused}");
            fs::remove_file(&path).unwrap();
            fs::rename(&moved, &path).unwrap();
        }
        assert_eq!(copied.plain_bytes(key).unwrap(), Some(6));
        let outside = from.transfer("../secret", &copied, TransferMethod::Copy);
        assert!(
            matches!(outside, Err(BlobError::InvalidKey(_))),
            "{outside:?}"
        );
    }
}
