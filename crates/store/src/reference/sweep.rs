//! Expires results and forgets old tasks.

use std::cmp::Reverse;
use std::sync::Arc;

use kinora_contract::lifecycle::{Event, Record};
use kinora_contract::{Phase, UnixMs};

use super::state::State;
use crate::sweep::Part;
use crate::{ExpiryCursor, Postpone, StoreError, SweepRequest, Swept};

impl State {
    pub(super) fn sweep(&mut self, request: &SweepRequest) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        for part in request.parts() {
            let rows = match part {
                Part::Leases => self.take_up(request, &mut swept)?,
                Part::Waiting { now_ms } => {
                    let late = request.late(self.unfinished(), now_ms);
                    self.end(&late, &request.waited_too_long(now_ms))?
                }
                Part::Tombstones { until_ms } => {
                    let due = self.due(Phase::Expired, until_ms, request.batch);
                    let now_ms = self.now().wall_ms;
                    self.end(&due, &Event::Deleted { now_ms })?
                }
                Part::Results { phase, now_ms } => {
                    let due = self.due(phase, now_ms, request.batch);
                    self.end(&due, &Event::Expired { now_ms })?
                }
                Part::Keys { until_ms } => self.free_keys(until_ms, request.batch),
            };
            swept.add(part, rows, request.batch);
        }
        Ok(swept)
    }

    fn take_up(&mut self, request: &SweepRequest, swept: &mut Swept) -> Result<u64, StoreError> {
        let now = self.now();
        let running = self.unfinished().filter(|record| record.is_running());
        let lost = request.lost(running, &now);
        for (record, verdict) in &lost {
            self.expect(record, request.worker_lost(*verdict, now.wall_ms))?;
            swept.add_lost(*verdict);
        }
        Ok(lost.len() as u64)
    }

    /// Applies the event to each of these tasks; returns their number.
    fn end(&mut self, tasks: &[Arc<Record>], event: &Event) -> Result<u64, StoreError> {
        for record in tasks {
            self.expect(record, event.clone())?;
        }
        Ok(tasks.len() as u64)
    }

    /// Removes a batch of the idempotency keys that were bound until this time or before.
    fn free_keys(&mut self, until_ms: UnixMs, batch: usize) -> u64 {
        let due = self.bindings.iter();
        let due = due.filter(|(_, binding)| binding.expires_at_ms <= until_ms);
        let due: Vec<_> = due.map(|(place, _)| place.clone()).take(batch).collect();
        for place in &due {
            self.bindings.remove(place);
        }
        due.len() as u64
    }

    /// A batch of the tasks in a phase that expire at or before `until_ms`, oldest first.
    fn due(&self, phase: Phase, until_ms: UnixMs, batch: usize) -> Vec<Arc<Record>> {
        let is_due = |record: &&Arc<Record>| {
            let task = &record.task;
            let expiry = task.expires_at_ms.filter(|_| task.state.phase() == phase);
            expiry.is_some_and(|expires_at_ms| expires_at_ms <= until_ms)
        };
        let mut due: Vec<_> = self.records.values().filter(is_due).cloned().collect();
        due.sort_by_key(|record| record.task.expires_at_ms);
        due.truncate(batch);
        due
    }

    pub(super) fn postpone(
        &mut self,
        request: &Postpone,
    ) -> Result<Option<ExpiryCursor>, StoreError> {
        let mut found: Vec<_> = self
            .records
            .values()
            .filter_map(|record| Some((request.place(record)?, record.clone())))
            .collect();
        // Last ones first: a postponed task ends up behind the place where the next call continues.
        found.sort_by_key(|(place, _)| Reverse(*place));
        found.truncate(request.batch);
        for (place, record) in &found {
            let ended_at_ms = record.task.finished_at_ms;
            let expires_at_ms = request.moved(place.expires_at_ms, ended_at_ms);
            self.expect(record, Event::Postponed { expires_at_ms })?;
        }
        let last = found.last().filter(|_| found.len() == request.batch);
        Ok(last.map(|(place, _)| *place))
    }
}

impl Postpone {
    /// The place of an ended task to postpone.
    fn place(&self, record: &Record) -> Option<ExpiryCursor> {
        let task = &record.task;
        let place = ExpiryCursor {
            expires_at_ms: task.expires_at_ms?,
            number: record.seq,
        };
        let is_ended = matches!(task.state.phase(), Phase::Completed | Phase::Failed);
        let is_meant = is_ended && self.is_meant(task.finished_at_ms?);
        let is_below = place < self.below && place.expires_at_ms < self.expires_before_ms();
        (is_meant && is_below).then_some(place)
    }
}
