//! Accepts a task: idempotency key, limits and insert in one transaction. Refuses nothing about the
//! request itself: that was validated before.

use std::sync::Arc;

use kinora_contract::lifecycle::TaskRecord;
use kinora_contract::{FileId, TaskCost, UnixMs, listed_bytes};

use crate::backend::{CommitChannel, RowNeeds, StoreOperation, StoreTransaction};
use crate::budgets;
use crate::tables::{spending, uploads};
use crate::tasks::{ExceededLimit, QueueLoad};
use crate::{ExceededBudget, NewTask, Spending};

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
    OverBudget(ExceededBudget),
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
        let mut accepted = new.accepted(id, tx.now().wall_ms);
        // A cost counts on one day, whenever the task ends. Only a task with a cost reads what was spent.
        let spent = find_spending(new, tx).await?;
        accepted.cost = reserved(new, spent.as_ref());
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
        if let Some(over) = over_budget(new, spent.as_ref(), tx.now().wall_ms) {
            return Ok(SubmitOutcome::OverBudget(over));
        }
        // 5. The task, its key, the uses of files, its callback and its cost are stored together.
        tx.insert(record.clone(), new.callback.as_ref())?;
        if let Some(idempotency) = &new.idempotency {
            tx.bind_key(&record, idempotency)?;
        }
        if let (Some(cost), Some((spent, key))) = (&new.cost, spent) {
            // At once: the next submit of the transaction must see it.
            let reserve = spending::reserve(&new.project, &key, spent.today, cost.amount);
            tx.write(reserve).await?;
        }
        if !new.files.is_empty() {
            // At once, not at the end of the transaction: a deletion of the file may share it.
            let add = uploads::add_uses(T::DIALECT, record.task.id, &new.files);
            tx.write(add).await?;
        }
        Ok(SubmitOutcome::Accepted(record))
    }
}

/// What the key and the project of a task with a cost have spent, and the id of the key's budget. Exact: sums change only
/// under the lock of the project, which this transaction holds.
async fn find_spending<T: StoreTransaction>(
    new: &NewTask,
    tx: &mut T,
) -> Result<Option<(Spending, String)>, T::Fault> {
    if new.cost.is_none() {
        return Ok(None);
    }
    let key = &new.budgets.key;
    let rows = tx.query(spending::find(&new.project, key)).await?;
    Ok(Some(spending::read(&rows, key, tx.now().wall_ms)?))
}

/// The cost of a task with its place in the budgets.
fn reserved(new: &NewTask, spent: Option<&(Spending, String)>) -> Option<TaskCost> {
    let (cost, (spent, budget)) = (new.cost.as_ref()?, spent?);
    Some(budgets::reserve(cost, budget, spent.today))
}

fn over_budget(
    new: &NewTask,
    spent: Option<&(Spending, String)>,
    now_ms: UnixMs,
) -> Option<ExceededBudget> {
    let (cost, (spent, _)) = (new.cost.as_ref()?, spent?);
    spent.refusal(&new.budgets, cost.amount, now_ms)
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
