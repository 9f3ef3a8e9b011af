//! An incomplete file: beside its target, locked against a second download, and kept for the next
//! attempt.

use std::ffi::OsString;
use std::fs::{Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::{self, File, OpenOptions};
use tokio::io::AsyncWriteExt;

use crate::error::Error;

/// An unfinished file.
#[derive(Debug)]
pub(crate) struct Partial {
    path: PathBuf,
    file: File,
    /// Its current length in bytes.
    pub(crate) length: u64,
}

impl Partial {
    /// Opens the partial file of `target` with this `label`, including the bytes of an earlier
    /// attempt.
    pub(crate) async fn open(target: &Path, label: &str) -> Result<Self, Error> {
        let path = beside(target, label)?;
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        let opened = options.open(&path).await;
        let file = opened.map_err(|source| failure(&path, source))?;
        Self::lock(path, file.into_std().await).await
    }

    /// Locks the file that was opened at `path`, unless another download has it or had it.
    async fn lock(path: PathBuf, file: std::fs::File) -> Result<Self, Error> {
        let failed = |source: io::Error| failure(&path, source);
        file.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => failed(error),
            TryLockError::WouldBlock => {
                failed(io::Error::other("another download of it is in progress"))
            }
        })?;
        let own = file.metadata().map_err(failed)?;
        if !is_named(&path, &own).await {
            // The download that had the lock until now has just given the file its name.
            let ended = io::Error::other("another download of it has just ended");
            return Err(failed(ended));
        }
        Ok(Self {
            file: File::from_std(file),
            length: own.len(),
            path,
        })
    }

    pub(crate) async fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(bytes).await;
        self.judge(written)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Empties the file.
    pub(crate) async fn restart(&mut self) -> Result<(), Error> {
        let emptied = self.file.set_len(0).await;
        self.judge(emptied)?;
        self.length = 0;
        Ok(())
    }

    /// Renames the complete file to `target`.
    pub(crate) async fn finish(mut self, target: &Path) -> Result<u64, Error> {
        let flushed = self.file.flush().await;
        self.judge(flushed)?;
        let synced = self.file.sync_all().await;
        self.judge(synced)?;
        let moved = fs::rename(&self.path, target).await;
        moved.map_err(|source| failure(target, source))?;
        Ok(self.length)
    }

    /// Removes it if it has no bytes that another attempt could use.
    pub(crate) async fn leave(self) {
        if self.length == 0 {
            // If this fails, an empty file remains, which is harmless.
            let _ = fs::remove_file(&self.path).await;
        }
    }

    fn judge(&self, result: io::Result<()>) -> Result<(), Error> {
        result.map_err(|source| failure(&self.path, source))
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

fn failure(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

/// `.NAME.LABEL.part` in the folder of `target`.
fn beside(target: &Path, label: &str) -> Result<PathBuf, Error> {
    let Some(name) = target.file_name() else {
        return Err(Error::Options(format!(
            "{} names no file",
            target.display()
        )));
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    // A label comes from the caller and must not contain a path.
    let label: String = label
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(*c, '_' | '-'))
        .collect();
    hidden.push(format!(".{label}.part"));
    Ok(target.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_file_lies_beside_its_target() {
        let path = |target: &str, label| beside(Path::new(target), label).unwrap();
        assert_eq!(
            path("a/out.mp4", "video_x"),
            Path::new("a/.out.mp4.video_x.part")
        );
        assert_eq!(path("out.mp4", "../x"), Path::new(".out.mp4.x.part"));
        assert!(beside(Path::new("/"), "x").is_err());
    }

    #[tokio::test]
    async fn a_finished_file_is_nobody_s_partial_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.mp4");
        let mut first = Partial::open(&target, "x").await.unwrap();
        let second = File::open(&first.path).await.unwrap().into_std().await;
        let path = first.path.clone();
        first.add(b"all").await.unwrap();
        first.finish(&target).await.unwrap();
        let refused = Partial::lock(path, second).await.unwrap_err();
        assert!(refused.to_string().contains("has just ended"), "{refused}");
        assert_eq!(fs::read(&target).await.unwrap(), b"all");
    }
}
