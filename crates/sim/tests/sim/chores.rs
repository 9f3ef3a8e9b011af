//! Chores: files to be removed, by two processes that take turns. The order of effects is that of `kinora-worker`'s
//! `chores`; between any two of them anything else may happen.

use kinora_store::{Chore, ChoreDone, ChoreKind, ChoreRequest};

use crate::taken::file_of;
use crate::worker::told;
use crate::world::World;

/// More than a life has.
const FILES: usize = 5_000;
/// As `kinora-worker`'s.
const CHORE_LEASE_MS: u64 = 10 * 60 * 1000;
const PAUSE_MS: u64 = 5_000;

/// What a process has in hand.
#[derive(Debug, Default)]
pub(crate) struct Runner {
    todo: Vec<Chore>,
    done: Vec<ChoreDone>,
}

impl World {
    /// One effect of one of the processes, or its death.
    pub(crate) async fn chore(&mut self, dies: bool) {
        let k = self.rng.below(2) as usize;
        self.trace.result(&format!("process {k}"));
        let Runner { todo, done } = &self.runners[k];
        let (idle, all_done) = (todo.is_empty() && done.is_empty(), todo.is_empty());
        if dies {
            self.runners[k] = Runner::default();
        } else if idle {
            self.take_chores(k).await;
        } else if all_done || self.rng.percent(10) {
            self.settle_chores(k).await;
        } else {
            self.remove_one(k).await;
        }
    }

    /// All effects of one of the processes, as in its sweep.
    pub(crate) async fn do_chores(&mut self, k: usize) {
        self.take_chores(k).await;
        while !self.runners[k].todo.is_empty() {
            self.remove_one(k).await;
        }
        self.settle_chores(k).await;
    }

    async fn take_chores(&mut self, k: usize) {
        let request = ChoreRequest {
            kind: ChoreKind::RemoveFile,
            count: FILES,
            lease_ms: CHORE_LEASE_MS,
        };
        let chores = self.service().seen.chores.clone();
        let taken = chores.take_chores(request).await;
        self.trace.result(&told(&taken.as_ref().map(Vec::len)));
        let now_ms = self.now_ms();
        let Ok(mut taken) = taken else {
            return self.book.taken.lose(now_ms);
        };
        for chore in &taken {
            if self.book.taken.enter(chore, now_ms, CHORE_LEASE_MS) {
                self.book
                    .saw("chore taken again after its lease".to_owned());
            }
            assert!(
                !self.is_named(file_of(chore)),
                "P4: a file that is wanted is to be removed: {chore:?}"
            );
        }
        // A store that was opened again notes them in no fixed order; equal seeds shall live alike.
        taken.sort_unstable_by(|one, other| file_of(one).cmp(file_of(other)));
        self.runners[k].todo.extend(taken);
    }

    async fn remove_one(&mut self, k: usize) {
        let Some(chore) = self.runners[k].todo.pop() else {
            return;
        };
        let blobs = self.service().blobs.clone();
        let removed = blobs.delete(file_of(&chore)).await;
        self.trace.result(&told(&removed));
        if removed.is_ok() {
            self.book.saw("file removed as a chore".to_owned());
        }
        self.runners[k].done.push(match removed {
            Ok(()) => chore.done(),
            Err(_) => chore.again(PAUSE_MS),
        });
        self.observe().await;
    }

    async fn settle_chores(&mut self, k: usize) {
        let done = std::mem::take(&mut self.runners[k].done);
        if done.is_empty() {
            return;
        }
        let chores = self.service().seen.chores.clone();
        let settled = chores.settle_chores(done.clone()).await;
        self.trace.result(&told(&settled));
        for ChoreDone { chore, .. } in &done {
            if !self.book.taken.settle(chore, settled.is_ok()) {
                self.book.saw("chore settled after its lease".to_owned());
            }
        }
        self.observe().await;
    }

    /// At rest nothing is left to be done, not even under a lease or after a pause.
    pub(crate) async fn no_chore_is_left(&mut self) {
        self.clock.advance(CHORE_LEASE_MS);
        let chores = self.service().real.chores.clone();
        let request = |kind| ChoreRequest {
            kind,
            count: FILES,
            lease_ms: CHORE_LEASE_MS,
        };
        let left = chores.take_chores(request(ChoreKind::RemoveFile)).await;
        assert_eq!(left.unwrap(), [], "files that nobody removes");
        let models = ["kinora-a1", "kinora-b1"].map(str::to_owned).into();
        let left = chores
            .take_chores(request(ChoreKind::CallOff { models }))
            .await;
        assert_eq!(left.unwrap(), [], "no task had an upstream job");
        let looks = chores.take_chores(request(ChoreKind::LookForOrphans)).await;
        assert_eq!(looks.unwrap().len(), 1, "there is one look for orphans");
    }
}
