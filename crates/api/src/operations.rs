//! `GET /v1/operations`: the state of the service for its operators, over all projects. `kinora
//! top` prints the same JSON for programs. `POST /v1/operations/pause` and `/resume` change it.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use kinora_contract::short_requests::{PauseModel, ResumeModel};
use kinora_contract::validate::named_model;
use kinora_store::{
    LivingWorker, ModelQueue, Pause, RunningTask, ServedModel, ServiceOverview, SharedDevice,
    WorkerPlace,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::body;
use crate::error::ApiError;
use crate::extract::{ControlKey, OperatorKey};
use crate::refusals::{OfOperations, OfPause};
use crate::responses::JsonResponse;
use crate::state::{Api, SharedApi};

/// The state of the service at one moment.
#[derive(Debug, Serialize, ToSchema)]
pub struct Operations {
    /// Always `operations`.
    #[schema(example = "operations")]
    object: &'static str,
    /// Time of the snapshot, in Unix seconds.
    at: u64,
    /// Every model with unfinished tasks, sorted by name.
    queue: Vec<Queue>,
    /// Running tasks, oldest first; at most 200.
    running: Vec<Running>,
    /// The living workers.
    workers: Vec<Worker>,
    /// The paused models, sorted by name; the pause of all models comes first.
    paused: Vec<Paused>,
    /// Tasks that ended in the last 60 seconds.
    last_minute: LastMinute,
}

/// A pause: workers claim no task of the model.
#[derive(Debug, Serialize, ToSchema)]
struct Paused {
    /// The model; `null`: all models.
    #[schema(example = "kinora-a1")]
    model: Option<String>,
    /// Beginning of the pause, in Unix seconds.
    since: u64,
    /// The operator's reason; `null` if none was given.
    #[schema(example = "new weights")]
    reason: Option<String>,
}

/// The unfinished tasks of one model.
#[derive(Debug, Serialize, ToSchema)]
struct Queue {
    /// The model.
    #[schema(example = "kinora-a1")]
    model: String,
    /// Tasks that wait for references or for a worker.
    waiting: u64,
    /// Tasks that are running.
    running: u64,
    /// Age of the oldest waiting task, in seconds.
    oldest_waiting_seconds: Option<u64>,
}

/// A running task.
#[derive(Debug, Serialize, ToSchema)]
struct Running {
    /// The task.
    id: String,
    /// The project that owns the task.
    project: String,
    /// The task's model.
    model: String,
    /// 0 to 99.
    progress: u8,
    /// Number of times a worker has claimed the task.
    attempt: u32,
    /// Seconds since a worker first claimed the task.
    seconds: u64,
    /// Id of the worker that runs the task.
    worker: String,
}

/// A process that runs tasks.
#[derive(Debug, Serialize, ToSchema)]
struct Worker {
    /// The worker's id.
    id: String,
    /// Name of the worker's machine.
    host: String,
    /// `serving`, or `draining` while the worker finishes its tasks before it stops.
    state: &'static str,
    /// Version of the worker's program.
    version: String,
    /// The models that the worker serves.
    models: Vec<WorkerModel>,
    /// Maximum number of tasks that the worker runs at a time.
    slots: u32,
    /// Number of tasks that the worker runs.
    running: u64,
    /// Start time of the worker, in Unix seconds.
    started_at: u64,
    /// Seconds since the worker's last heartbeat.
    seen_seconds_ago: u64,
    /// The devices that engines of the worker share.
    devices: Vec<WorkerDevice>,
    /// The devices and servers of the worker's engines, each of which can fail by itself.
    places: Vec<EnginePlace>,
}

/// A device or a server of an engine.
#[derive(Debug, Serialize, ToSchema)]
struct EnginePlace {
    /// Name of the engine in the worker's configuration.
    engine: String,
    /// Name of the device, or base URL of the server.
    name: String,
    /// `available`, `paused` after a failure, or `quarantined`: one task at a time tries it.
    state: &'static str,
    /// Number of the worker's tasks there.
    running: u64,
    /// Number of runs there since the worker started.
    attempts: u64,
    /// Number of failures there since the worker started.
    failures: u64,
    /// Seconds in quarantine since the worker started.
    quarantined_seconds: u64,
    /// The error of the last failure; `null` if there was none.
    last_error: Option<String>,
}

/// A device whose memory engines share.
#[derive(Debug, Serialize, ToSchema)]
struct WorkerDevice {
    /// Name of the device in the worker's configuration.
    name: String,
    /// Megabytes that the engines on the device may need together.
    memory_megabytes: u64,
    /// Megabytes that the engines that are there now need.
    used_megabytes: u64,
    /// How often an engine left because another needed its room, since the worker started.
    swaps: u64,
    /// The engines that share the device.
    engines: Vec<WorkerDeviceEngine>,
}

/// An engine that shares a device.
#[derive(Debug, Serialize, ToSchema)]
struct WorkerDeviceEngine {
    /// Name of the engine in the worker's configuration.
    engine: String,
    /// The models that the engine serves.
    models: Vec<String>,
    /// Megabytes that the engine needs on the device.
    memory_megabytes: u64,
    /// `away` if the engine is not loaded, `working`, `idle`, or `leaving` while it is unloaded.
    state: &'static str,
}

/// A model that a worker serves.
#[derive(Debug, Serialize, ToSchema)]
struct WorkerModel {
    /// The model.
    model: String,
    /// The model's engine, as `name/version`.
    engine: String,
    /// Device that the engine computes on; `null` if the engine chooses.
    device: Option<String>,
    /// Whether the engine can work: not while all its places are in quarantine.
    available: bool,
}

/// Counts of tasks.
#[derive(Debug, Serialize, ToSchema)]
struct LastMinute {
    /// Tasks that were completed.
    completed: u64,
    /// Tasks that failed or were cancelled.
    failed: u64,
}

impl From<ServiceOverview> for Operations {
    fn from(overview: ServiceOverview) -> Self {
        Self {
            object: "operations",
            at: overview.now_ms / 1000,
            queue: overview.models.into_iter().map(Queue::from).collect(),
            running: overview.running.into_iter().map(Running::from).collect(),
            workers: overview.workers.into_iter().map(Worker::from).collect(),
            paused: overview.pauses.iter().map(Paused::from).collect(),
            last_minute: LastMinute {
                completed: overview.completed_lately,
                failed: overview.failed_lately,
            },
        }
    }
}

impl From<&Pause> for Paused {
    fn from(pause: &Pause) -> Self {
        Self {
            model: pause.model.clone(),
            since: pause.since_ms / 1000,
            reason: pause.reason.clone(),
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

impl From<ServedModel> for WorkerModel {
    fn from(served: ServedModel) -> Self {
        Self {
            model: served.model,
            engine: served.engine,
            device: served.device,
            available: served.is_available,
        }
    }
}

impl From<LivingWorker> for Worker {
    fn from(living: LivingWorker) -> Self {
        let worker = living.worker;
        Self {
            id: worker.id,
            host: worker.host,
            state: worker.state.name(),
            version: worker.version,
            models: worker.models.into_iter().map(WorkerModel::from).collect(),
            slots: worker.slots,
            running: living.running,
            started_at: worker.started_at_ms / 1000,
            seen_seconds_ago: living.seen_ms_ago / 1000,
            devices: worker.devices.into_iter().map(WorkerDevice::from).collect(),
            places: worker.places.into_iter().map(EnginePlace::from).collect(),
        }
    }
}

impl From<WorkerPlace> for EnginePlace {
    fn from(place: WorkerPlace) -> Self {
        Self {
            engine: place.engine,
            name: place.name,
            state: place.state.name(),
            running: place.running,
            attempts: place.attempts,
            failures: place.failures,
            quarantined_seconds: place.quarantined_seconds,
            last_error: place.last_error,
        }
    }
}

impl From<SharedDevice> for WorkerDevice {
    fn from(device: SharedDevice) -> Self {
        let used_megabytes = device.used_megabytes();
        let engines = device.engines.into_iter().map(|one| WorkerDeviceEngine {
            engine: one.engine,
            models: one.models,
            memory_megabytes: one.memory_megabytes,
            state: one.state.name(),
        });
        Self {
            name: device.name,
            memory_megabytes: device.memory_megabytes,
            used_megabytes,
            swaps: device.swaps,
            engines: engines.collect(),
        }
    }
}

/// See the whole service.
///
/// Waiting and running tasks of all projects, and the workers. Requires a key created with
/// `--operator`; other keys get 403.
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
    _operator: OperatorKey,
) -> Result<JsonResponse<Operations>, ApiError> {
    Ok(JsonResponse(api.operations.overview().await?.into()))
}

/// Pause a model.
///
/// Within two seconds, workers claim no more tasks of the model, or of any model. Running tasks end, and
/// submits are accepted; their tasks wait. The pause lasts until it is ended, also through restarts. Safe
/// to repeat. Requires a key created with `--operator-write`; other keys get 403.
#[utoipa::path(
    post,
    operation_id = "pause_model",
    path = "/v1/operations/pause",
    tag = "operations",
    request_body = PauseModel,
    responses((status = 200, description = "The service at this moment.", body = Operations), OfPause),
    security(("bearer" = []))
)]
pub(crate) async fn pause(
    State(api): State<SharedApi>,
    ControlKey(key): ControlKey,
    headers: HeaderMap,
    body: Body,
) -> Result<JsonResponse<Operations>, ApiError> {
    let request = PauseModel::from_json(&body::json(&headers, body).await?)?;
    let pause = Pause {
        model: canonical_name(&api, request.model.as_deref())?,
        since_ms: api.clock.now_ms(),
        reason: request.reason,
    };
    let shown = pause.model.clone().unwrap_or_else(|| "all".to_owned());
    api.pauses.pause(pause).await?;
    tracing::info!(model = shown, key = key.key.id, "model paused");
    api.availability.forget();
    Ok(JsonResponse(api.operations.overview().await?.into()))
}

/// Resume a model.
///
/// Ends the pause of the model, or the one of all models, which leaves the pauses of single models. Safe
/// to repeat. Requires a key created with `--operator-write`; other keys get 403.
#[utoipa::path(
    post,
    operation_id = "resume_model",
    path = "/v1/operations/resume",
    tag = "operations",
    request_body = ResumeModel,
    responses((status = 200, description = "The service at this moment.", body = Operations), OfPause),
    security(("bearer" = []))
)]
pub(crate) async fn resume(
    State(api): State<SharedApi>,
    ControlKey(key): ControlKey,
    headers: HeaderMap,
    body: Body,
) -> Result<JsonResponse<Operations>, ApiError> {
    let request = ResumeModel::from_json(&body::json(&headers, body).await?)?;
    let model = canonical_name(&api, request.model.as_deref())?;
    let now_ms = api.clock.now_ms();
    if api.pauses.resume(model.as_deref(), now_ms).await? {
        let shown = model.unwrap_or_else(|| "all".to_owned());
        tracing::info!(model = shown, key = key.key.id, "model resumed");
    }
    api.availability.forget();
    Ok(JsonResponse(api.operations.overview().await?.into()))
}

/// The identifier of the model with this name, if one is given.
fn canonical_name(api: &Api, name: Option<&str>) -> Result<Option<String>, ApiError> {
    let card = name.map(|name| named_model(name, &api.catalog));
    Ok(card.transpose()?.map(|card| card.id.clone()))
}
