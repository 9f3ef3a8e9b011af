//! Copies the files of exported tasks into the export, and compares each with the store's record.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_blobs::folder::Folder;
use kinora_blobs::{BlobStore, bulk};
use kinora_contract::StoredFile;
use kinora_store::MovedTask;

use super::parts::{FILES, Lines, Writer};
use crate::backup::RESULTS;
use crate::failure::Failure;

/// A file that may exist.
pub(super) enum Wanted {
    /// A result, which must match.
    Result(StoredFile),
    /// A reference. If it is absent, the service fetches it again.
    Reference(String),
}

impl Wanted {
    fn key(&self) -> &str {
        match self {
            Self::Result(file) => &file.key,
            Self::Reference(key) => key,
        }
    }
}

/// The files of a task.
pub(super) fn wanted(task: &MovedTask) -> impl Iterator<Item = Wanted> + use<> {
    let results = task.results().into_iter().map(Wanted::Result);
    results.chain(task.references().into_iter().map(Wanted::Reference))
}

/// The outcome for a file.
pub(super) enum Ended {
    Brought(StoredFile),
    Absent,
    Missing(String),
}

/// The copied files.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) lines: Lines,
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) missing: Vec<String>,
}

/// The transfer of all files.
pub(super) struct Taking {
    blobs: Arc<dyn BlobStore>,
    to: Folder,
    /// The same folder, as a store.
    root: PathBuf,
    written: Writer,
    /// Keys of all files of the export.
    kept: HashSet<String>,
    taken: Taken,
}

impl Taking {
    /// From these results into the export in the folder `to`.
    pub(super) fn begin(blobs: Arc<dyn BlobStore>, to: &Path) -> Result<Self, Failure> {
        Ok(Self {
            blobs,
            to: Folder::at(&to.join(RESULTS)),
            root: to.join(RESULTS),
            written: Writer::create(to.join(FILES))?,
            kept: HashSet::new(),
            taken: Taken::default(),
        })
    }

    /// Counts a file that stays in place.
    pub(super) fn expect(&mut self, wanted: Wanted) -> Result<(), Failure> {
        match wanted {
            Wanted::Result(file) => self.note(Ended::Brought(file)),
            Wanted::Reference(_) => Ok(()),
        }
    }

    /// Copies a file, unless an earlier run did.
    pub(super) fn bring(
        &self,
        wanted: Wanted,
    ) -> Result<impl Future<Output = Result<Ended, Failure>> + Send + use<>, Failure> {
        let key = wanted.key().to_owned();
        let failed = move |error: &dyn std::fmt::Display| {
            Failure::because(format!("The file {key} could not be exported"), error)
        };
        let path = self.to.file(wanted.key()).map_err(|error| failed(&error))?;
        let (blobs, to) = (self.blobs.clone(), self.to.clone());
        Ok(async move {
            if let Wanted::Result(file) = &wanted
                && to.measure(&file.key).is_ok_and(|found| found == *file)
            {
                return Ok(Ended::Brought(file.clone()));
            }
            fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|error| failed(&error))?;
            let part = unfinished(&path);
            let saved = bulk::save(&*blobs, wanted.key(), &part).await;
            let saved = saved.map_err(|error| failed(&error))?;
            let ended = match (saved, wanted) {
                (Some(found), Wanted::Result(file)) if found != file => Ended::Missing(file.key),
                (None, Wanted::Result(file)) => Ended::Missing(file.key),
                (None, Wanted::Reference(_)) => Ended::Absent,
                (Some(found), _) => {
                    fs::rename(&part, &path).map_err(|error| failed(&error))?;
                    Ended::Brought(found)
                }
            };
            kinora_crash::point("export.file");
            Ok(ended)
        })
    }

    pub(super) fn note(&mut self, ended: Ended) -> Result<(), Failure> {
        match ended {
            Ended::Brought(file) => {
                self.written.add(&file)?;
                self.taken.count += 1;
                self.taken.bytes += file.bytes;
                self.kept.insert(file.key);
            }
            Ended::Missing(key) => self.taken.missing.push(key),
            Ended::Absent => {}
        }
        Ok(())
    }

    /// Removes files from an earlier run whose tasks no longer exist.
    pub(super) async fn end(mut self) -> Result<Taken, Failure> {
        let failed = |error| Failure::because("The exported files cannot be listed", error);
        let own = self.root.display().to_string();
        let own = kinora_blobs::open_beside(&own, &kinora_blobs::S3Options::default());
        let own = own.map_err(failed)?;
        for key in bulk::keys(&*own, "").await.map_err(failed)? {
            if !self.kept.contains(&key) {
                own.delete(&key).await.map_err(failed)?;
            }
        }
        self.taken.lines = self.written.end()?;
        Ok(self.taken)
    }
}

/// The temporary path of a file being written: no key ends like this.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
