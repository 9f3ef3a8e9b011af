//! The end of a life: all faults end, hung workers come back, and what was accepted must come to
//! its end, be there until its time is over, and leave nothing behind.

use kinora_contract::{Phase, State};
use kinora_store::Usage;

use crate::world::{
    LEASE_MS, PROJECTS, RETENTION_MS, SETTLE_MS, SWEEP_MS, TOMBSTONE_MS, World, YEAR_MS,
};

/// Three attempts of at most sixteen tasks by six slots, each within a dozen steps.
const ROUNDS_MAX: u32 = 200;

impl World {
    /// Ends the life in order.
    pub(crate) async fn come_to_rest(&mut self) {
        self.trace.push("come to rest".to_owned());
        self.be_well().await;
        for worker in &mut self.workers {
            worker.hung = false;
        }
        self.work_off().await;
        self.contents_are_readable().await;
        self.sweep().await;
        self.sweep().await;
        self.outlive_youth();
        self.look_for_orphans().await;
        self.only_the_wanted_is_kept();
        self.expire().await;
    }

    /// Works until every task is at its end.
    async fn work_off(&mut self) {
        // Nothing dies any more.
        self.service().real.work.settle().await.unwrap();
        let unfinished = |phase: Phase| matches!(phase, Phase::Waiting | Phase::Running);
        for _ in 0..ROUNDS_MAX {
            if self.book.count(|task| unfinished(task.state.phase())) == 0 {
                break;
            }
            self.take_fetches().await;
            while let Some(fetch) = self.fetches.pop() {
                self.bring(fetch).await;
            }
            for k in 0..self.workers.len() {
                self.heartbeat(k).await;
                if self.workers[k].is_free() {
                    self.claim(k).await;
                }
                while !self.workers[k].runs.is_empty() {
                    self.step(k).await;
                }
            }
            // A claim whose answer was lost, and a worker that died, are found by time alone.
            self.clock.advance(LEASE_MS + SWEEP_MS);
            self.sweep().await;
        }
        let left = self.book.count(|task| unfinished(task.state.phase()));
        assert_eq!(left, 0, "P5: {left} tasks never end: {:?}", self.book.tasks);
        while let Some(k) = (0..self.workers.len()).find(|k| !self.workers[*k].runs.is_empty()) {
            self.step(k).await;
        }
    }

    async fn contents_are_readable(&mut self) {
        for (id, known) in self.book.tasks.clone() {
            let project = usize::from(known.task.project == PROJECTS[1]);
            self.get(id, project).await;
            self.content(id, project).await;
        }
    }

    /// Beside results and the references of drafts there is nothing: what was swept was swept,
    /// and what slipped by is an orphan.
    fn only_the_wanted_is_kept(&self) {
        let left: Vec<String> = self
            .files()
            .into_iter()
            .filter(|key| !self.is_wanted(key))
            .collect();
        assert!(left.is_empty(), "garbage that nobody sweeps: {left:?}");
    }

    /// Sweeps until the wall clock is believed, and results of an earlier one are moved.
    async fn sweep_by_a_settled_clock(&mut self) {
        self.sweep().await;
        self.clock.advance(SETTLE_MS);
        for _ in 0..3 {
            self.sweep().await;
        }
    }

    /// Past its time everything goes: first the content, then the task.
    async fn expire(&mut self) {
        self.clock.advance(RETENTION_MS);
        self.sweep_by_a_settled_clock().await;
        for known in self.book.tasks.values() {
            // A clock that went back has left some a little longer to live.
            let later = known
                .task
                .expires_at_ms
                .is_some_and(|end| end > self.now_ms());
            let expired = known.task.state == State::Expired;
            assert!(later || expired, "P4: never expires: {known:?}");
        }
        // Those that a clock ahead has made; then their tombstones, which stand from that on.
        for passed_ms in [1_000 * YEAR_MS, TOMBSTONE_MS] {
            self.clock.advance(passed_ms);
            for _ in 0..3 {
                self.sweep().await;
            }
        }
        assert!(
            self.book.tasks.is_empty(),
            "never forgotten: {:?}",
            self.book.tasks
        );
        let left = self.files();
        assert!(left.is_empty(), "files outlive their tasks: {left:?}");
        self.no_chore_is_left().await;
        for project in PROJECTS {
            let usage = self.service().real.tasks.usage(project).await.unwrap();
            assert_eq!(usage, Usage::default(), "{project} is charged for nothing");
        }
    }
}
