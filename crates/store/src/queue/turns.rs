//! Turns of projects, by start-time fair queueing (Goyal, Vin, Cheng 1996): every project has a
//! clock that each started task advances by its estimated cost, and the project whose clock is
//! furthest behind is next. When an idle project starts a task again, its clock is set to that of
//! the others, so that nobody saves up turns. Also the share of a worker's slots that one project may
//! have.
//!
//! Example: A sends tasks of cost 100, B of cost 10. Both clocks are at 0, and A starts one: its clock
//! is 100. B is behind and starts ten in a row, until its clock is 100 as well. So each gets half of
//! the work, not half of the tasks.

use std::collections::HashMap;
use std::sync::Arc;

use super::change::RecordChange;
use crate::ClaimRequest;

/// Projects without tasks are removed when there are this many more than at the last check.
const PAST_MAX: usize = 1_024;

/// The clocks, in cost units.
#[derive(Clone, Debug)]
pub(crate) struct ProjectTurns {
    /// The start of each project's next task, unless [`ProjectTurns::now`] is later.
    clocks: HashMap<Arc<str>, u64>,
    /// The start of the last started task: no project that waited all along is behind it.
    now: u64,
    forget_at: usize,
}

impl Default for ProjectTurns {
    fn default() -> Self {
        Self {
            clocks: HashMap::new(),
            now: 0,
            forget_at: PAST_MAX,
        }
    }
}

impl ProjectTurns {
    /// Restores stored clocks.
    pub(crate) fn from_stored(now: u64, clocks: impl IntoIterator<Item = (Arc<str>, u64)>) -> Self {
        Self {
            clocks: clocks.into_iter().collect(),
            now,
            // Clocks read for one transaction: none is removed here.
            forget_at: usize::MAX,
        }
    }

    /// The start of the last started task.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// The project's position: the smallest is next.
    pub(crate) fn position(&self, project: &str) -> u64 {
        self.clocks.get(project).copied().unwrap_or(0)
    }

    /// Charges a claim. The charge remains even if the task is given back, and even for a forgiven
    /// attempt: otherwise its project would be next again, and a task that this machine cannot run
    /// now would block all others.
    pub(crate) fn apply(&mut self, project: &Arc<str>, change: &RecordChange) {
        if let Some(cost) = claimed_cost(change) {
            self.charge(project, cost);
        }
    }

    /// Reverts the charge of a claim whose transaction failed.
    pub(crate) fn undo(&mut self, project: &Arc<str>, change: &RecordChange) {
        if let Some(cost) = claimed_cost(change) {
            let clock = self.clocks.entry(project.clone()).or_default();
            *clock = clock.saturating_sub(cost);
        }
    }

    /// Charges the start of a task with this cost.
    pub(crate) fn charge(&mut self, project: &Arc<str>, cost: u64) {
        // A project that was idle is behind `now`. It starts level with the others: it gets the
        // next turn, but not all the turns that it did not use.
        let start = self.position(project).max(self.now);
        self.now = start;
        self.clocks
            .insert(project.clone(), start.saturating_add(cost));
    }

    /// Occasionally removes projects without tasks and debt.
    pub(crate) fn forget_past(&mut self, is_active: impl Fn(&str) -> bool) {
        if self.clocks.len() < self.forget_at {
            return;
        }
        // A clock ahead of `now` is a debt. A project that could shed it by leaving for a moment would get
        // more than its share.
        let now = self.now;
        self.clocks
            .retain(|project, clock| *clock > now || is_active(project));
        // Doubling keeps the cost of this scan constant per charge, however many projects are in
        // debt.
        self.forget_at = 2 * self.clocks.len() + PAST_MAX;
    }
}

/// The cost of a change for its project: the task's cost if it is claimed.
fn claimed_cost(change: &RecordChange) -> Option<u64> {
    let (before, after) = (change.before.as_ref()?, change.after.as_ref()?);
    let is_claimed = before.is_waiting() && after.is_running();
    is_claimed.then(|| after.task.spec.cost())
}

/// A worker's slots, and the limit set by its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotShare {
    pub(crate) slots: usize,
    /// 0 has the meaning in [`crate::ClaimRequest::project_slots_max`].
    pub(crate) project_max: usize,
}

impl SlotShare {
    /// The share in a worker's request.
    pub(crate) fn from_request(request: &ClaimRequest) -> Self {
        Self {
            slots: request.slots,
            project_max: request.project_slots_max,
        }
    }

    /// Whether a project with this many running tasks may have another one.
    pub(crate) fn allows(self, running: u64, others_wait: impl FnOnce() -> bool) -> bool {
        // `others_wait` searches the queue, so it is asked only if its answer matters: within the
        // smaller maximum no project has to wait for anybody.
        let running = usize::try_from(running).unwrap_or(usize::MAX);
        running < self.max(true) || running < self.max(others_wait())
    }

    /// Maximum number of running tasks of one project.
    fn max(self, others_wait: bool) -> usize {
        match (self.project_max, others_wait) {
            (0, false) => usize::MAX,
            // One slot stays free for another project, so that the next one to come does not wait
            // for the end of a whole task. With a single slot the projects just take turns.
            (0, true) => self.slots.saturating_sub(1).max(1),
            (set, _) => set,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves the next project of `waiting`, `count` times; returns the projects served.
    fn serve(turns: &mut ProjectTurns, waiting: &[(&str, u64)], count: usize) -> Vec<String> {
        let next = |turns: &ProjectTurns| {
            let late = |(project, _): &&(&str, u64)| turns.position(project);
            *waiting.iter().min_by_key(late).unwrap()
        };
        let served = (0..count).map(|_| {
            let (project, cost) = next(turns);
            turns.charge(&project.into(), cost);
            project.to_owned()
        });
        served.collect()
    }

    #[test]
    fn cheap_tasks_have_as_many_more_turns_as_they_are_cheaper() {
        let mut turns = ProjectTurns::default();
        let served = serve(&mut turns, &[("heavy", 100), ("light", 10)], 110);
        let heavy = served.iter().filter(|one| *one == "heavy").count();
        assert_eq!(heavy, 10);
        // Never two heavy ones in a row.
        assert!(served.windows(2).all(|pair| pair != ["heavy", "heavy"]));
    }

    #[test]
    fn a_newcomer_is_next_and_saves_up_nothing() {
        let mut turns = ProjectTurns::default();
        serve(&mut turns, &[("old", 10)], 50);
        let served = serve(&mut turns, &[("old", 10), ("new", 10)], 6);
        assert_eq!(served[0], "new");
        let new = served.iter().filter(|one| *one == "new").count();
        assert!((3..=4).contains(&new), "{served:?}");
    }

    #[test]
    fn past_projects_are_forgotten_and_debts_are_not() {
        let mut turns = ProjectTurns::default();
        turns.charge(&"debtor".into(), 1_000_000);
        for number in 0..5_000 {
            turns.charge(&format!("{number}").as_str().into(), 1);
            turns.charge(&"busy".into(), 1);
            turns.forget_past(|project| project == "busy");
        }
        assert!(turns.clocks.len() < 3 * PAST_MAX, "{}", turns.clocks.len());
        assert!(turns.position("debtor") >= 1_000_000 && turns.position("busy") > 0);
    }

    #[test]
    fn one_slot_is_left_where_others_wait() {
        let share = |slots, project_max| SlotShare { slots, project_max };
        for (slots, alone, beside) in [(1, usize::MAX, 1), (2, usize::MAX, 1), (8, usize::MAX, 7)] {
            assert_eq!(share(slots, 0).max(false), alone);
            assert_eq!(share(slots, 0).max(true), beside);
            assert_eq!(share(slots, 3).max(false), 3);
            assert_eq!(share(slots, 3).max(true), 3);
            for others_wait in [false, true] {
                let max = share(slots, 0).max(others_wait) as u64;
                assert!(share(slots, 0).allows(max - 1, || others_wait));
                assert!(!share(slots, 0).allows(max, || others_wait));
            }
        }
    }
}
