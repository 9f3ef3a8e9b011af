//! A data folder, and what tests know about it beyond one run of the service: the first key,
//! and the last state of every task, which no restart may take back.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;

use crate::apart::{Apart, stores_are_apart};
use crate::process::inside;
use crate::reply::Reply;
use crate::video::{Tracker, Video};

/// The files of a result: video, thumbnail, spritesheet, first and last frame.
pub const RESULT_FILES: usize = 5;

/// A folder for `--data`; removed when the last user is gone.
#[derive(Clone, Debug)]
pub struct DataFolder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: TempDir,
    key: OnceLock<String>,
    tracker: Tracker,
    apart: OnceLock<Apart>,
}

impl Default for DataFolder {
    fn default() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("kinora-e2e-")
            .tempdir()
            .unwrap();
        Self(Arc::new(Inner {
            folder,
            key: OnceLock::new(),
            tracker: Tracker::default(),
            apart: OnceLock::new(),
        }))
    }
}

impl DataFolder {
    /// A folder of its own with all that another has, whose service must be stopped, and its key.
    pub fn copy_of(other: &Self) -> Self {
        let copy = Self::default();
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(copy.path()).unwrap();
        let mut files = Vec::new();
        walk(&other.path(), &mut files);
        for file in files {
            let to = copy.path().join(file.strip_prefix(other.path()).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(&file, &to).unwrap();
        }
        copy.0.key.set(other.key().unwrap().to_owned()).unwrap();
        copy
    }

    /// A folder that will be filled with what another had, by a restore; its key will be the same.
    pub fn to_restore(other: &Self) -> Self {
        Self::with_key(other.key().unwrap())
    }

    /// A path beside it, which is removed with it.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// A folder whose contents, which are to be put there, have this first key.
    pub fn with_key(key: &str) -> Self {
        let folder = Self::default();
        folder.0.key.set(key.to_owned()).unwrap();
        folder
    }

    /// Where it is; the service makes it.
    pub fn path(&self) -> PathBuf {
        self.0.folder.path().join("data")
    }

    /// What is removed in the end.
    pub(crate) fn root(&self) -> &Path {
        self.0.folder.path()
    }

    /// The key that the first start made.
    pub fn key(&self) -> Option<&str> {
        self.0.key.get().map(String::as_str)
    }

    /// Reads the first key from the file in which a start without a terminal leaves it, and
    /// deletes that file, as operators shall. `process` may see mounts that this one does not.
    pub(crate) fn take_first_key(&self, process: u32) {
        let path = inside(process, &self.path()).join("first-key");
        let file = std::fs::metadata(&path).expect("the first start left no key");
        assert_eq!(
            file.mode() & 0o7777,
            0o600,
            "the first key is open to others"
        );
        let key = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let key = key.strip_suffix('\n').unwrap().to_owned();
        self.0.key.set(key).expect("a first key was made twice");
    }

    /// The video object of a 200, judged as a step of its task.
    pub fn judged(&self, reply: &Reply) -> Video {
        Video::judged(reply.ok(), &self.0.tracker)
    }

    /// Where its stores are, for the processes that use them; nothing where they are in the folder.
    pub(crate) fn store_variables(&self) -> Vec<(&'static str, String)> {
        match stores_are_apart() {
            true => self.0.apart.get_or_init(Apart::make).variables().into(),
            false => Vec::new(),
        }
    }

    pub(crate) fn tracker(&self) -> Tracker {
        self.0.tracker.clone()
    }

    /// Every file that is or was published for a task: references and results.
    pub fn files_of_tasks(&self) -> Vec<PathBuf> {
        let mut found = self.files("objects");
        found.retain(|path| !path.to_string_lossy().contains("objects/stores/"));
        found
    }

    /// Every file under it whose path contains `part`.
    pub fn files(&self, part: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.path(), &mut found);
        found.retain(|path| path.to_string_lossy().contains(part));
        found.sort();
        found
    }
}

/// Files may come and go meanwhile.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}
