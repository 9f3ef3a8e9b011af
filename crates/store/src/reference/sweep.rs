//! What ends by time.

use std::cmp::Reverse;
use std::sync::Arc;

use kinora_contract::lifecycle::{Event, Record, Verdict};
use kinora_contract::{Phase, UnixMs};

use super::state::State;
use crate::queue::alone::Company;
use crate::{ExpiryCursor, Postpone, StoreError, SweepRequest, Swept};

impl State {
    pub(super) fn sweep(&mut self, request: &SweepRequest) -> Result<Swept, StoreError> {
        let (mut swept, now) = (Swept::default(), self.now());
        // As it was at the deaths, before any of the tasks is taken up.
        let company = Company::of(self.running());
        let running = self.unfinished().filter(|record| record.is_running());
        for record in request.lost(running, now.steady_ms) {
            let verdict = company.judge(&record, request.attempts_max);
            let lost = Event::WorkerLost {
                verdict,
                now_ms: now.wall_ms,
                retention_ms: request.retention_ms,
            };
            self.expect(&record, lost)?;
            match verdict {
                Verdict::Lost => swept.lost += 1,
                Verdict::Again | Verdict::Spared => swept.requeued += 1,
            }
        }
        swept.more = swept.requeued + swept.lost >= request.batch as u64;
        if let Some(due_ms) = request.due_ms {
            self.end_by_time(request, due_ms, &mut swept)?;
        }
        Ok(swept)
    }

    /// What the wall clock alone decides.
    fn end_by_time(
        &mut self,
        request: &SweepRequest,
        due_ms: UnixMs,
        swept: &mut Swept,
    ) -> Result<(), StoreError> {
        let is_full = |count: u64| count >= request.batch as u64;
        for record in request.late(self.unfinished(), due_ms) {
            let late = Event::WaitedTooLong {
                now_ms: due_ms,
                retention_ms: request.retention_ms,
            };
            self.expect(&record, late)?;
            swept.waited += 1;
        }
        swept.more |= is_full(swept.waited);
        // Before the expiry: nothing goes both ways in one sweep.
        if let Some(before_ms) = due_ms.checked_sub(request.tombstone_ms) {
            for record in self.due(Phase::Expired, before_ms, request.batch) {
                self.expect(&record, Event::Deleted)?;
                swept.forgotten += 1;
            }
        }
        swept.more |= is_full(swept.forgotten);
        for phase in [Phase::Completed, Phase::Failed] {
            let due = self.due(phase, due_ms, request.batch);
            for record in &due {
                self.expect(record, Event::Expired { now_ms: due_ms })?;
            }
            swept.expired += due.len() as u64;
            swept.more |= is_full(due.len() as u64);
        }
        if let Some(before_ms) = due_ms.checked_sub(request.keys_kept_ms) {
            let due = self.bindings.iter();
            let due = due.filter(|(_, binding)| binding.expires_at_ms <= before_ms);
            let due: Vec<_> = due
                .map(|(place, _)| place.clone())
                .take(request.batch)
                .collect();
            for place in &due {
                self.bindings.remove(place);
            }
            swept.more |= is_full(due.len() as u64);
        }
        Ok(())
    }

    /// A batch of the tasks of a phase whose expiry lies at or before `until_ms`, oldest first.
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
        // Last ones first: what is moved lands behind the place at which the next call goes on.
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
    /// The place of an ended task that is to be kept longer.
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
