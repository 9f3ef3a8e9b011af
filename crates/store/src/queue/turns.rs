//! Turns of projects, by start-time fair queueing (Goyal, Vin, Cheng 1996): every project has a
//! clock that each started task advances by its estimated cost, and the project whose clock is
//! furthest behind is next. When an idle project starts a task again, its clock is set to that of
//! the others, so that nobody saves up turns.

use std::collections::HashMap;
use std::sync::Arc;

use super::change::Change;

/// Projects without tasks are removed when there are this many more than at the last check.
const PAST_MAX: usize = 1_024;

/// The clocks, in cost units.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    /// The start of each project's next task, unless [`Turns::now`] is later.
    clocks: HashMap<Arc<str>, u64>,
    /// The start of the last started task: no project that waited all along is behind it.
    now: u64,
    forget_at: usize,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            clocks: HashMap::new(),
            now: 0,
            forget_at: PAST_MAX,
        }
    }
}

impl Turns {
    /// As stored.
    pub(crate) fn stored(now: u64, clocks: impl IntoIterator<Item = (Arc<str>, u64)>) -> Self {
        Self {
            clocks: clocks.into_iter().collect(),
            now,
            // None of these is removed.
            forget_at: usize::MAX,
        }
    }

    /// The start of the last started task.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// The project's position: the smallest is next.
    pub(crate) fn of(&self, project: &str) -> u64 {
        self.clocks.get(project).copied().unwrap_or(0)
    }

    /// Charges a claim. The charge remains even if the task is given back, and even for a forgiven
    /// attempt: otherwise its project would be next again, and a task that this machine cannot run
    /// now would block all others.
    pub(crate) fn apply(&mut self, project: &Arc<str>, change: &Change) {
        if let Some(cost) = claimed_cost(change) {
            self.charge(project, cost);
        }
    }

    /// Reverts the charge of a claim whose transaction failed.
    pub(crate) fn undo(&mut self, project: &Arc<str>, change: &Change) {
        if let Some(cost) = claimed_cost(change) {
            let clock = self.clocks.entry(project.clone()).or_default();
            *clock = clock.saturating_sub(cost);
        }
    }

    /// Charges the start of a task with this cost.
    pub(crate) fn charge(&mut self, project: &Arc<str>, cost: u64) {
        let start = self.of(project).max(self.now);
        self.now = start;
        self.clocks
            .insert(project.clone(), start.saturating_add(cost));
    }

    /// Occasionally removes projects without tasks and debt.
    pub(crate) fn forget_past(&mut self, is_active: impl Fn(&str) -> bool) {
        if self.clocks.len() < self.forget_at {
            return;
        }
        let now = self.now;
        self.clocks
            .retain(|project, clock| *clock > now || is_active(project));
        self.forget_at = 2 * self.clocks.len() + PAST_MAX;
    }
}

/// The cost of a change for its project: the task's cost if it is claimed.
fn claimed_cost(change: &Change) -> Option<u64> {
    let (before, after) = (change.before.as_ref()?, change.after.as_ref()?);
    let is_claimed = before.is_waiting() && after.is_running();
    is_claimed.then(|| after.task.spec.cost())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves the next project of `waiting`, `count` times; returns the projects served.
    fn serve(turns: &mut Turns, waiting: &[(&str, u64)], count: usize) -> Vec<String> {
        let next = |turns: &Turns| {
            let late = |(project, _): &&(&str, u64)| turns.of(project);
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
        let mut turns = Turns::default();
        let served = serve(&mut turns, &[("heavy", 100), ("light", 10)], 110);
        let heavy = served.iter().filter(|one| *one == "heavy").count();
        assert_eq!(heavy, 10);
        // Never two heavy ones in a row.
        assert!(served.windows(2).all(|pair| pair != ["heavy", "heavy"]));
    }

    #[test]
    fn a_newcomer_is_next_and_saves_up_nothing() {
        let mut turns = Turns::default();
        serve(&mut turns, &[("old", 10)], 50);
        let served = serve(&mut turns, &[("old", 10), ("new", 10)], 6);
        assert_eq!(served[0], "new");
        let new = served.iter().filter(|one| *one == "new").count();
        assert!((3..=4).contains(&new), "{served:?}");
    }

    #[test]
    fn past_projects_are_forgotten_and_debts_are_not() {
        let mut turns = Turns::default();
        turns.charge(&"debtor".into(), 1_000_000);
        for number in 0..5_000 {
            turns.charge(&format!("{number}").as_str().into(), 1);
            turns.charge(&"busy".into(), 1);
            turns.forget_past(|project| project == "busy");
        }
        assert!(turns.clocks.len() < 3 * PAST_MAX, "{}", turns.clocks.len());
        assert!(turns.of("debtor") >= 1_000_000 && turns.of("busy") > 0);
    }
}
