//! The turns to come, played through on a copy of the clocks: each free slot goes to the project whose turn it
//! is, and is free again after the time that such tasks take. A forecast, since tasks come, go and fail.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use kinora_contract::TaskId;

use super::super::index::Turns;
use super::board::{Board, Waiting};

/// Starts that are played through; what is further back is unknown.
const STARTS_MAX: usize = 1_000;

/// What is to be expected of the queue.
#[derive(Debug, Default)]
pub(super) struct Forecast {
    /// How many start before each waiting task.
    pub(super) positions: HashMap<TaskId, u32>,
    /// Milliseconds until a place of the queue is free, ascending: each start frees one, of a task that waits or,
    /// behind all these, of one that takes a place before.
    pub(super) places: Vec<u64>,
    /// Milliseconds until each of a project's tasks ends, ascending.
    pub(super) ends: HashMap<Arc<str>, Vec<u64>>,
    /// Tasks that wait in all.
    pub(super) waiting: usize,
}

impl Forecast {
    pub(super) fn of(board: &Board, now: Instant) -> Self {
        let mut forecast = Self {
            waiting: board.waiting_count,
            ..Self::default()
        };
        for running in board.running.values() {
            let ends = forecast.ends.entry(running.project.clone()).or_default();
            ends.push(board.remaining_ms(running, now) as u64);
        }
        for group in groups(board) {
            // A task whose references are on their way delays nobody, and is delayed by all.
            if board.unready_count > 0 {
                forecast.tell(play(board, &group, true, now).0, false);
            }
            let (starts, free_slots) = play(board, &group, false, now);
            // The slots of a group that nobody waits for say nothing of a queue that others fill.
            if !starts.is_empty() || board.waiting_count == 0 {
                forecast.places.extend(free_slots);
            }
            forecast.tell(starts, true);
        }
        forecast.places.sort_unstable();
        forecast
            .ends
            .values_mut()
            .for_each(|ends| ends.sort_unstable());
        forecast
    }

    /// Notes starts; whether they are of claimable tasks alone.
    fn tell(&mut self, starts: Vec<Start>, claimable: bool) {
        for (ahead, start) in (0..).zip(starts) {
            if start.claimable != claimable {
                continue;
            }
            self.positions.insert(start.id, ahead);
            self.places.push(start.at_ms);
            self.ends
                .entry(start.project)
                .or_default()
                .push(start.end_ms);
        }
    }
}

/// Sets of models whose tasks are claimed together.
enum Group<'a> {
    Of(&'a [String]),
    /// Models that no worker has asked for yet.
    Rest(&'a [Vec<String>]),
}

impl Group<'_> {
    fn has(&self, model: &str) -> bool {
        let named = |models: &[String]| models.iter().any(|one| one == model);
        match self {
            Self::Of(models) => named(models),
            Self::Rest(groups) => !groups.iter().any(|group| named(group)),
        }
    }
}

/// The groups that somebody waits for, or all of them where nobody waits. To look for their tasks among all that
/// wait would take too long.
fn groups(board: &Board) -> Vec<Group<'_>> {
    let of = board.groups.iter().map(|group| Group::Of(group));
    let waits = |group: &Group<'_>| board.waiting_for.keys().any(|model| group.has(model));
    of.chain([Group::Rest(&board.groups)])
        .filter(|group| board.waiting_count == 0 || waits(group))
        .collect()
}

/// A task that gets a slot.
struct Start {
    id: TaskId,
    project: Arc<str>,
    claimable: bool,
    at_ms: u64,
    end_ms: u64,
}

/// A project's waiting tasks.
struct Line<'a> {
    project: &'a Arc<str>,
    next: Option<(u64, &'a Waiting)>,
    rest: Box<dyn Iterator<Item = (u64, &'a Waiting)> + 'a>,
    running: usize,
}

/// The simulated state between two starts.
struct Play<'a> {
    lines: Vec<Line<'a>>,
    /// The first task of each line by its turn.
    heads: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// When running tasks end, and whose they are.
    ends: BinaryHeap<Reverse<(u64, Option<usize>)>>,
    turns: Turns,
    now_ms: u64,
}

/// The next starts of a group's tasks, of the claimable ones or as if all were, and when each slot is free after
/// them.
fn play(board: &Board, group: &Group<'_>, all: bool, now: Instant) -> (Vec<Start>, Vec<u64>) {
    let mut play = Play::set_up(board, group, all, now);
    let slots = board.share.slots.max(1);
    let mut starts = Vec::new();
    while starts.len() < STARTS_MAX {
        while play.ends.len() >= slots {
            play.end_one();
        }
        match play.next(board) {
            Some(start) => starts.push(start),
            // Whoever waits has its share of the slots.
            None if !play.heads.is_empty() && !play.ends.is_empty() => play.end_one(),
            None => break,
        }
    }
    let idle = slots.saturating_sub(play.ends.len()).min(STARTS_MAX);
    let ends = play.ends.into_iter().map(|Reverse((at_ms, _))| at_ms);
    let free = std::iter::repeat_n(play.now_ms, idle).chain(ends).collect();
    (starts, free)
}

impl<'a> Play<'a> {
    fn set_up(board: &'a Board, group: &'a Group<'a>, all: bool, now: Instant) -> Self {
        let mut lines = Vec::new();
        for (project, tasks) in &board.waiting {
            let plays = move |task: &Waiting| (all || task.claimable) && group.has(&task.model);
            let tasks = tasks.iter().map(|(seq, task)| (*seq, task));
            let mut rest = Box::new(tasks.filter(move |(_, task)| plays(task)));
            lines.push(Line {
                project,
                next: rest.next(),
                rest,
                running: 0,
            });
        }
        lines.retain(|line| line.next.is_some());
        let by_project: HashMap<&str, usize> = (0..)
            .zip(&lines)
            .map(|(at, line)| (&**line.project, at))
            .collect();
        let mut ends = BinaryHeap::new();
        let mut busy = Vec::new();
        for running in board.running.values() {
            let line = by_project.get(&*running.project).copied();
            busy.extend(line);
            ends.push(Reverse((board.remaining_ms(running, now) as u64, line)));
        }
        for line in busy {
            lines[line].running += 1;
        }
        let mut play = Self {
            heads: BinaryHeap::new(),
            turns: board.turns.clone(),
            now_ms: 0,
            lines,
            ends,
        };
        (0..play.lines.len()).for_each(|line| play.line_up(line));
        play
    }

    fn line_up(&mut self, at: usize) {
        let line = &self.lines[at];
        if let Some((seq, _)) = line.next {
            let turn = self.turns.of(line.project);
            self.heads.push(Reverse((turn, seq, at)));
        }
    }

    fn end_one(&mut self) {
        if let Some(Reverse((at_ms, line))) = self.ends.pop() {
            self.now_ms = self.now_ms.max(at_ms);
            if let Some(line) = line {
                self.lines[line].running -= 1;
            }
        }
    }

    /// Starts the task of the first project that may have a slot.
    fn next(&mut self, board: &Board) -> Option<Start> {
        let max = board.share.max(self.heads.len() > 1);
        let mut passed_over = Vec::new();
        let found = loop {
            let Some(Reverse(head)) = self.heads.pop() else {
                break None;
            };
            if self.lines[head.2].running < max {
                break Some(head.2);
            }
            passed_over.push(Reverse(head));
        };
        self.heads.extend(passed_over);
        let at = found?;
        let line = &mut self.lines[at];
        let (_, task) = line.next.take()?;
        line.next = line.rest.next();
        line.running += 1;
        let project = line.project.clone();
        self.turns.charge(&project, task.cost);
        self.line_up(at);
        let end_ms = self.now_ms + board.service_ms(&task.model, task.cost) as u64;
        self.ends.push(Reverse((end_ms, Some(at))));
        Some(Start {
            id: task.id,
            project,
            claimable: task.claimable,
            at_ms: self.now_ms,
            end_ms,
        })
    }
}
