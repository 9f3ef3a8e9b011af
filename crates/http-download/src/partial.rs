//! An incomplete file: beside its target, locked against a second download, and kept for the next
//! attempt. A second small file notes where the bytes came from.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use kinora_http::PartialFile;
use tokio::fs;

use crate::error::DownloadError;
use crate::head::HeldBytes;

/// An unfinished file.
#[derive(Debug)]
pub(crate) struct NotedFile {
    note: PathBuf,
    file: PartialFile,
    /// The bytes that are present.
    pub(crate) held: HeldBytes,
}

impl NotedFile {
    /// Opens the partial file of `target`, with the bytes that an earlier attempt got from `url`.
    pub(crate) async fn open(target: &Path, url: &str) -> Result<Self, DownloadError> {
        let [path, note] = [beside(target, "part")?, beside(target, "part.from")?];
        let opened = PartialFile::open(path.clone()).await;
        let file = opened.map_err(|source| match source.kind() {
            ErrorKind::ResourceBusy => DownloadError::Busy(target.to_owned()),
            _ => failure(&path, source),
        })?;
        let noted = fs::read_to_string(&note).await.unwrap_or_default();
        let held = held(&noted, url, file.length());
        let is_other = held.is_none();
        let held = held.unwrap_or_default();
        let mut partial = Self { note, file, held };
        if is_other {
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
    ) -> Result<(), DownloadError> {
        self.empty().await?;
        self.held.validator = validator;
        self.held.whole = Some(whole);
        let written = fs::write(&self.note, note(url, &self.held)).await;
        written.map_err(|source| failure(&self.note, source))
    }

    /// Empties the file.
    pub(crate) async fn empty(&mut self) -> Result<(), DownloadError> {
        let cleared = self.file.clear().await;
        cleared.map_err(|source| failure(self.path(), source))?;
        self.held = HeldBytes::default();
        Ok(())
    }

    pub(crate) async fn add(&mut self, bytes: &[u8]) -> Result<(), DownloadError> {
        let added = self.file.add(bytes).await;
        added.map_err(|source| failure(self.path(), source))?;
        self.held.length += bytes.len() as u64;
        Ok(())
    }

    /// Hands all bytes to the system.
    pub(crate) async fn flush(&mut self) -> Result<(), DownloadError> {
        let flushed = self.file.flush().await;
        flushed.map_err(|source| failure(self.path(), source))
    }

    /// Where the bytes are.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives the complete file its name.
    pub(crate) async fn finish(self, target: &Path) -> Result<u64, DownloadError> {
        let finished = self.file.finish(target).await;
        let length = finished.map_err(|source| failure(target, source))?;
        let named = kinora_system::durable::sync_name(target);
        named.map_err(|source| failure(target, source))?;
        // A note without its file is harmless.
        let _ = fs::remove_file(&self.note).await;
        Ok(length)
    }

    /// Removes it if it has no bytes that another attempt could use.
    pub(crate) async fn leave(self) {
        if self.file.length() == 0 {
            // If this fails, a note without its file remains, which is harmless.
            let _ = fs::remove_file(&self.note).await;
        }
        self.file.leave().await;
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
fn note(url: &str, held: &HeldBytes) -> String {
    let validator = held.validator.as_deref().unwrap_or_default();
    let whole = held.whole.map(|whole| whole.to_string());
    format!("{url}\n{validator}\n{}\n", whole.unwrap_or_default())
}

/// What `length` bytes with this note are; `None` if they are not of `url`.
fn held(note: &str, url: &str, length: u64) -> Option<HeldBytes> {
    let mut lines = note.lines();
    if lines.next()? != url {
        return None;
    }
    let validator = lines.next()?;
    Some(HeldBytes {
        length,
        validator: (!validator.is_empty()).then(|| validator.to_owned()),
        whole: lines.next()?.parse().ok(),
    })
}

fn failure(path: &Path, source: io::Error) -> DownloadError {
    DownloadError::File {
        path: path.to_owned(),
        source,
    }
}

/// `.NAME.ENDING` in the folder of `target`.
fn beside(target: &Path, ending: &str) -> Result<PathBuf, DownloadError> {
    let path = PartialFile::path_for(target, ending);
    path.ok_or_else(|| DownloadError::Options(format!("{} names no file", target.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for (validator, whole) in [(None, None), (Some("\"a b\""), Some(7)), (None, Some(0))] {
            let written = HeldBytes {
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
