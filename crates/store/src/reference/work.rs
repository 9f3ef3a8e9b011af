//! The interface for workers.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::TaskId;
use kinora_contract::lifecycle::{Event, Record, References, Refused};
use tokio::sync::watch;

use super::ReferenceStore;
use super::state::State;
use crate::act::Act;
use crate::queue::{Claiming, QueuePlace, Share, alone};
use crate::{
    Attempt, Claim, ClaimRequest, Fetch, FetchRequest, Fetched, Lease, LeaseLost, LongTasks,
    Outcome, Renewal, StoreError, Work,
};

#[async_trait]
impl Work for ReferenceStore {
    async fn take_fetches(&self, request: FetchRequest) -> Result<Vec<Fetch>, StoreError> {
        self.state().take_fetches(&request)
    }

    async fn settle_fetch(&self, fetch: &Fetch, fetched: Fetched) -> Result<(), StoreError> {
        let token = fetch.token;
        let act = Act::SettleFetch { token, fetched };
        self.state().act(fetch.task.id, &act)
    }

    async fn charge_references(&self, task: TaskId, bytes: u64) -> Result<(), StoreError> {
        let mut state = self.state();
        if let Some(before) = state.records.get(&task).cloned() {
            // No effect on a task that has ended.
            let _ = state.apply(&before, Event::ReferencesStored { bytes });
        }
        Ok(())
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        Ok(self.state().claim(&request))
    }

    async fn has_claimable(&self, request: &ClaimRequest) -> Result<bool, StoreError> {
        let state = self.state();
        let (running, awaited) = (state.running(), state.awaited(request));
        let has_next = state.next(request, request.long_tasks).is_some();
        Ok(Claiming::leads_to_task(
            request,
            &state.now(),
            running,
            awaited,
            has_next,
        ))
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_ms: u64,
        renewal: Renewal,
    ) -> Result<(), StoreError> {
        let act = Act::Renew {
            token: lease.token,
            lease_ms,
            renewal,
        };
        self.state().act(lease.task, &act)
    }

    async fn put_preview(&self, lease: &Lease, preview: Arc<[u8]>) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.judge(lease).is_ok() {
            state.previews.insert(lease.task, preview);
        }
        Ok(())
    }

    async fn lost(&self, leases: &[Lease]) -> Result<Vec<(usize, LeaseLost)>, StoreError> {
        let state = self.state();
        let lost = |(place, lease)| Some((place, state.judge(lease).err()?));
        Ok(leases.iter().enumerate().filter_map(lost).collect())
    }

    async fn finish(
        &self,
        lease: &Lease,
        outcome: Outcome,
        retention_ms: u64,
    ) -> Result<(), StoreError> {
        let act = Act::Finish {
            token: lease.token,
            outcome,
            retention_ms,
        };
        self.state().act(lease.task, &act)
    }

    async fn release(&self, lease: &Lease, attempt: Attempt) -> Result<(), StoreError> {
        let token = lease.token;
        let act = Act::Release { token, attempt };
        self.state().act(lease.task, &act)
    }

    /// Others may serve the store beside this process, so its deaths mean nothing.
    fn unclean_starts(&self) -> Option<u64> {
        None
    }

    async fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn work_hints(&self) -> watch::Receiver<u64> {
        self.state().work.subscribe()
    }

    fn withdrawals(&self) -> watch::Receiver<u64> {
        self.state().withdrawn.subscribe()
    }
}

impl State {
    fn judge(&self, lease: &Lease) -> Result<(), LeaseLost> {
        let record = self.records.get(&lease.task);
        Record::judge_lease(record.map(|record| &**record), lease)
    }

    fn act(&mut self, task: TaskId, act: &Act) -> Result<(), StoreError> {
        let Some(before) = self.records.get(&task).cloned() else {
            return Err(StoreError::LeaseLost(LeaseLost::Withdrawn));
        };
        match self.apply(&before, act.at(&self.now())) {
            Ok(_) => Ok(()),
            Err(Refused::LeaseLost(lost)) => Err(StoreError::LeaseLost(lost)),
            Err(refused) => Err(StoreError::Corrupt(format!("{task}: {refused}"))),
        }
    }

    fn claim(&mut self, request: &ClaimRequest) -> Vec<Claim> {
        self.estimates.learn(request);
        let awaited = self.awaited(request);
        let mut claiming = Claiming::begin(request, &self.now(), self.running(), awaited);
        while claiming.is_open()
            && let Some(before) = self.next(request, claiming.long_tasks())
        {
            if let Err(next) = claiming.admit(&before) {
                self.alone = Some(next);
                break;
            }
            let token = self.next_number();
            let Ok(Some(after)) = self.apply(&before, claiming.event(token)) else {
                break;
            };
            claiming.add(&after, token);
        }
        claiming.claims()
    }

    /// The task that waits for the requesting worker to be empty.
    fn awaited(&self, request: &ClaimRequest) -> Option<&Record> {
        let awaited = self.alone.as_ref().and_then(|next| next.awaits(request));
        let awaited = awaited.and_then(|id| self.records.get(&id));
        awaited.map(|record| &**record)
    }

    /// The task to claim next: the first one of the project whose turn it is, unless that has
    /// reached its share of slots, or its first task must wait for a long one to end.
    fn next(&self, request: &ClaimRequest, long: Option<LongTasks>) -> Option<Arc<Record>> {
        let share = Share::of(request);
        let served = |record: &&Arc<Record>| request.models.contains(&record.task.spec.model);
        let claimable = || {
            let records = self.unfinished().filter(|record| record.is_claimable());
            records.filter(served)
        };
        let has_share = |record: &&Arc<Record>| {
            let project = &record.task.project;
            let own = |run: &&Record| {
                let lease = run.lease.as_ref();
                lease.is_some_and(|lease| lease.worker == request.worker)
            };
            let running = self.running().filter(own);
            let running = running.filter(|run| run.task.project == *project);
            let others_wait = || claimable().any(|other| other.task.project != *project);
            share.allows(running.count() as u64, others_wait)
        };
        let held_back = |record: &&Arc<Record>| {
            let own = claimable().filter(|other| other.task.project == record.task.project);
            let first = own.min_by_key(|other| QueuePlace::of(other));
            first.is_some_and(|first| {
                long.is_some_and(|long| long.hold_back(first))
                    || alone::is_too_early(first, request)
            })
        };
        let may_start = |record: &&Arc<Record>| has_share(record) && !held_back(record);
        next_of(claimable().filter(may_start), |project| {
            self.turns.of(project)
        })
    }

    fn take_fetches(&mut self, request: &FetchRequest) -> Result<Vec<Fetch>, StoreError> {
        let now = self.now();
        let is_back =
            |record: &&Arc<Record>| record.is_waiting() && request.is_over(record.references, &now);
        let back: Vec<_> = self.unfinished().filter(is_back).cloned().collect();
        for record in back {
            self.expect(&record, Event::FetchDue)?;
        }
        let mut taken = Vec::new();
        while taken.len() < request.count
            && let Some(before) = self.next_fetch(request)
        {
            let token = self.next_number();
            let Ok(Some(after)) = self.apply(&before, request.begun(token, &now)) else {
                break;
            };
            let project = after.task.project.clone();
            self.last_fetches.insert(project, token);
            taken.push(Fetch::of(&after, token));
        }
        Ok(taken)
    }

    /// The task to fetch for next: the first one of the project with the fewest fetches in
    /// progress; among several, of the one whose last fetch is longest ago.
    fn next_fetch(&self, request: &FetchRequest) -> Option<Arc<Record>> {
        let is_wanted = |record: &&Arc<Record>| {
            let is_served = request.models.contains(&record.task.spec.model);
            let is_wanted = matches!(record.references, References::Wanted { .. });
            is_served && record.is_waiting() && is_wanted
        };
        let under_way = |project: &str| {
            let waiting = self.unfinished().filter(|record| record.is_waiting());
            let own = waiting.filter(|record| record.task.project == project);
            own.filter(|record| record.references.fetch().is_some())
                .count()
        };
        let may = |record: &&Arc<Record>| under_way(&record.task.project) < request.project_max;
        let turn = |project: &str| {
            let last_fetch = self.last_fetches.get(project).copied();
            (under_way(project), last_fetch)
        };
        let wanted = self.unfinished().filter(is_wanted);
        next_of(wanted.filter(may), turn)
    }
}

/// The first task of the project with the smallest turn. Among equals, of the project whose first
/// task of a model was accepted earlier.
fn next_of<'a, T: Ord>(
    tasks: impl Iterator<Item = &'a Arc<Record>>,
    turn: impl Fn(&str) -> T,
) -> Option<Arc<Record>> {
    let mut firsts: HashMap<(&str, &str), &Arc<Record>> = HashMap::new();
    for task in tasks {
        let line = (task.task.project.as_str(), task.task.spec.model.as_str());
        let first = firsts.entry(line).or_insert(task);
        if QueuePlace::of(task) < QueuePlace::of(first) {
            *first = task;
        }
    }
    let next = firsts
        .values()
        .min_by_key(|first| (turn(&first.task.project), first.seq))?;
    let own = firsts
        .values()
        .filter(|first| first.task.project == next.task.project);
    own.min_by_key(|first| QueuePlace::of(first))
        .copied()
        .cloned()
}
