//! An unfinished file: beside its target, locked against a second download, and left there for the next
//! attempt. It gets the target's name only when it is complete and synced.

use std::ffi::OsString;
use std::fs::{Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tokio::fs::{self, File, OpenOptions};
use tokio::io::AsyncWriteExt;

/// An unfinished file, open and locked.
#[derive(Debug)]
pub struct PartialFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl PartialFile {
    /// `.NAME.ENDING` in the folder of `target`; `None` if `target` names no file.
    pub fn path_for(target: &Path, ending: &str) -> Option<PathBuf> {
        let mut hidden = OsString::from(".");
        hidden.push(target.file_name()?);
        hidden.push(format!(".{ending}"));
        Some(target.with_file_name(hidden))
    }

    /// Opens the file at `path`, with the bytes that an earlier attempt left.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceBusy`] if another download has the file or has just finished it.
    pub async fn open(path: PathBuf) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(&path).await?;
        Self::lock(path, file.into_std().await).await
    }

    async fn lock(path: PathBuf, file: std::fs::File) -> io::Result<Self> {
        file.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => error,
            TryLockError::WouldBlock => io::Error::new(
                ErrorKind::ResourceBusy,
                "another download of it is in progress",
            ),
        })?;
        let own = file.metadata()?;
        // Between our open and our lock, the download that had the lock may have given the file its name.
        // What we hold then is the complete file of that download: appending to it would damage it.
        if !is_named(&path, &own).await {
            return Err(io::Error::new(
                ErrorKind::ResourceBusy,
                "another download of it has just ended",
            ));
        }
        Ok(Self {
            file: File::from_std(file),
            length: own.len(),
            path,
        })
    }

    /// Length in bytes.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// If they cannot be written.
    pub async fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Hands all bytes to the system, so that other readers of the path see them.
    ///
    /// # Errors
    /// If they cannot be written.
    pub async fn flush(&mut self) -> io::Result<()> {
        self.file.flush().await
    }

    /// Empties the file.
    ///
    /// # Errors
    /// If that fails.
    pub async fn clear(&mut self) -> io::Result<()> {
        // A write that is still on its way would arrive after the file was emptied.
        self.flush().await?;
        self.file.set_len(0).await?;
        self.length = 0;
        Ok(())
    }

    /// Syncs the complete file and renames it to `target`; returns its length. The folder is not synced.
    ///
    /// # Errors
    /// If the file cannot be written or renamed.
    pub async fn finish(mut self, target: &Path) -> io::Result<u64> {
        self.flush().await?;
        self.file.sync_all().await?;
        fs::rename(&self.path, target).await?;
        Ok(self.length)
    }

    /// Closes the file, and removes it if it has no bytes that another attempt could use.
    pub async fn leave(self) {
        if self.length == 0 {
            // If this fails, an empty file remains, which is harmless.
            let _ = fs::remove_file(&self.path).await;
        }
    }
}

/// Whether `path` still leads to this file.
#[cfg(unix)]
async fn is_named(path: &Path, own: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let named = fs::metadata(path).await;
    named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino()))
}

/// Elsewhere an open file keeps its name.
#[cfg(not(unix))]
async fn is_named(_: &Path, _: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_file_lies_beside_its_target() {
        let path = |target: &str| PartialFile::path_for(Path::new(target), "part");
        assert_eq!(path("a/out.mp4").unwrap(), Path::new("a/.out.mp4.part"));
        assert_eq!(path("out.mp4").unwrap(), Path::new(".out.mp4.part"));
        assert_eq!(path("/"), None);
    }

    #[tokio::test]
    async fn a_finished_file_is_nobody_s_partial_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.mp4");
        let path = PartialFile::path_for(&target, "part").unwrap();
        let mut first = PartialFile::open(path.clone()).await.unwrap();
        let busy = PartialFile::open(path.clone()).await.unwrap_err();
        assert!(busy.to_string().contains("in progress"), "{busy}");
        let second = File::open(&path).await.unwrap().into_std().await;
        first.add(b"all").await.unwrap();
        assert_eq!(first.finish(&target).await.unwrap(), 3);
        let refused = PartialFile::lock(path, second).await.unwrap_err();
        assert!(refused.to_string().contains("has just ended"), "{refused}");
        assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
        assert_eq!(fs::read(&target).await.unwrap(), b"all");
    }

    #[tokio::test]
    async fn the_next_attempt_has_the_bytes_of_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".a.part");
        let mut file = PartialFile::open(path.clone()).await.unwrap();
        file.add(b"abc").await.unwrap();
        file.flush().await.unwrap();
        file.leave().await;
        let mut file = PartialFile::open(path.clone()).await.unwrap();
        assert_eq!(file.length(), 3);
        file.clear().await.unwrap();
        file.leave().await;
        assert!(!path.exists());
    }
}
