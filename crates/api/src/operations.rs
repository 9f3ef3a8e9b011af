//! `GET /v1/operations`: the service as its operators see it, over all projects. Also the form in which `kinora top`
//! shows it to programs.

use axum::extract::State;
use kinora_store::{LivingWorker, ModelQueue, Overview, RunningTask, ServedModel};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Operator;
use crate::error::ApiError;
use crate::refusals::OfOperations;
use crate::state::SharedApi;
use crate::wire::Answer;

/// The service at one moment.
#[derive(Debug, Serialize, ToSchema)]
pub struct Operations {
    /// Always `operations`.
    #[schema(example = "operations")]
    object: &'static str,
    /// The moment, in Unix seconds.
    at: u64,
    /// Every model with unfinished tasks, in the order of the names.
    queue: Vec<Queue>,
    /// Running tasks, those that were started first come first; at most 200.
    running: Vec<Running>,
    /// The living workers.
    workers: Vec<Worker>,
    /// What has ended in the last 60 seconds.
    last_minute: LastMinute,
}

/// The unfinished tasks of a model.
#[derive(Debug, Serialize, ToSchema)]
struct Queue {
    /// The model.
    #[schema(example = "kinora-a1")]
    model: String,
    /// Tasks that wait for references or for a worker.
    waiting: u64,
    /// Tasks that a worker runs.
    running: u64,
    /// How long the oldest waiting task has waited, in seconds.
    oldest_waiting_seconds: Option<u64>,
}

/// A task that a worker runs.
#[derive(Debug, Serialize, ToSchema)]
struct Running {
    /// The task.
    id: String,
    /// Whose it is.
    project: String,
    /// Its model.
    model: String,
    /// 0 to 99.
    progress: u8,
    /// How many workers have taken it.
    attempt: u32,
    /// How long ago a worker first took it, in seconds.
    seconds: u64,
    /// The worker that runs it, by its id.
    worker: String,
}

/// A process that runs tasks.
#[derive(Debug, Serialize, ToSchema)]
struct Worker {
    /// Its id.
    id: String,
    /// Name of its machine.
    host: String,
    /// `serving`, or `draining` while it finishes its tasks to end.
    state: &'static str,
    /// Version of its program.
    version: String,
    /// What it serves.
    models: Vec<WorkerModel>,
    /// How many tasks it runs at a time.
    slots: u32,
    /// Tasks that it runs.
    running: u64,
    /// When it started, in Unix seconds.
    started_at: u64,
    /// How long ago it announced itself, in seconds.
    seen_seconds_ago: u64,
}

/// A model that a worker serves.
#[derive(Debug, Serialize, ToSchema)]
struct WorkerModel {
    /// The model.
    model: String,
    /// Its engine, as `name/version`.
    engine: String,
    /// Where the engine computes; `null`: its own choice.
    device: Option<String>,
}

/// Counts of tasks.
#[derive(Debug, Serialize, ToSchema)]
struct LastMinute {
    /// Tasks that were completed.
    completed: u64,
    /// Tasks that failed or were cancelled.
    failed: u64,
}

impl From<Overview> for Operations {
    fn from(overview: Overview) -> Self {
        Self {
            object: "operations",
            at: overview.now_ms / 1000,
            queue: overview.models.into_iter().map(Queue::from).collect(),
            running: overview.running.into_iter().map(Running::from).collect(),
            workers: overview.workers.into_iter().map(Worker::from).collect(),
            last_minute: LastMinute {
                completed: overview.completed_lately,
                failed: overview.failed_lately,
            },
        }
    }
}

impl From<ModelQueue> for Queue {
    fn from(queue: ModelQueue) -> Self {
        Self {
            model: queue.model,
            waiting: queue.waiting,
            running: queue.running,
            oldest_waiting_seconds: queue.oldest_waiting_ms.map(|millis| millis / 1000),
        }
    }
}

impl From<RunningTask> for Running {
    fn from(task: RunningTask) -> Self {
        Self {
            id: task.id.to_string(),
            project: task.project,
            model: task.model,
            progress: task.progress,
            attempt: task.attempt,
            seconds: task.since_ms / 1000,
            worker: task.worker,
        }
    }
}

impl From<LivingWorker> for Worker {
    fn from(living: LivingWorker) -> Self {
        let worker = living.worker;
        let served = |served: ServedModel| WorkerModel {
            model: served.model,
            engine: served.engine,
            device: served.device,
        };
        Self {
            id: worker.id,
            host: worker.host,
            state: worker.state.name(),
            version: worker.version,
            models: worker.models.into_iter().map(served).collect(),
            slots: worker.slots,
            running: living.running,
            started_at: worker.started_at_ms / 1000,
            seen_seconds_ago: living.seen_ms_ago / 1000,
        }
    }
}

/// See the whole service.
///
/// What waits and runs in all projects, and who works. For keys that were created with `--operator`; any other is
/// refused with 403.
#[utoipa::path(
    get,
    operation_id = "read_operations",
    path = "/v1/operations",
    tag = "operations",
    responses((status = 200, description = "The service at this moment.", body = Operations), OfOperations),
    security(("bearer" = []))
)]
pub(crate) async fn read(
    State(api): State<SharedApi>,
    _operator: Operator,
) -> Result<Answer<Operations>, ApiError> {
    Ok(Answer(api.operations.overview().await?.into()))
}
