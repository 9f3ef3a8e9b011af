//! The end of a life: all faults end, hung workers come back, and what was accepted must come to
//! its end, be there until its time is over, and leave nothing behind.

use kinora_contract::{TaskPhase, TaskState};
use kinora_store::{ChoreKind, ChoreRequest, QuotaUsage};

use crate::moment::at_one_moment;
use crate::process::MODELS;
use crate::world::{
    HOUR_MS, LEASE_MS, PROJECTS, RETENTION_MS, SETTLE_MS, SWEEP_MS, TOMBSTONE_MS, World, YEAR_MS,
};

/// So often time passes until every task must be at its end: a host may ask for a pause of ten minutes.
const ROUNDS_MAX: u32 = 40;
/// Sweeps that are enough for all that is due.
const SWEEPS_MS: u64 = 4 * SWEEP_MS;
/// Longer than any lease of a chore, and than the pause after one that failed.
const CHORES_MS: u64 = HOUR_MS;

impl World {
    /// Ends the life in order.
    pub(crate) async fn come_to_rest(&mut self) {
        self.trace().push("come to rest".to_owned());
        self.be_well().await;
        for process in self.processes.iter().filter(|process| process.hangs()) {
            process.hang(false);
        }
        at_one_moment(self.resume_all()).unwrap();
        self.work_off().await;
        at_one_moment(self.contents_are_readable());
        self.live(SWEEPS_MS).await;
        self.outlive_youth();
        at_one_moment(self.look_for_orphans());
        self.only_the_wanted_is_kept();
        self.expire().await;
        for process in &mut self.processes {
            process.stop(false);
            process.stopped().await;
        }
        at_one_moment(self.nothing_is_left());
        self.nothing_has_panicked();
    }

    /// Lets the workers work until every task is at its end.
    async fn work_off(&mut self) {
        let unfinished =
            |phase: TaskPhase| matches!(phase, TaskPhase::Waiting | TaskPhase::Running);
        let left = || self.book().count(|task| unfinished(task.state.phase()));
        for _ in 0..ROUNDS_MAX {
            if left() == 0 {
                break;
            }
            // A claim whose answer was lost, and a worker that died, are found by time alone.
            self.live(LEASE_MS + SWEEP_MS).await;
            self.sleep_over(LEASE_MS);
        }
        assert_eq!(left(), 0, "P5: tasks never end: {:?}", self.book().tasks);
    }

    async fn contents_are_readable(&mut self) {
        let all = self.book().tasks.clone();
        for (id, known) in all {
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
            .filter(|key| !self.book().is_wanted(key))
            .collect();
        assert!(left.is_empty(), "garbage that nobody sweeps: {left:?}");
    }

    /// Past its time everything goes: first the content, then the task.
    async fn expire(&mut self) {
        self.sleep_over(RETENTION_MS);
        self.live(SWEEPS_MS).await;
        // Now the wall clock is believed, and results of an earlier one are moved.
        self.sleep_over(SETTLE_MS);
        self.live(SWEEPS_MS).await;
        for known in self.book().tasks.values() {
            // A clock that went back has left some a little longer to live.
            let later = known
                .task
                .expires_at_ms
                .is_some_and(|end| end > self.now_ms());
            let expired = known.task.state == TaskState::Expired;
            assert!(later || expired, "P4: never expires: {known:?}");
        }
        // Those that a clock ahead has made; then their tombstones, which stand from that on.
        for passed_ms in [1_000 * YEAR_MS, TOMBSTONE_MS, CHORES_MS] {
            self.sleep_over(passed_ms);
            self.live(SWEEPS_MS).await;
        }
    }

    /// No task, no file, no charge, and no chore, not even under a lease or after a pause.
    async fn nothing_is_left(&self) {
        let left = self.book().tasks.clone();
        assert!(left.is_empty(), "never forgotten: {left:?}");
        let left = self.files();
        assert!(left.is_empty(), "files outlive their tasks: {left:?}");
        self.clock.advance(CHORES_MS);
        let real = self.witness.open().real;
        let request = |kind| ChoreRequest {
            kind,
            count: 5_000,
            lease_ms: CHORES_MS,
        };
        let left = real
            .chores
            .lease_chores(request(ChoreKind::RemoveFile))
            .await;
        assert_eq!(left.unwrap(), [], "files that nobody removes");
        let models = MODELS.map(str::to_owned).into();
        let left = real
            .chores
            .lease_chores(request(ChoreKind::CallOff { models }))
            .await;
        assert_eq!(left.unwrap(), [], "upstream jobs that nobody calls off");
        let looks = real
            .chores
            .lease_chores(request(ChoreKind::LookForOrphans))
            .await;
        assert_eq!(looks.unwrap().len(), 1, "there is one look for orphans");
        for project in PROJECTS {
            let usage = real.tasks.usage(project).await.unwrap();
            assert_eq!(
                usage,
                QuotaUsage::default(),
                "{project} is charged for nothing"
            );
        }
    }
}
