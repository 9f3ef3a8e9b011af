//! A task's references: fetched once, under guard, by the fetch stage, and kept in the blob store until the task
//! has ended, so that a rerun does not fetch again. A run only looks for them.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kinora_blobs::{BlobError, BlobStore, Reserve};
use kinora_contract::limits::{REFERENCE_AUDIO_BYTES_MAX, REFERENCE_IMAGE_BYTES_MAX};
use kinora_contract::{Reference, StoredFile, Task, TaskId};
use kinora_pool::Pool;
use kinora_scratch::Scratch;
use kinora_store::{StoreError, Work, reference_keys};
use tokio::sync::Semaphore;

use crate::error::GatherError;
use crate::fault::is_theirs;
use crate::judge::Judge;
use crate::record::Staged;
use crate::reference_source::ReferenceSource;

/// How often a fetch looks whether its task has ended although there was no hint.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Fetches references, and knows which tasks' are being fetched at the moment.
#[derive(Debug)]
pub struct References {
    source: Arc<dyn ReferenceSource>,
    gates: Mutex<HashMap<TaskId, Weak<Gate>>>,
    /// One task's files are decoded at a time: a large image takes 150 MB for a moment.
    pub(crate) decoding: Arc<Semaphore>,
    /// One file that arrives is judged at a time.
    arrivals: Arc<Semaphore>,
    reserve: Reserve,
    /// Where they arrive.
    scratch: Arc<Scratch>,
}

/// Held while a task's references are fetched.
type Gate = tokio::sync::Mutex<()>;

impl References {
    /// References that `source` brings into `scratch`.
    pub fn new(source: impl ReferenceSource + 'static, scratch: Arc<Scratch>) -> Self {
        Self {
            source: Arc::new(source),
            gates: Mutex::default(),
            decoding: Arc::new(Semaphore::new(1)),
            arrivals: Arc::new(Semaphore::new(1)),
            reserve: Reserve::default(),
            scratch,
        }
    }

    /// Stores none while there is no room besides `reserve`.
    #[must_use]
    pub fn with_reserve(mut self, reserve: Reserve) -> Self {
        self.reserve = reserve;
        self
    }

    /// Whether there is room for more.
    pub(crate) fn has_room(&self) -> bool {
        self.reserve.has_room()
    }

    /// The keys of the references of `task`, in the spec's order, or [`GatherError::Missing`]: a run fetches
    /// nothing.
    pub(crate) async fn at_hand(
        tasks: &dyn Work,
        blobs: &dyn BlobStore,
        task: &Task,
    ) -> Result<Vec<String>, GatherError> {
        let found = find(tasks, blobs, task).await?;
        let keys: Option<Vec<String>> = found.into_iter().collect();
        keys.ok_or(GatherError::Missing)
    }

    /// Makes sure that every reference of `task` is in the blob store, and returns their keys in
    /// the spec's order. The final of a draft takes the draft's, while they are kept.
    pub(crate) async fn gather(
        &self,
        tasks: &dyn Work,
        blobs: &dyn BlobStore,
        files: &Pool,
        task: &Task,
    ) -> Result<Vec<String>, GatherError> {
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
        let judge = Judge::new(&task.spec, &self.decoding, &self.arrivals, files);
        let references = task.spec.inputs.references();
        let fetched = missing.iter().map(|index| {
            let (reference, key) = (references[*index], &own[*index]);
            self.fetch(blobs, task, *index, reference, key, &judge)
        });
        // Nobody waits for the references of a task that has ended.
        let fetched = tokio::select! {
            biased;
            fetched = join_fetches(fetched.collect()) => fetched,
            () = ended(tasks, task.id) => Err(GatherError::Ended),
        };
        // A task that ended meanwhile has had its files swept before these came. What came of one that waits for
        // another try is not fetched again.
        let of_no_use = match &fetched {
            Ok(()) => false,
            Err(error) => is_theirs(error) || matches!(error, GatherError::Ended),
        };
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
        reference: Reference<'_>,
        key: &str,
        judge: &Judge,
    ) -> Result<(), GatherError> {
        let bytes_max = match reference {
            Reference::Image(_) => REFERENCE_IMAGE_BYTES_MAX,
            Reference::Audio(_) => REFERENCE_AUDIO_BYTES_MAX,
        };
        let staged = Staged::new(&self.scratch, &format!("{}-reference-{index}", task.id));
        let bytes = self
            .source
            .fetch(&kinora_fetch::Request {
                project: &task.project,
                url: reference.url(),
                to: staged.path(),
                bytes_max,
            })
            .await
            .map_err(|error| match error.is_final() {
                true => GatherError::Fetch { index, error },
                false => GatherError::Later { index, error },
            })?;
        tracing::debug!(task = %task.id, index, bytes, "reference fetched");
        kinora_crash::point("worker.reference_fetched");
        let (bytes, sha256) = judge.keep(index, reference, staged.path()).await?;
        let file = StoredFile {
            key: key.to_owned(),
            bytes,
            sha256,
        };
        match blobs.put_file(&file, staged.path()).await {
            Ok(()) | Err(BlobError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        kinora_crash::point("worker.reference_stored");
        Ok(())
    }

    fn gate(&self, task: TaskId) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(&task).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::default());
        gates.insert(task, Arc::downgrade(&gate));
        gate
    }
}

/// Waits for all fetches of a task. One that only waits for its turn ends no other, so that what is under way is
/// not asked for twice; whatever else goes wrong ends all at once.
async fn join_fetches(
    mut fetches: FuturesUnordered<impl Future<Output = Result<(), GatherError>>>,
) -> Result<(), GatherError> {
    let mut later = None;
    while let Some(fetched) = fetches.next().await {
        match fetched {
            Err(error @ GatherError::Later { .. }) => later = later.or(Some(error)),
            other => other?,
        }
    }
    later.map_or(Ok(()), Err)
}

/// Counts what the task's own references take, now that they are there. Those of a draft are the draft's.
async fn charge(
    tasks: &dyn Work,
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

/// For each reference of `task` the key under which it is stored, its own or its draft's.
async fn find(
    tasks: &dyn Work,
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

async fn is_unfinished(tasks: &dyn Work, id: TaskId) -> Result<bool, StoreError> {
    let found = tasks.task(id).await?;
    Ok(found.is_some_and(|task| !task.state.phase().is_terminal()))
}

/// Waits for the end of a task.
async fn ended(tasks: &dyn Work, id: TaskId) {
    let mut hints = tasks.withdrawals();
    // A store that cannot say so now is asked again.
    while is_unfinished(tasks, id).await.unwrap_or(true) {
        tokio::select! {
            biased;
            Ok(()) = hints.changed() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Removes the file if it exists. If that fails, the end of the task notes it as garbage.
async fn remove(blobs: &dyn BlobStore, keys: &[String]) {
    for key in keys {
        if let Err(error) = blobs.delete(key).await {
            tracing::warn!(%error, %key, "a reference that is not needed any more was left behind");
        }
    }
}

/// Copies a blob to a file of this machine.
pub(crate) async fn download(
    blobs: &dyn BlobStore,
    key: &str,
    to: &Path,
    files: &Pool,
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
