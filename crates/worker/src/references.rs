//! A task's references. The fetch stage fetches them once, with all checks, or copies those that were
//! uploaded to this service. The blob store keeps them until the task has ended, so that a rerun does
//! not fetch again. A run only looks them up.

use std::collections::HashMap;
use std::fmt::Debug;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kinora_blobs::{BlobError, BlobStore, DiskReserve};
use kinora_contract::limits::{REFERENCE_AUDIO_BYTES_MAX, REFERENCE_IMAGE_BYTES_MAX};
use kinora_contract::{ReferenceItem, StoredFile, Task, TaskId, uploaded};
use kinora_http_fetch::{FetchError, ReferenceFetcher};
use kinora_store::{StoreError, WorkerStore, reference_keys};
use kinora_system::pool::BlockingPool;
use kinora_system::scratch::{ScratchFile, ScratchFolder};
use tokio::sync::Semaphore;

use crate::error::GatherError;
use crate::reference_check::ReferenceChecker;

/// How often a fetch checks whether its task has ended without a hint.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Fetches references, and tracks the tasks whose references are being fetched.
#[derive(Debug)]
pub struct ReferenceGatherer {
    source: Arc<dyn ReferenceSource>,
    gates: Mutex<HashMap<TaskId, Weak<TaskLock>>>,
    /// Only one task's files are decoded at a time: a large image takes 150 MB for a moment.
    pub(crate) decoding: Arc<Semaphore>,
    /// Only one arriving file is checked at a time.
    arrivals: Arc<Semaphore>,
    reserve: DiskReserve,
    /// Folder for arriving files.
    scratch: Arc<ScratchFolder>,
}

/// Lock of one task, held while its references are fetched.
type TaskLock = tokio::sync::Mutex<()>;

impl ReferenceGatherer {
    /// References that `source` fetches into `scratch`.
    pub fn new(source: impl ReferenceSource + 'static, scratch: Arc<ScratchFolder>) -> Self {
        Self {
            source: Arc::new(source),
            gates: Mutex::default(),
            decoding: Arc::new(Semaphore::new(1)),
            arrivals: Arc::new(Semaphore::new(1)),
            reserve: DiskReserve::default(),
            scratch,
        }
    }

    /// Decodes only while it holds a permit of `decoding`, which others share.
    #[must_use]
    pub fn with_decoding(mut self, decoding: Arc<Semaphore>) -> Self {
        self.decoding = decoding;
        self
    }

    /// Stores none while there is no space beyond `reserve`.
    #[must_use]
    pub fn with_reserve(mut self, reserve: DiskReserve) -> Self {
        self.reserve = reserve;
        self
    }

    /// Whether there is space for more.
    pub(crate) fn has_room(&self) -> bool {
        self.reserve.has_room()
    }

    /// The keys of the references of `task`, in the spec's order, or [`GatherError::Missing`]: a
    /// run never fetches.
    pub(crate) async fn at_hand(
        tasks: &dyn WorkerStore,
        blobs: &dyn BlobStore,
        task: &Task,
    ) -> Result<Vec<String>, GatherError> {
        let found = find(tasks, blobs, task).await?;
        let keys: Option<Vec<String>> = found.into_iter().collect();
        keys.ok_or(GatherError::Missing)
    }

    /// Ensures that every reference of `task` is in the blob store, and returns their keys in the
    /// spec's order. The final of a draft uses the draft's, while they are kept.
    pub(crate) async fn gather(
        &self,
        tasks: &dyn WorkerStore,
        blobs: &dyn BlobStore,
        files: &BlockingPool,
        task: &Task,
    ) -> Result<Vec<String>, GatherError> {
        // Two fetches of one task in this process would write the same local files: the names
        // contain no token of a lease.
        let gate = self.gate(task.id);
        let _held = gate.lock().await;
        let found = find(tasks, blobs, task).await?;
        let own = reference_keys(task);
        let missing: Vec<usize> = (0..)
            .zip(&found)
            .filter_map(|(index, key)| key.is_none().then_some(index))
            .collect();
        let keys = found.into_iter().zip(&own);
        let keys: Vec<String> = keys
            .map(|(found, own)| found.unwrap_or_else(|| own.clone()))
            .collect();
        if missing.is_empty() {
            charge(tasks, blobs, task.id, &own, &keys).await?;
            return Ok(keys);
        }
        if !self.has_room() {
            return Err(GatherError::NoRoom);
        }
        let judge = ReferenceChecker::new(&task.spec, &self.decoding, &self.arrivals, files);
        let references = task.spec.inputs.references();
        let fetched = missing.iter().map(|index| {
            let (reference, key) = (references[*index], &own[*index]);
            self.fetch(blobs, task, *index, reference, key, &judge)
        });
        // Nobody needs the references of a task that has ended.
        let fetched = tokio::select! {
            biased;
            fetched = join_fetches(fetched.collect()) => fetched,
            () = ended(tasks, task.id) => Err(GatherError::Ended),
        };
        // If the task ended meanwhile, its files were swept before these arrived, so remove them.
        // References that arrived for a task which retries are kept, and not fetched again. Those of a
        // task that fails here go by its end: this fetch may have lost its lease to one that succeeded.
        let of_no_use = matches!(fetched, Err(GatherError::Ended));
        if of_no_use || !is_unfinished(tasks, task.id).await? {
            remove(blobs, &own).await;
        }
        fetched?;
        charge(tasks, blobs, task.id, &own, &keys).await?;
        is_unfinished(tasks, task.id)
            .await?
            .then_some(keys)
            .ok_or(GatherError::Ended)
    }

    async fn fetch(
        &self,
        blobs: &dyn BlobStore,
        task: &Task,
        index: usize,
        reference: ReferenceItem<'_>,
        key: &str,
        judge: &ReferenceChecker,
    ) -> Result<(), GatherError> {
        let staged = ScratchFile::new(&self.scratch, &format!("{}-reference-{index}", task.id));
        match uploaded::blob_key(reference.url()) {
            Some(upload) => {
                let copied = download(blobs, upload, staged.path(), judge.files());
                copied
                    .await
                    .map_err(|error| GatherError::from_copy(index, error))?;
            }
            None => {
                self.fetch_url(task, index, reference, staged.path())
                    .await?;
            }
        }
        kinora_system::crash::point("worker.reference_fetched");
        let (bytes, sha256) = judge
            .check_and_reduce(index, reference, staged.path())
            .await?;
        let file = StoredFile {
            key: key.to_owned(),
            bytes,
            sha256,
        };
        match blobs.put_file(&file, staged.path()).await {
            // An earlier fetch of the task has stored it, and perhaps lost the answer.
            Ok(()) | Err(BlobError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        kinora_system::crash::point("worker.reference_stored");
        Ok(())
    }

    async fn fetch_url(
        &self,
        task: &Task,
        index: usize,
        reference: ReferenceItem<'_>,
        to: &Path,
    ) -> Result<(), GatherError> {
        let bytes_max = match reference {
            ReferenceItem::Image(_) => REFERENCE_IMAGE_BYTES_MAX,
            ReferenceItem::Audio(_) => REFERENCE_AUDIO_BYTES_MAX,
        };
        let request = kinora_http_fetch::ReferenceRequest {
            project: &task.project,
            url: reference.url(),
            to,
            bytes_max,
            is_plain: kinora_media_decode::is_reference,
        };
        let fetched = self.source.fetch(&request).await;
        let bytes = fetched.map_err(|error| GatherError::from_fetch(index, error))?;
        tracing::debug!(index, bytes, "reference fetched");
        Ok(())
    }

    fn gate(&self, task: TaskId) -> Arc<TaskLock> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(&task).and_then(Weak::upgrade) {
            return gate;
        }
        // Only here: gates of tasks that are no longer fetched cost little until the next new one.
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(TaskLock::default());
        gates.insert(task, Arc::downgrade(&gate));
        gate
    }
}

/// Waits for all fetches of a task. A fetch that waits for its turn, or for another try, does not end
/// the others, so that those in progress are not repeated; any other error ends all at once.
async fn join_fetches(
    mut fetches: FuturesUnordered<impl Future<Output = Result<(), GatherError>>>,
) -> Result<(), GatherError> {
    let mut errors = Vec::new();
    while let Some(fetched) = fetches.next().await {
        match fetched {
            Ok(()) => {}
            Err(error) if error.rank().is_some() => errors.push(error),
            Err(error) => return Err(error),
        }
    }
    let first = errors.into_iter().min_by_key(GatherError::rank);
    first.map_or(Ok(()), Err)
}

/// Records the size of the task's own references, now that they are stored. Those of a draft belong
/// to the draft.
async fn charge(
    tasks: &dyn WorkerStore,
    blobs: &dyn BlobStore,
    task: TaskId,
    own: &[String],
    keys: &[String],
) -> Result<(), GatherError> {
    let mut bytes = 0;
    for key in own.iter().filter(|key| keys.contains(key)) {
        bytes += blobs.head(key).await?.unwrap_or(0);
    }
    if !own.is_empty() {
        tasks.charge_references(task, bytes).await?;
    }
    Ok(())
}

/// The stored key of each reference of `task`, its own or its draft's.
async fn find(
    tasks: &dyn WorkerStore,
    blobs: &dyn BlobStore,
    task: &Task,
) -> Result<Vec<Option<String>>, GatherError> {
    let draft = match task.spec.final_of {
        Some(draft) => tasks.task(draft).await?,
        None => None,
    };
    let draft = draft.filter(|draft| draft.project == task.project);
    let drafts = draft.map_or_else(Vec::new, |draft| reference_keys(&draft));
    let own = reference_keys(task);
    let mut found = Vec::with_capacity(own.len());
    for (index, key) in own.iter().enumerate() {
        let candidates = std::iter::once(key).chain(drafts.get(index));
        found.push(first_present(blobs, candidates).await?);
    }
    Ok(found)
}

async fn first_present(
    blobs: &dyn BlobStore,
    keys: impl Iterator<Item = &String>,
) -> Result<Option<String>, BlobError> {
    for key in keys {
        if blobs.head(key).await?.is_some() {
            return Ok(Some(key.clone()));
        }
    }
    Ok(None)
}

async fn is_unfinished(tasks: &dyn WorkerStore, id: TaskId) -> Result<bool, StoreError> {
    let found = tasks.task(id).await?;
    Ok(found.is_some_and(|task| !task.state.phase().is_terminal()))
}

/// Waits for the end of a task.
async fn ended(tasks: &dyn WorkerStore, id: TaskId) {
    let mut hints = tasks.withdrawals();
    // If the store cannot answer now, ask it again.
    while is_unfinished(tasks, id).await.unwrap_or(true) {
        tokio::select! {
            biased;
            Ok(()) = hints.changed() => {}
            () = tokio::time::sleep(CHECK_EVERY) => {}
        }
    }
}

/// Removes the files that exist. If that fails, the end of the task records them as garbage.
async fn remove(blobs: &dyn BlobStore, keys: &[String]) {
    for key in keys {
        if let Err(error) = blobs.delete(key).await {
            tracing::warn!(%error, %key, "unneeded reference not removed");
        }
    }
}

/// Copies a blob to a local file.
pub(crate) async fn download(
    blobs: &dyn BlobStore,
    key: &str,
    to: &Path,
    files: &BlockingPool,
) -> Result<(), BlobError> {
    let mut stream = blobs.read(key, 0..u64::MAX).await?;
    let to = to.to_owned();
    let mut file = files.run(move || File::create_new(to)).await??;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        let written = files.run(move || file.write_all(&chunk).map(|()| file));
        file = written.await??;
    }
    Ok(())
}

/// The source of references: the network, or a simulation of it.
#[async_trait]
pub trait ReferenceSource: Send + Sync + Debug {
    /// As [`ReferenceFetcher::fetch`].
    ///
    /// # Errors
    /// As [`ReferenceFetcher::fetch`].
    async fn fetch(
        &self,
        request: &kinora_http_fetch::ReferenceRequest<'_>,
    ) -> Result<u64, FetchError>;
}

#[async_trait]
impl ReferenceSource for ReferenceFetcher {
    async fn fetch(
        &self,
        request: &kinora_http_fetch::ReferenceRequest<'_>,
    ) -> Result<u64, FetchError> {
        Self::fetch(self, request).await
    }
}
