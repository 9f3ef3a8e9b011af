//! For operators.

use async_trait::async_trait;
use kinora_contract::lifecycle::Record;
use kinora_contract::limits::OVERVIEW_RUNNING_MAX;
use kinora_contract::{Status, UnixMs};

use super::ReferenceStore;
use super::state::State;
use crate::operations::LATELY_MS;
use crate::{
    KeyAction, LivingWorker, Operations, Overview, RunningTask, StoreError, TallyRequest, TallyRow,
    Workers,
};

#[async_trait]
impl Operations for ReferenceStore {
    async fn tallies(&self, request: &TallyRequest) -> Result<Vec<TallyRow>, StoreError> {
        let state = self.state();
        let rows = state.tallies.rows();
        Ok(rows.filter(|row| request.asks_for(row)).collect())
    }

    async fn key_log(&self, project: Option<&str>) -> Result<Vec<KeyAction>, StoreError> {
        let state = self.state();
        let newest_first = state.key_log.iter().rev();
        let own = newest_first.filter(|entry| project.is_none_or(|one| entry.project == one));
        Ok(own.cloned().collect())
    }

    async fn overview(&self) -> Result<Overview, StoreError> {
        let workers = self.living().await?;
        Ok(self.state().overview(workers))
    }
}

impl State {
    fn overview(&self, workers: Vec<LivingWorker>) -> Overview {
        let mut overview = Overview {
            now_ms: self.now().wall_ms,
            workers,
            ..Overview::default()
        };
        for record in self.unfinished() {
            let task = &record.task;
            let model = &task.spec.model;
            overview.count(model, record.is_running(), 1, task.created_at_ms);
        }
        let mut running: Vec<_> = self.running().collect();
        running.sort_by_key(|record| (record.task.started_at_ms, record.seq));
        running.truncate(OVERVIEW_RUNNING_MAX);
        overview.running = running
            .into_iter()
            .map(|record| RunningTask::of(record, overview.now_ms))
            .collect();
        let since_ms = overview.now_ms.saturating_sub(LATELY_MS);
        for record in self.records.values() {
            let task = &record.task;
            if task.finished_at_ms.is_some_and(|at_ms| at_ms > since_ms) {
                match task.status() {
                    Some(Status::Completed) => overview.completed_lately += 1,
                    Some(_) => overview.failed_lately += 1,
                    None => {}
                }
            }
        }
        overview
    }
}

impl RunningTask {
    fn of(record: &Record, now_ms: UnixMs) -> Self {
        let task = &record.task;
        let lease = record.lease.as_ref();
        let begun_ms = task.started_at_ms.unwrap_or(task.created_at_ms);
        Self {
            id: task.id,
            project: task.project.clone(),
            model: task.spec.model.clone(),
            progress: task.progress,
            attempt: task.attempt,
            since_ms: now_ms.saturating_sub(begun_ms),
            worker: lease.map_or_else(String::new, |held| held.worker.clone()),
        }
    }
}
