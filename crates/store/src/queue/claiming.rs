//! One claim: how many tasks a worker gets, and where the claim stops. The store supplies the
//! running tasks and, repeatedly, the task whose turn it is ([`super::Turns`], [`super::Share`]),
//! and stores the claimed ones.

use kinora_contract::lifecycle::{Event, Record};

use super::alone;
use crate::present::Present;
use crate::{Claim, ClaimRequest, LongTasks};

/// A claim in progress.
#[derive(Debug)]
pub(crate) struct Claiming<'a> {
    request: &'a ClaimRequest,
    now: Present,
    /// Whether the worker ran anything before the claim.
    was_busy: bool,
    /// Whether nothing more may be claimed in addition to the worker's tasks.
    is_closed: bool,
    /// The long tasks that may still be claimed.
    long_tasks: Option<LongTasks>,
    claims: Vec<Claim>,
}

impl<'a> Claiming<'a> {
    /// Begins a claim, given the `running` tasks of all workers; `awaited` is the task that waits
    /// for this worker to be empty ([`alone::Next::awaits`]).
    pub(crate) fn begin<'r>(
        request: &'a ClaimRequest,
        now: &Present,
        running: impl Iterator<Item = &'r Record>,
        awaited: Option<&Record>,
    ) -> Self {
        let runs = alone::runs_of(running, request, now);
        Self {
            request,
            now: now.clone(),
            was_busy: !runs.is_empty(),
            is_closed: alone::is_held_back(&runs, awaited, request),
            long_tasks: request.long_tasks,
            claims: Vec::new(),
        }
    }

    /// Whether a claim leads to the task whose turn it is (`has_next`): it would get that now, or holds the worker back
    /// until it can, for a task of its own models that must run alone.
    pub(crate) fn leads_to_task<'r>(
        request: &ClaimRequest,
        now: &Present,
        running: impl Iterator<Item = &'r Record>,
        awaited: Option<&Record>,
        has_next: bool,
    ) -> bool {
        let awaited = awaited.filter(|one| !request.models.contains(&one.task.spec.model));
        has_next && Claiming::begin(request, now, running, awaited).is_open()
    }

    /// Whether another task may be claimed.
    pub(crate) const fn is_open(&self) -> bool {
        !self.is_closed && self.claims.len() < self.request.count
    }

    /// The long tasks that may still be claimed, if they are limited.
    pub(crate) const fn long_tasks(&self) -> Option<LongTasks> {
        self.long_tasks
    }

    /// Decides on the task whose turn it is: either it is claimed now, or the claim ends here,
    /// since the task must run alone and the worker has others.
    ///
    /// # Errors
    /// The hint to store in the second case.
    pub(crate) fn admit(&mut self, next: &Record) -> Result<(), alone::Next> {
        self.is_closed = alone::must_wait(next, self.request);
        let is_busy = self.was_busy || !self.claims.is_empty();
        if self.is_closed && is_busy {
            return Err(alone::Next::of(self.request, next));
        }
        Ok(())
    }

    /// The event that claims one task under this token.
    pub(crate) fn event(&self, token: u64) -> Event {
        Event::Claimed {
            held: self.request.held(token, &self.now),
            now_ms: self.now.wall_ms,
        }
    }

    /// Records a claimed task.
    pub(crate) fn add(&mut self, claimed: &Record, token: u64) {
        if let Some(long) = &mut self.long_tasks {
            long.charge(claimed);
        }
        self.claims.push(Claim::of(claimed, token));
    }

    /// The claimed tasks.
    pub(crate) fn claims(self) -> Vec<Claim> {
        self.claims
    }
}
