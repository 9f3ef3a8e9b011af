//! Simulates turns on a copy of the clocks: each free slot goes to the project whose turn it is,
//! and becomes free again after the usual time of such a task.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::TaskId;
use kinora_contract::limits::RETRY_AFTER_SECONDS_MAX;

use super::super::place::QueuePlace;
use super::super::turns::Turns;
use super::board::{Board, Running, Waiting};

/// Maximum number of simulated starts; later ones are unknown.
pub(crate) const STARTS_MAX: u64 = 1_000;
/// The same, for future tasks.
const STARTS_TO_COME_MAX: u64 = 256;
/// The latest time of a forecast.
const HORIZON_MS: u64 = RETRY_AFTER_SECONDS_MAX * 1000;

/// Sets of models whose tasks are claimed together.
pub(super) enum Group<'a> {
    Of(&'a [String]),
    /// Models that no worker has requested yet.
    Rest(&'a [Vec<String>]),
}

impl<'a> Group<'a> {
    pub(super) fn all(board: &'a Board) -> impl Iterator<Item = Self> {
        let of = board.groups.iter().map(|group| Self::Of(group));
        of.chain([Self::Rest(&board.groups)])
    }

    pub(super) fn has(&self, model: &str) -> bool {
        let named = |models: &[String]| models.iter().any(|one| one == model);
        match self {
            Self::Of(models) => named(models),
            Self::Rest(groups) => !groups.iter().any(|group| named(group)),
        }
    }
}

/// The tasks in a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Whose {
    /// Only claimable tasks.
    Claimable,
    /// All waiting tasks, as if each were claimable.
    Waiting,
    /// The same, with an endless supply of further tasks for each project, since full queues stay
    /// full.
    ToCome,
}

/// A task that gets a slot.
pub(super) struct Start {
    /// `None` for a future task.
    pub(super) id: Option<TaskId>,
    pub(super) project: Arc<str>,
    pub(super) claimable: bool,
    pub(super) at_ms: u64,
    pub(super) end_ms: u64,
}

/// The work of a turn.
#[derive(Clone, Copy)]
struct Work<'a> {
    id: Option<TaskId>,
    seq: u64,
    model: &'a str,
    cost: u64,
    claimable: bool,
}

impl<'a> Work<'a> {
    fn waiting(seq: u64, task: &'a Waiting) -> Self {
        Self {
            id: Some(task.id),
            seq,
            model: &task.model,
            cost: task.cost,
            claimable: task.claimable,
        }
    }

    fn like(running: &'a Running) -> Self {
        Self {
            id: None,
            seq: u64::MAX,
            model: &running.model,
            cost: running.cost,
            claimable: true,
        }
    }

    /// The same for a future task.
    fn to_come(self) -> Self {
        let (id, seq) = (None, u64::MAX);
        Self { id, seq, ..self }
    }
}

/// A project's tasks.
struct Line<'a> {
    project: &'a Arc<str>,
    next: Option<Work<'a>>,
    rest: Box<dyn Iterator<Item = Work<'a>> + 'a>,
    running: usize,
}

/// The simulated state between two starts.
struct Play<'a> {
    lines: Vec<Line<'a>>,
    /// The first task of each line by its turn.
    heads: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// The ends of running tasks, with their projects, and whether they are long.
    ends: BinaryHeap<Reverse<(u64, Option<usize>, bool)>>,
    /// Number of long running tasks.
    long: usize,
    turns: Turns,
    now_ms: u64,
}

/// The next starts of a group's tasks.
pub(super) fn play(board: &Board, group: &Group<'_>, whose: Whose, now: Duration) -> Vec<Start> {
    let mut play = Play::set_up(board, group, whose, now);
    let slots = board.share.slots.max(1);
    let (starts_max, horizon_ms) = match whose {
        Whose::ToCome => (STARTS_TO_COME_MAX, HORIZON_MS),
        Whose::Claimable | Whose::Waiting => (STARTS_MAX, u64::MAX),
    };
    let mut starts = Vec::new();
    while (starts.len() as u64) < starts_max && play.now_ms <= horizon_ms {
        while play.ends.len() >= slots {
            play.end_one();
        }
        match play.next(board) {
            Some(start) => starts.push(start),
            // Every waiting project has used its share of the slots, or waits for a long task to end.
            None if !play.heads.is_empty() && !play.ends.is_empty() => play.end_one(),
            None => break,
        }
    }
    starts
}

impl<'a> Play<'a> {
    fn set_up(board: &'a Board, group: &'a Group<'a>, whose: Whose, now: Duration) -> Self {
        let mut lines = waiting_lines(board, group, whose);
        let mut by_project: HashMap<&str, usize> = (0..)
            .zip(&lines)
            .map(|(at, line)| (&**line.project, at))
            .collect();
        let (mut ends, mut long) = (BinaryHeap::new(), 0);
        for running in board.running.values() {
            let mut line = by_project.get(&*running.project).copied();
            if line.is_none() && whose == Whose::ToCome && group.has(&running.model) {
                line = Some(lines.len());
                by_project.insert(&running.project, lines.len());
                lines.push(Line::of(&running.project, endless(Work::like(running))));
            }
            if let Some(line) = line {
                lines[line].running += 1;
            }
            let is_long = board.share.is_long(running.cost);
            long += usize::from(is_long);
            ends.push(Reverse((
                board.remaining_ms(running, now) as u64,
                line,
                is_long,
            )));
        }
        let mut play = Self {
            heads: BinaryHeap::new(),
            turns: board.turns.clone(),
            now_ms: 0,
            lines,
            ends,
            long,
        };
        (0..play.lines.len()).for_each(|line| play.line_up(line));
        play
    }

    fn line_up(&mut self, at: usize) {
        let line = &self.lines[at];
        if let Some(work) = line.next {
            let turn = self.turns.of(line.project);
            self.heads.push(Reverse((turn, work.seq, at)));
        }
    }

    fn end_one(&mut self) {
        if let Some(Reverse((at_ms, line, is_long))) = self.ends.pop() {
            self.now_ms = self.now_ms.max(at_ms);
            self.long -= usize::from(is_long);
            if let Some(line) = line {
                self.lines[line].running -= 1;
            }
        }
    }

    /// Starts the task of the first project that may have a slot.
    fn next(&mut self, board: &Board) -> Option<Start> {
        let share = board.share;
        let max = share.max(self.heads.len() > 1);
        let mut passed_over = Vec::new();
        let found = loop {
            let Some(Reverse(head)) = self.heads.pop() else {
                break None;
            };
            let line = &self.lines[head.2];
            let is_long = line.next.is_some_and(|work| share.is_long(work.cost));
            if line.running < max && (!is_long || self.long < share.long_max()) {
                break Some(head.2);
            }
            passed_over.push(Reverse(head));
        };
        self.heads.extend(passed_over);
        let at = found?;
        let line = &mut self.lines[at];
        let work = line.next.take()?;
        line.next = line.rest.next();
        line.running += 1;
        let project = line.project.clone();
        self.turns.charge(&project, work.cost);
        self.line_up(at);
        let end_ms = self.now_ms + board.service_ms(work.model, work.cost) as u64;
        let is_long = share.is_long(work.cost);
        self.long += usize::from(is_long);
        self.ends.push(Reverse((end_ms, Some(at), is_long)));
        Some(Start {
            id: work.id,
            project,
            claimable: work.claimable,
            at_ms: self.now_ms,
            end_ms,
        })
    }
}

impl<'a> Line<'a> {
    fn of(project: &'a Arc<str>, work: impl Iterator<Item = Work<'a>> + 'a) -> Self {
        let mut rest = Box::new(work);
        Self {
            project,
            next: rest.next(),
            rest,
            running: 0,
        }
    }
}

/// The projects with tasks in this simulation, each with its tasks in order.
fn waiting_lines<'a>(board: &'a Board, group: &'a Group<'a>, whose: Whose) -> Vec<Line<'a>> {
    let plays = move |task: &Waiting| {
        (whose != Whose::Claimable || task.claimable) && group.has(&task.model)
    };
    let line = |(project, tasks): (&'a Arc<str>, &'a BTreeMap<QueuePlace, Waiting>)| {
        let tasks = tasks.iter().filter(move |(_, task)| plays(task));
        let mut works = tasks.map(|(place, task)| Work::waiting(place.seq, task));
        let first = works.next()?;
        let works = std::iter::once(first).chain(works);
        Some(match whose {
            Whose::ToCome => Line::of(project, works.chain(endless(first))),
            Whose::Claimable | Whose::Waiting => Line::of(project, works),
        })
    };
    board.waiting.iter().filter_map(line).collect()
}

/// An endless supply of tasks like this one.
fn endless(work: Work<'_>) -> impl Iterator<Item = Work<'_>> {
    std::iter::repeat(work.to_come())
}
