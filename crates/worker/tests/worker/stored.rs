//! What a bench holds in files: the blobs of its tasks, and the scratch folder.

use futures_util::TryStreamExt;
use kinora_blobs::{BlobStore, measure_bytes};
use kinora_contract::{Artifact, StoredFile};

use crate::bench::{Bench, until};

impl Bench {
    /// Keys of all blobs but the marks of stores.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let listed = self.blobs.list("").try_concat().await.unwrap();
        let keys = listed.into_iter().map(|entry| entry.key);
        let mut keys: Vec<String> = keys.filter(|key| !key.starts_with("stores/")).collect();
        keys.sort_unstable();
        keys
    }

    /// Waits until there are no other blobs than those of `artifacts`, which must be whole, and
    /// the scratch folder is empty.
    pub(crate) async fn comes_to_hold_only(&self, artifacts: &[Artifact]) {
        let wanted = keys_of(artifacts);
        let what = format!("the blobs are {wanted:?} and nothing is staged");
        let only = async || self.keys().await == wanted && self.staged().is_empty();
        until(&what, only).await;
        self.holds_only(artifacts).await;
    }

    /// The same, at once: for the time after a drain, when nothing is under way.
    pub(crate) async fn holds_only(&self, artifacts: &[Artifact]) {
        assert_eq!(self.keys().await, keys_of(artifacts));
        assert!(self.staged().is_empty(), "{:?}", self.staged());
        for artifact in artifacts {
            self.is_whole(artifact).await;
        }
    }

    /// Every file can be read, with its recorded length and SHA-256.
    pub(crate) async fn is_whole(&self, artifact: &Artifact) {
        for file in artifact.files() {
            assert_eq!(self.measure(&file.key).await, *file);
        }
    }

    /// The content of a blob.
    pub(crate) async fn bytes_of(&self, key: &str) -> Vec<u8> {
        let chunks = self.blobs.read(key, 0..u64::MAX).await.unwrap();
        let chunks: Vec<bytes::Bytes> = chunks.try_collect().await.unwrap();
        chunks.concat()
    }

    async fn measure(&self, key: &str) -> StoredFile {
        measure_bytes(key, &self.bytes_of(key).await)
    }

    /// The files in the scratch folder.
    pub(crate) fn staged(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.scratch.path()).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect()
    }
}

fn keys_of(artifacts: &[Artifact]) -> Vec<String> {
    let files = artifacts.iter().flat_map(Artifact::files);
    let mut keys: Vec<_> = files.map(|file| file.key.clone()).collect();
    keys.sort();
    keys
}
