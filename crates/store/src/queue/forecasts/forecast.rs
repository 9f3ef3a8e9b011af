//! Predicts the queue by simulating the coming turns. Only a forecast, since tasks come, end and
//! fail.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::TaskId;

use super::board::Board;
use super::play::{Group, Start, Whose, play};
use super::promises::Vacancies;

/// A forecast of a board, which can be cached for a while.
pub(super) trait Forecast: Default {
    fn of(board: &Board, now: Duration) -> Self;

    /// Number of waiting tasks.
    fn waiting(&self) -> usize;
}

/// How many tasks start before each waiting one.
#[derive(Debug, Default)]
pub(super) struct Positions {
    ahead: HashMap<TaskId, u64>,
    waiting: usize,
}

impl Positions {
    pub(super) fn ahead(&self, id: TaskId) -> Option<u64> {
        self.ahead.get(&id).copied()
    }

    /// Records the starts of claimable tasks, or of the others.
    fn tell(&mut self, starts: &[Start], claimable: bool) {
        for (ahead, start) in (0..).zip(starts) {
            if let Some(id) = start.id.filter(|_| start.claimable == claimable) {
                self.ahead.insert(id, ahead);
            }
        }
    }
}

impl Forecast for Positions {
    fn of(board: &Board, now: Duration) -> Self {
        let mut positions = Self {
            waiting: board.waiting_count,
            ..Self::default()
        };
        // Searching all waiting tasks for those of unused groups would take too long.
        let waits = |group: &Group<'_>| board.waiting_for.keys().any(|model| group.has(model));
        for group in Group::all(board).filter(waits) {
            // A task whose references are in transit delays nobody, and all others delay it.
            if board.unready_count > 0 {
                positions.tell(&play(board, &group, Whose::Waiting, now), false);
            }
            positions.tell(&play(board, &group, Whose::Claimable, now), true);
        }
        positions
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}

/// Milliseconds until places are free in a queue that is empty by now: some of those with promised
/// places may still come.
const IDLE_PLACES_MS: [u64; 8] = [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000];

/// When there will be room, assuming that it is filled each time: full queues stay full.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    /// Milliseconds until each of the next places of the queue is free, ascending: each start frees
    /// one.
    places: Vec<u64>,
    projects: HashMap<Arc<str>, Unfinished>,
    waiting: usize,
}

#[derive(Debug, Default)]
struct Unfinished {
    /// Current number.
    count: usize,
    /// Milliseconds until each of the next ones ends, ascending.
    ends: Vec<u64>,
}

impl Outlook {
    /// When there is room in the queue, which was full with `waiting_max` tasks.
    pub(super) fn of_queue(&self, waiting_max: u64) -> Vacancies<'_> {
        Vacancies {
            free: waiting_max.saturating_sub(self.waiting as u64),
            later: &self.places,
        }
    }

    /// When the project may have one more task, of which it had `unfinished_max`. One without any has room as the
    /// queue has.
    pub(super) fn of_project(&self, project: &str, unfinished_max: u64) -> Vacancies<'_> {
        let of = self.projects.get(project);
        let unfinished = of.map_or(0, |of| of.count as u64);
        Vacancies {
            free: unfinished_max.saturating_sub(unfinished),
            later: of.map_or(&self.places, |of| &of.ends),
        }
    }

    fn project(&mut self, project: &Arc<str>) -> &mut Unfinished {
        self.projects.entry(project.clone()).or_default()
    }
}

impl Forecast for Outlook {
    fn of(board: &Board, now: Duration) -> Self {
        let mut outlook = Self {
            waiting: board.waiting_count,
            ..Self::default()
        };
        for (project, tasks) in &board.waiting {
            outlook.project(project).count += tasks.len();
        }
        for running in board.running.values() {
            let of = outlook.project(&running.project);
            of.count += 1;
            of.ends.push(board.remaining_ms(running, now) as u64);
        }
        for group in Group::all(board) {
            // The slots of an unused group say nothing about a queue that others fill.
            let waits = board.waiting_for.keys().any(|model| group.has(model));
            let telling = waits || board.waiting_count == 0;
            for start in play(board, &group, Whose::ToCome, now) {
                outlook.places.extend(telling.then_some(start.at_ms));
                outlook.project(&start.project).ends.push(start.end_ms);
            }
        }
        if outlook.projects.is_empty() {
            outlook.places.extend(IDLE_PLACES_MS);
        }
        outlook.places.sort_unstable();
        let projects = outlook.projects.values_mut();
        projects.for_each(|of| of.ends.sort_unstable());
        outlook
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}
