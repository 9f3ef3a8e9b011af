//! Accepts a task: idempotency key, limits and insert in one transaction. Refuses nothing about the
//! request itself: that was validated before.

use std::sync::Arc;

use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{FileId, listed_bytes};

use crate::NewTask;
use crate::backend::{CommitChannel, RowNeeds, StoreOperation, StoreTransaction};
use crate::tables::uploads;
use crate::tasks::{ExceededLimit, QueueLoad};

/// Accepts a task.
#[derive(Debug)]
pub(crate) struct SubmitTask {
    pub(crate) new: NewTask,
    /// Places in the queue that are promised to other projects.
    pub(crate) reserved: u64,
}

/// The result, before it becomes an answer.
#[derive(Debug)]
pub(crate) enum SubmitOutcome {
    Accepted(Arc<TaskRecord>),
    /// The task of an earlier request with the same key.
    Replayed(Arc<TaskRecord>),
    KeyReused,
    /// An uploaded file that the task names is gone.
    FileGone(FileId),
    Refused(ExceededLimit),
}

impl StoreOperation for SubmitTask {
    type Output = SubmitOutcome;

    fn needs(&self, needs: &mut RowNeeds) {
        let new = &self.new;
        needs.projects.insert(new.project.clone());
        needs.places += 1;
        needs.totals = true;
        if let Some(idempotency) = &new.idempotency {
            let key = (new.project.clone(), idempotency.key.clone());
            needs.keys.insert(key);
        }
    }

    fn channel(&self) -> CommitChannel<'_> {
        CommitChannel::Submits(&self.new.project)
    }

    fn has_client(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        listed_bytes(&self.new.accepted(self.new.id, 0))
    }

    async fn apply<T: StoreTransaction>(&self, tx: &mut T) -> Result<SubmitOutcome, T::Fault> {
        let new = &self.new;
        // 1. A key that is bound answers with its task. Only a sweep, or the deletion of the task,
        // frees a key: a clock that is wrong for a moment must not cause a second video.
        if let Some(idempotency) = &new.idempotency
            && let Some(bound) = tx.key_binding(&new.project, &idempotency.key)?
        {
            if bound.fingerprint != idempotency.fingerprint {
                return Ok(SubmitOutcome::KeyReused);
            }
            if let Some(earlier) = tx.find(bound.task)? {
                return Ok(SubmitOutcome::Replayed(earlier));
            }
        }
        // 2. The files that it names must be there, and stay until it has ended. A file changes only under
        // the lock of its project, which this transaction holds.
        if let Some(gone) = find_gone(new, tx).await? {
            return Ok(SubmitOutcome::FileGone(gone));
        }
        // 3. Id and place follow the order of acceptance. The id that the caller drew may be behind one that
        // another process drew for the same project; lists sort by id, so a later one replaces it.
        let id = tx.next_id(&new.project, new.id)?;
        let accepted = new.accepted(id, tx.now().wall_ms);
        let record = Arc::new(TaskRecord::accepted(tx.next_place()?, accepted));
        // 4. Limits hold exactly, however many submits share the transaction: each sees those before it.
        let load = tx.load(&new.project);
        let load = QueueLoad {
            waiting: load.waiting.saturating_add(self.reserved),
            ..load
        };
        if let Some(full) = new.bounds.refusal(record.charged_bytes, load) {
            return Ok(SubmitOutcome::Refused(full));
        }
        // 5. The task, its key, the uses of files and its callback are stored together.
        tx.insert(record.clone(), new.callback.as_ref())?;
        if let Some(idempotency) = &new.idempotency {
            tx.bind_key(&record, idempotency)?;
        }
        if !new.files.is_empty() {
            // At once, not at the end of the transaction: a deletion of the file may share it.
            let add = uploads::add_uses(T::DIALECT, record.task.id, &new.files);
            tx.write(add).await?;
        }
        Ok(SubmitOutcome::Accepted(record))
    }
}

/// The first file of a new task that its project does not have, or no longer has.
async fn find_gone<T: StoreTransaction>(
    new: &NewTask,
    tx: &mut T,
) -> Result<Option<FileId>, T::Fault> {
    if new.files.is_empty() {
        return Ok(None);
    }
    let now_ms = tx.now().wall_ms;
    let ask = uploads::visible_ids(T::DIALECT, &new.project, &new.files, now_ms);
    let found = tx.query(ask).await?;
    let found: Vec<String> = found
        .iter()
        .map(|row| row.get(0))
        .collect::<Result<_, _>>()?;
    let mut files = new.files.iter();
    Ok(files.find(|id| !found.contains(&id.to_string())).copied())
}
