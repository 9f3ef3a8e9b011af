//! The interface for the API.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::lifecycle::{Event, Record};
use kinora_contract::{Failure, State as Phase, StoredFile, Task, TaskId};

use super::ReferenceStore;
use super::state::{Binding, State};
use crate::changes::ended_from;
use crate::chores::DELETION_LEASE_MS;
use crate::page::Filling;
use crate::queue::Change;
use crate::task::Load;
use crate::{
    Cancellation, Changes, ChoreDone, ChoreWork, Counts, Deletion, Ended, EndedRequest, Glance,
    Idempotency, Insertion, NewTask, Order, Page, PageRequest, StoreError, Tasks, Usage,
};

#[async_trait]
impl Tasks for ReferenceStore {
    async fn insert(&self, new: NewTask) -> Result<Insertion, StoreError> {
        self.state().insert(&new)
    }

    async fn find_twin(
        &self,
        project: &str,
        idempotency: &Idempotency,
    ) -> Result<Option<Arc<Task>>, StoreError> {
        match self.state().find_twin(project, idempotency) {
            Some(Insertion::Replayed(twin)) => Ok(Some(twin)),
            _ => Ok(None),
        }
    }

    async fn get(&self, project: &str, id: TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        let found = self.state().own(project, id);
        Ok(found.map(|record| record.task.clone()))
    }

    async fn list(&self, request: PageRequest) -> Result<Page, StoreError> {
        Ok(self.state().list(&request))
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError> {
        let state = self.state();
        let position = |id| state.estimates.position(state.records.get(id)?);
        Ok(ids.iter().map(position).collect())
    }

    async fn glance(&self, ids: &[TaskId]) -> Result<Vec<Option<Glance>>, StoreError> {
        let state = self.state();
        let glance = |id| Glance::of(&state.records.get(id)?.task);
        Ok(ids.iter().map(glance).collect())
    }

    async fn unfinished(&self, project: &str) -> Result<Vec<Glance>, StoreError> {
        let state = self.state();
        let own = state
            .unfinished()
            .filter(|record| record.task.project == project);
        Ok(own.filter_map(|record| Glance::of(&record.task)).collect())
    }

    async fn ended(&self, request: EndedRequest) -> Result<Ended, StoreError> {
        Ok(self.state().ended(&request))
    }

    fn changes(&self) -> Changes {
        self.state().followers.join()
    }

    async fn preview(&self, id: TaskId) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.state().previews.get(&id).cloned())
    }

    async fn cancel(
        &self,
        project: &str,
        id: TaskId,
        failure: Failure,
        retention_ms: u64,
    ) -> Result<Cancellation, StoreError> {
        let mut state = self.state();
        let Some(before) = state.own(project, id) else {
            return Ok(Cancellation::NotFound);
        };
        let cancelled = Event::Cancelled {
            failure,
            now_ms: state.now().wall_ms,
            retention_ms,
        };
        Ok(match state.apply(&before, cancelled) {
            Ok(Some(after)) => Cancellation::Cancelled(after.task.clone()),
            _ => Cancellation::AlreadyFinished(before.task.clone()),
        })
    }

    async fn delete(&self, project: &str, id: TaskId) -> Result<Deletion, StoreError> {
        let mut state = self.state();
        let Some(before) = state.own(project, id) else {
            return Ok(Deletion::NotFound);
        };
        let now_ms = state.now().wall_ms;
        state.expect(&before, Event::Deleted { now_ms })?;
        let files: &[_] = match &before.task.state {
            Phase::Completed(artifact) => &artifact.files(),
            _ => &[],
        };
        let chore = |file: &&StoredFile| state.chore(&ChoreWork::RemoveFile(file.key.clone()));
        let numbers: Vec<u64> = files.iter().filter_map(chore).collect();
        let files = state.lease_chores(&numbers, DELETION_LEASE_MS);
        Ok(Deletion::Deleted { files })
    }

    async fn settle_deleted(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        self.state().settle_chores(done);
        Ok(())
    }

    async fn usage(&self, project: &str) -> Result<Usage, StoreError> {
        Ok(self.state().usage(|task| task.project == project))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let state = self.state();
        let unfinished = state.unfinished().map(|record| &**record);
        Ok(Counts::of(unfinished, state.now().wall_ms))
    }

    fn is_writable(&self) -> bool {
        true
    }
}

impl State {
    fn insert(&mut self, new: &NewTask) -> Result<Insertion, StoreError> {
        let (project, now_ms) = (&new.project, self.now().wall_ms);
        if let Some(idempotency) = &new.idempotency
            && let Some(earlier) = self.find_twin(project, idempotency)
        {
            return Ok(earlier);
        }
        let newest = self.newest.entry(project.clone()).or_default();
        *newest = new.id.following(*newest);
        let id = *newest;
        let record = Arc::new(Record::accepted(
            self.next_number(),
            new.accepted(id, now_ms),
        ));
        let refusal = new.bounds.refusal(record.charged_bytes, self.load(project));
        if let Some(full) = refusal {
            return Ok(self.estimates.refuse(project, now_ms, new.bounds, full));
        }
        if self.records.contains_key(&id) {
            return Err(StoreError::Unavailable("the id is taken".into()));
        }
        self.put(Change {
            id,
            before: None,
            after: Some(record.clone()),
        });
        self.estimates.admitted(project, now_ms);
        self.gaps.accept(id.created_at_ms());
        if let Some(idempotency) = &new.idempotency {
            let binding = Binding {
                fingerprint: idempotency.fingerprint,
                expires_at_ms: now_ms.saturating_add(idempotency.bound_ms),
                task: id,
            };
            let place = (project.clone(), idempotency.key.clone());
            self.bindings.insert(place, binding);
        }
        if let Some(callback) = &new.callback {
            self.note_callback(id, callback);
        }
        Ok(Insertion::Inserted(record.task.clone()))
    }

    /// The effect of an earlier request under the same key on this one.
    fn find_twin(&self, project: &str, idempotency: &Idempotency) -> Option<Insertion> {
        let place = (project.to_owned(), idempotency.key.clone());
        let binding = self.bindings.get(&place)?;
        if binding.fingerprint != idempotency.fingerprint {
            return Some(Insertion::KeyReused);
        }
        self.task(binding.task).map(Insertion::Replayed)
    }

    fn load(&self, project: &str) -> Load {
        let waiting = self.unfinished().filter(|record| record.is_waiting());
        let own = |record: &&Arc<Record>| record.task.project == project;
        let reserved = self.estimates.reserved(project, self.now().wall_ms);
        Load {
            waiting: (waiting.count() as u64).saturating_add(reserved),
            unfinished: self.unfinished().filter(own).count() as u64,
            own: self.usage(|task| task.project == project),
            bytes: self.usage(|_| true).bytes,
        }
    }

    fn ended(&self, request: &EndedRequest) -> Ended {
        let now_ms = self.now().wall_ms;
        let from_ms = ended_from(request.since_ms, now_ms);
        let tasks = self.records.values().map(|record| &record.task);
        let own = tasks.filter(|task| task.project == request.project && task.status().is_some());
        let ended = own.filter_map(|task| Some((task.finished_at_ms?, task.id)));
        let mut ended: Vec<_> = ended.filter(|(at_ms, _)| *at_ms >= from_ms).collect();
        ended.sort_unstable();
        let surplus = ended.len().saturating_sub(request.limit);
        Ended {
            tasks: ended.split_off(surplus),
            from_ms,
            next_ms: now_ms,
            now_ms,
        }
    }

    fn list(&self, request: &PageRequest) -> Page {
        let listed = |task: &&Arc<Task>| {
            let is_after = match (request.after, request.order) {
                (None, _) => true,
                (Some(after), Order::Ascending) => task.id > after,
                (Some(after), Order::Descending) => task.id < after,
            };
            is_after && request.lists(task)
        };
        let tasks = self.records.values().map(|record| &record.task);
        let mut tasks: Vec<_> = tasks.filter(listed).collect();
        if request.order == Order::Descending {
            tasks.reverse();
        }
        let mut filling = Filling::up_to(request.limit);
        for task in tasks {
            if !filling.add(task) {
                break;
            }
        }
        filling.page()
    }
}
