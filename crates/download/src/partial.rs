//! An incomplete file: beside its target, locked against a second download, and kept for the next
//! attempt. A second small file notes where the bytes came from.

use std::ffi::OsString;
use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tokio::fs::{self, File, OpenOptions};
use tokio::io::AsyncWriteExt;

use crate::error::Error;
use crate::head::Held;

/// An unfinished file.
#[derive(Debug)]
pub(crate) struct Partial {
    path: PathBuf,
    note: PathBuf,
    file: File,
    /// The bytes that are present.
    pub(crate) held: Held,
}

impl Partial {
    /// Opens the partial file of `target`, with the bytes that an earlier attempt got from `url`.
    pub(crate) async fn open(target: &Path, url: &str) -> Result<Self, Error> {
        let [path, note] = [beside(target, "part")?, beside(target, "part.from")?];
        let failed = |source: io::Error| failure(&path, source);
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        let file = options.open(&path).await.map_err(failed)?.into_std().await;
        file.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => failed(error),
            TryLockError::WouldBlock => Error::Busy(target.to_owned()),
        })?;
        let own = file.metadata().map_err(failed)?;
        let named = fs::metadata(&path).await;
        if !named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())) {
            // The download that had the lock until now has just given the file its name.
            return Err(Error::Busy(target.to_owned()));
        }
        let noted = fs::read_to_string(&note).await.unwrap_or_default();
        let held = held(&noted, url, own.len());
        let mut partial = Self {
            path,
            note,
            file: File::from_std(file),
            held: held.clone().unwrap_or_default(),
        };
        if held.is_none() {
            partial.empty().await?;
        }
        Ok(partial)
    }

    /// Empties the file for the whole of another one, of which this is known.
    pub(crate) async fn begin(
        &mut self,
        url: &str,
        validator: Option<String>,
        whole: u64,
    ) -> Result<(), Error> {
        self.empty().await?;
        self.held.validator = validator;
        self.held.whole = Some(whole);
        let written = fs::write(&self.note, note(url, &self.held)).await;
        written.map_err(|source| failure(&self.note, source))
    }

    /// Empties the file.
    pub(crate) async fn empty(&mut self) -> Result<(), Error> {
        self.flush().await?;
        let emptied = self.file.set_len(0).await;
        self.judge(emptied)?;
        self.held = Held::default();
        Ok(())
    }

    pub(crate) async fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(bytes).await;
        self.judge(written)?;
        self.held.length += bytes.len() as u64;
        Ok(())
    }

    /// Hands all bytes to the system.
    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        let flushed = self.file.flush().await;
        self.judge(flushed)
    }

    /// Where the bytes are.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the complete file its name.
    pub(crate) async fn finish(self, target: &Path) -> Result<u64, Error> {
        let synced = self.file.sync_all().await;
        self.judge(synced)?;
        let moved = fs::rename(&self.path, target).await;
        moved.map_err(|source| failure(target, source))?;
        let named = kinora_durable::sync_name(target);
        named.map_err(|source| failure(target, source))?;
        // A note without its file is harmless.
        let _ = fs::remove_file(&self.note).await;
        Ok(self.held.length)
    }

    /// Removes it if it has no bytes that another attempt could use.
    pub(crate) async fn leave(self) {
        if self.held.length == 0 {
            // If this fails, an empty file remains, which is harmless.
            let _ = fs::remove_file(&self.path).await;
            let _ = fs::remove_file(&self.note).await;
        }
    }

    fn judge(&self, result: io::Result<()>) -> Result<(), Error> {
        result.map_err(|source| failure(&self.path, source))
    }
}

/// Number of bytes that an unfinished download to `target` has left.
pub fn partial_bytes(target: &Path) -> Option<u64> {
    let path = beside(target, "part").ok()?;
    std::fs::metadata(path).ok().map(|found| found.len())
}

/// Removes what an unfinished download to `target` has left; returns its bytes.
///
/// # Errors
/// If it exists and cannot be removed.
pub fn remove_partial(target: &Path) -> io::Result<u64> {
    let bytes = partial_bytes(target).unwrap_or(0);
    for name in ["part", "part.from"] {
        let Ok(path) = beside(target, name) else {
            continue;
        };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(bytes)
}

/// The text of a note: the address, the validator and the length, a line each.
fn note(url: &str, held: &Held) -> String {
    let validator = held.validator.as_deref().unwrap_or_default();
    let whole = held.whole.map(|whole| whole.to_string());
    format!("{url}\n{validator}\n{}\n", whole.unwrap_or_default())
}

/// What `length` bytes with this note are; `None` if they are not of `url`.
fn held(note: &str, url: &str, length: u64) -> Option<Held> {
    let mut lines = note.lines();
    if lines.next()? != url {
        return None;
    }
    let validator = lines.next()?;
    Some(Held {
        length,
        validator: (!validator.is_empty()).then(|| validator.to_owned()),
        whole: lines.next()?.parse().ok(),
    })
}

fn failure(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

/// `.NAME.ENDING` in the folder of `target`.
fn beside(target: &Path, ending: &str) -> Result<PathBuf, Error> {
    let Some(name) = target.file_name() else {
        let shown = target.display();
        return Err(Error::Options(format!("{shown} names no file")));
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{ending}"));
    Ok(target.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for (validator, whole) in [(None, None), (Some("\"a b\""), Some(7)), (None, Some(0))] {
            let written = Held {
                length: 3,
                validator: validator.map(str::to_owned),
                whole,
            };
            let text = note("https://a/b", &written);
            assert_eq!(held(&text, "https://a/b", 3), Some(written));
            assert_eq!(held(&text, "https://a/c", 3), None);
        }
        for broken in ["", "https://a/b", "https://a/b\n"] {
            assert_eq!(held(broken, "https://a/b", 3), None, "{broken:?}");
        }
    }

    #[test]
    fn what_is_left_is_beside_the_target_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.gguf");
        assert_eq!(partial_bytes(&target), None);
        assert_eq!(remove_partial(&target).unwrap(), 0);
        std::fs::write(folder.path().join(".a.gguf.part"), "abc").unwrap();
        std::fs::write(folder.path().join(".a.gguf.part.from"), "x").unwrap();
        assert_eq!(partial_bytes(&target), Some(3));
        assert_eq!(remove_partial(&target).unwrap(), 3);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(beside(Path::new("/"), "part").is_err());
    }
}
