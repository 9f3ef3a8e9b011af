//! The store for sweeps and chores, and what each answer must then be.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::{Clock, ClockReading, Task, TaskId};
use kinora_store::{
    Chore, ChoreDone, ChoreKind, ChoreRequest, ChoreStore, ChoreWork, ExpiryCursor,
    PostponeRequest, StoreError, SweepReport, SweepRequest,
};

use super::{SeenStore, told};
use crate::book::Cause;
use crate::taken::name_of;

impl SeenStore {
    async fn sweep_now(&self, request: SweepRequest) -> Result<SweepReport, StoreError> {
        let witness = &self.way.witness;
        let steady_ms = witness.clock.steady_ms();
        let swept = self.inner.chores.sweep(request).await;
        if swept.as_ref().ok() != Some(&SweepReport::default()) {
            self.way.tell(&format!("sweep {}", told(&swept)));
        }
        let cause = Cause::Swept {
            request,
            steady_ms,
            told: swept.is_ok(),
            well_since_ms: witness.well_since_ms(),
        };
        witness.note(cause).await;
        swept
    }

    async fn take_chores_now(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError> {
        let witness = &self.way.witness;
        let (kind, lease_ms) = (request.kind.clone(), request.lease_ms);
        let now_ms = witness.clock.now_ms();
        let taken = self.inner.chores.lease_chores(request).await;
        let mut book = witness.book();
        let Ok(mut chores) = taken else {
            book.taken.lose(now_ms);
            return taken;
        };
        // A store that was opened again notes them in no fixed order; equal seeds shall live alike.
        chores.sort_unstable_by_key(name_of);
        for chore in &chores {
            self.way.tell(&format!("take {}", name_of(chore)));
            if book.taken.enter(chore, now_ms, lease_ms) {
                book.saw("chore taken again after its lease".to_owned());
            }
            if let ChoreWork::RemoveFile(key) = &chore.work {
                assert!(
                    kind == ChoreKind::RemoveFile && !book.is_named(key),
                    "P4: a file that is wanted is to be removed: {chore:?}"
                );
            }
        }
        Ok(chores)
    }

    async fn settle_chores_now(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        let settled = self.inner.chores.complete_chores(done.clone()).await;
        self.way
            .tell(&format!("settle {} {}", done.len(), told(&settled)));
        let witness = &self.way.witness;
        {
            let mut book = witness.book();
            for ChoreDone {
                chore,
                again_after_ms,
            } in &done
            {
                let is_file = matches!(chore.work, ChoreWork::RemoveFile(_));
                if is_file && again_after_ms.is_none() {
                    book.saw("file removed as a chore".to_owned());
                }
                if !book.taken.settle(chore, settled.is_ok()) {
                    book.saw("chore settled after its lease".to_owned());
                }
            }
        }
        witness.observe().await;
        settled
    }
}

#[async_trait]
impl ChoreStore for SeenStore {
    async fn clock(&self) -> Result<ClockReading, StoreError> {
        let call = async {
            let reading = self.inner.chores.clock().await;
            let right = reading
                .as_ref()
                .ok()
                .is_none_or(|reading| *reading == self.way.witness.reading());
            assert!(right, "P5: the store has another clock");
            reading
        };
        self.way.there_and_back(call).await
    }

    async fn sweep(&self, request: SweepRequest) -> Result<SweepReport, StoreError> {
        self.way.there_and_back(self.sweep_now(request)).await
    }

    async fn postpone(
        &self,
        postpone: PostponeRequest,
    ) -> Result<Option<ExpiryCursor>, StoreError> {
        let call = async {
            let postponed = self.inner.chores.postpone(postpone).await;
            self.way.tell(&format!("postpone {}", told(&postponed)));
            self.way.witness.note(Cause::Postponed(postpone)).await;
            postponed
        };
        self.way.there_and_back(call).await
    }

    async fn lease_chores(&self, request: ChoreRequest) -> Result<Vec<Chore>, StoreError> {
        self.way.there_and_back(self.take_chores_now(request)).await
    }

    async fn complete_chores(&self, done: Vec<ChoreDone>) -> Result<(), StoreError> {
        self.way.there_and_back(self.settle_chores_now(done)).await
    }

    async fn find_tasks(
        &self,
        ids: &[TaskId],
    ) -> Result<Vec<Result<Option<Arc<Task>>, StoreError>>, StoreError> {
        self.way
            .there_and_back(self.inner.chores.find_tasks(ids))
            .await
    }

    async fn find_uploads(&self, keys: &[String]) -> Result<HashSet<String>, StoreError> {
        self.way
            .there_and_back(self.inner.chores.find_uploads(keys))
            .await
    }

    fn identity(&self) -> u64 {
        self.inner.chores.identity()
    }
}
