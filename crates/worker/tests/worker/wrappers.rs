//! A store and a folder of blobs that fail when they are told to. What they are not told to
//! fail goes to the real ones.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use kinora_blobs::{BlobEntry, BlobError, BlobStore, ByteStream};
use kinora_contract::{Artifact, Failure, StoredFile, Task, TaskId, UnixMs};
use kinora_store::{
    Cancellation, Claim, ClaimRequest, Deletion, Insertion, Lease, NewTask, Page, PageRequest,
    Renewed, StoreError, SweepRequest, Swept, TaskStore, TaskView,
};
use tokio::sync::watch;

/// A task store whose workers may lose sight of it.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    inner: Arc<dyn TaskStore>,
    /// Claims, renewals, checks, finishes and releases fail.
    pub(crate) cut: AtomicBool,
    /// So many finishes are refused.
    pub(crate) refuse_finishes: AtomicUsize,
    /// So many finishes are done, but reported as failed.
    pub(crate) lose_finishes: AtomicUsize,
    /// Renewals done.
    pub(crate) renewals: AtomicUsize,
    /// Finishes tried.
    pub(crate) finishes: AtomicUsize,
    /// Sweeps begun.
    pub(crate) sweeps: AtomicUsize,
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<dyn TaskStore>) -> Self {
        Self {
            inner,
            cut: AtomicBool::new(false),
            refuse_finishes: AtomicUsize::new(0),
            lose_finishes: AtomicUsize::new(0),
            renewals: AtomicUsize::new(0),
            finishes: AtomicUsize::new(0),
            sweeps: AtomicUsize::new(0),
        }
    }

    fn reach(&self) -> Result<&dyn TaskStore, StoreError> {
        if self.cut.load(Ordering::SeqCst) {
            Err(away())
        } else {
            Ok(&*self.inner)
        }
    }
}

fn away() -> StoreError {
    StoreError::Unavailable("no route to the store".into())
}

/// Takes one of what is left.
fn take(left: &AtomicUsize) -> bool {
    let less = |left: usize| left.checked_sub(1);
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
        .is_ok()
}

#[async_trait]
impl TaskStore for FaultyStore {
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError> {
        self.inner.insert(new).await
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        self.inner.get(project, id).await
    }

    async fn get_of_any_project(&self, id: TaskId) -> Result<Option<TaskView>, StoreError> {
        self.reach()?.get_of_any_project(id).await
    }

    async fn list(&self, request: PageRequest) -> Result<Page, StoreError> {
        self.inner.list(request).await
    }

    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        now_ms: UnixMs,
        expires_at_ms: UnixMs,
    ) -> Result<Cancellation, StoreError> {
        self.inner
            .cancel(project, id, failure, now_ms, expires_at_ms)
            .await
    }

    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError> {
        self.inner.delete(project, id).await
    }

    async fn waiting_with_references(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Arc<Task>)>, StoreError> {
        self.inner.waiting_with_references(after, limit).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.reach()?.claim(request).await
    }

    async fn renew(&self, lease: &Lease, renewed: Renewed) -> Result<(), StoreError> {
        self.reach()?.renew(lease, renewed).await?;
        self.renewals.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn check(&self, lease: &Lease) -> Result<(), StoreError> {
        self.reach()?.check(lease).await
    }

    async fn finish(
        &self,
        lease: &Lease,
        outcome: Result<Artifact, Failure>,
        now_ms: UnixMs,
        expires_at_ms: UnixMs,
    ) -> Result<(), StoreError> {
        self.finishes.fetch_add(1, Ordering::SeqCst);
        if take(&self.refuse_finishes) {
            return Err(away());
        }
        let done = self.reach()?.finish(lease, outcome, now_ms, expires_at_ms);
        done.await?;
        if take(&self.lose_finishes) {
            return Err(away());
        }
        Ok(())
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.reach()?.release(lease).await
    }

    async fn sweep(&self, request: SweepRequest) -> Result<Swept, StoreError> {
        self.sweeps.fetch_add(1, Ordering::SeqCst);
        self.reach()?.sweep(request).await
    }

    async fn forget_files(&self, keys: &[String]) -> Result<(), StoreError> {
        self.inner.forget_files(keys).await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}

/// A blob store whose puts may fail or take their time.
#[derive(Debug)]
pub(crate) struct FaultyBlobs {
    inner: Arc<dyn BlobStore>,
    staging: PathBuf,
    /// So many puts of files fail.
    pub(crate) refuse_files: AtomicUsize,
    /// So many puts of bytes fail.
    pub(crate) refuse_bytes: AtomicUsize,
    /// Puts of files begun.
    pub(crate) files_begun: AtomicUsize,
    /// Puts of files that have come to their end, whether anyone waited for them or not.
    pub(crate) files_ended: Arc<AtomicUsize>,
    /// Puts of files wait while this is true.
    pub(crate) hold_files: watch::Sender<bool>,
}

impl FaultyBlobs {
    pub(crate) fn new(inner: Arc<dyn BlobStore>) -> Self {
        Self {
            staging: inner.staging_dir().to_owned(),
            inner,
            refuse_files: AtomicUsize::new(0),
            refuse_bytes: AtomicUsize::new(0),
            files_begun: AtomicUsize::new(0),
            files_ended: Arc::default(),
            hold_files: watch::Sender::new(false),
        }
    }

    /// The same with a staging folder that is not there.
    pub(crate) fn without_staging(self) -> Self {
        Self {
            staging: self.staging.join("unmounted"),
            ..self
        }
    }
}

#[async_trait]
impl BlobStore for FaultyBlobs {
    /// Like a put that blocks a thread: one that was begun goes on although nobody waits.
    async fn put_file(&self, key: &str, from: &Path) -> Result<StoredFile, BlobError> {
        self.files_begun.fetch_add(1, Ordering::SeqCst);
        if take(&self.refuse_files) {
            return Err(full());
        }
        let (inner, ended) = (self.inner.clone(), self.files_ended.clone());
        let (key, from) = (key.to_owned(), from.to_owned());
        let mut hold = self.hold_files.subscribe();
        let put = tokio::spawn(async move {
            let free = hold.wait_for(|hold| !hold).await.is_ok();
            assert!(free, "the test ended while a put was held");
            let stored = inner.put_file(&key, &from).await;
            ended.fetch_add(1, Ordering::SeqCst);
            stored
        });
        put.await.map_err(io::Error::other)?
    }

    async fn put_bytes(&self, key: &str, bytes: Bytes) -> Result<StoredFile, BlobError> {
        if take(&self.refuse_bytes) {
            return Err(full());
        }
        self.inner.put_bytes(key, bytes).await
    }

    async fn head(&self, key: &str) -> Result<Option<u64>, BlobError> {
        self.inner.head(key).await
    }

    async fn read(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        self.inner.read(key, range).await
    }

    async fn delete(&self, key: &str) -> Result<(), BlobError> {
        self.inner.delete(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<BlobEntry>, BlobError> {
        self.inner.list(prefix, after, limit).await
    }

    fn staging_dir(&self) -> &Path {
        &self.staging
    }
}

fn full() -> BlobError {
    io::Error::from(io::ErrorKind::StorageFull).into()
}
