//! `/healthz`: the process runs, and nothing in it is dead that only a restart brings back. `/readyz`: it can
//! take and run tasks: the stores can be read and written, and the process is not stopping. Both are open to
//! anyone, so neither writes: the components that write report their state.

use std::sync::Arc;

use axum::extract::{FromRef, State};
use kinora_blobs::DiskReserve;
use kinora_contract::{ErrorCode, StandstillReason, TaskId, WorkerReadiness};
use kinora_store::{PauseStore, TaskStore};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::refusals::{OfAlive, OfReady};
use crate::responses::JsonResponse;
use crate::state::SharedApi;

/// Health status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct HealthStatus {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Whether tasks can be submitted and run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Readiness)]
pub(crate) struct ReadyStatus {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
    /// Present while an operator has paused `some` models or `all`: their tasks are accepted and wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "some")]
    paused: Option<&'static str>,
}

/// Whether the process runs and needs no restart: 500 after its worker has died.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "health",
    responses((status = 200, description = "The process runs.", body = HealthStatus), OfAlive)
)]
pub(crate) async fn alive(
    State(health): State<HealthState>,
) -> Result<JsonResponse<HealthStatus>, ApiError> {
    // A process that stops ends by itself, its worker first.
    let is_dead = health.readiness.standstill() == Some(StandstillReason::Worker);
    if is_dead && !health.stopping.is_cancelled() {
        let message = "The worker of this process has died; restart the process.";
        return Err(ApiError::new(ErrorCode::InternalError, message));
    }
    Ok(JsonResponse(HealthStatus { status: "ok" }))
}

/// Whether tasks can be submitted and run.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses((status = 200, description = "Tasks can be submitted and run.", body = ReadyStatus), OfReady)
)]
pub(crate) async fn ready(
    State(health): State<HealthState>,
) -> Result<JsonResponse<ReadyStatus>, ApiError> {
    health.ready().await
}

/// The state that `/healthz` and `/readyz` check, of a service, or of a process that runs tasks and serves
/// no client.
#[derive(Clone, Debug)]
pub struct HealthState {
    /// Tasks.
    pub tasks: Arc<dyn TaskStore>,
    /// Pauses of models.
    pub pauses: Arc<dyn PauseStore>,
    /// The reserve of free disk space.
    pub reserve: DiskReserve,
    /// Whether accepted tasks can run, as reported by the worker of this process, if it has one.
    pub readiness: WorkerReadiness,
    /// Cancelled when the process stops.
    pub stopping: CancellationToken,
}

impl FromRef<SharedApi> for HealthState {
    fn from_ref(api: &SharedApi) -> Self {
        Self {
            tasks: api.tasks.clone(),
            pauses: api.pauses.clone(),
            reserve: api.settings.reserve.clone(),
            readiness: api.readiness.clone(),
            stopping: api.stopping.clone(),
        }
    }
}

impl HealthState {
    async fn ready(&self) -> Result<JsonResponse<ReadyStatus>, ApiError> {
        if self.stopping.is_cancelled() {
            return Err(ApiError::shutting_down("The service is stopping."));
        }
        if let Some(message) = self.standstill() {
            return Err(ApiError::away(message));
        }
        // No project has an empty name: this queries the store and finds nothing.
        let none = TaskId::from_parts(0, [0; 10]);
        self.tasks.get("", none).await?;
        // A paused service is ready: it takes tasks, and whoever sends it none would lose them. Names and
        // reasons are for those with a key.
        let pauses = self.pauses.pauses().await?;
        let paused = match pauses.of_all() {
            Some(_) => Some("all"),
            None => (!pauses.is_empty()).then_some("some"),
        };
        Ok(JsonResponse(ReadyStatus {
            status: "ok",
            paused,
        }))
    }

    /// Why the service cannot work. The first two cases refuse submits; the others accept them.
    fn standstill(&self) -> Option<&'static str> {
        if !self.tasks.is_writable() {
            return Some("The task store is not writable; submits are refused.");
        }
        if !self.reserve.has_room() {
            return Some("Disk space is below the reserve; submits are refused.");
        }
        self.readiness.standstill().map(|why| match why {
            StandstillReason::Results => "The result store is not writable; accepted tasks wait.",
            StandstillReason::Engines => {
                "Every device or server of every engine is in quarantine; accepted tasks wait."
            }
            StandstillReason::Worker => {
                "The worker has died; accepted tasks wait until the service is restarted."
            }
            StandstillReason::WarmUp => "Engines are warming up; accepted tasks wait for them.",
        })
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt as _;
    use kinora_contract::ManualClock;
    use kinora_store::EmbeddedStore;
    use tower_service::Service as _;

    use super::*;
    use crate::router::health_router;

    fn health() -> (HealthState, EmbeddedStore) {
        let clock = Arc::new(ManualClock::at(1_000));
        let embedded = EmbeddedStore::open(clock.clone());
        let health = HealthState {
            tasks: embedded.stores.tasks.clone(),
            pauses: embedded.stores.pauses.clone(),
            reserve: DiskReserve::new(Vec::new(), 0, clock),
            readiness: WorkerReadiness::default(),
            stopping: CancellationToken::new(),
        };
        (health, embedded)
    }

    /// Status and message of an answer.
    async fn ask(health: &HealthState, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = health_router(health.clone()).call(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let message = body["error"]["message"].as_str();
        (status, message.unwrap_or_default().to_owned())
    }

    #[tokio::test]
    async fn a_dead_worker_makes_a_process_unready_and_due_for_a_restart() {
        let (health, _store) = health();
        let (keeper, _claims) = (
            health.readiness.register_part(),
            health.readiness.register_part(),
        );
        for path in ["/healthz", "/readyz"] {
            assert_eq!(ask(&health, path).await.0, 200, "{path}");
        }
        drop(keeper);
        let (status, message) = ask(&health, "/readyz").await;
        assert_eq!(status, 503);
        assert!(message.contains("worker has died"), "{message}");
        let (status, message) = ask(&health, "/healthz").await;
        assert_eq!(status, 500);
        assert!(message.contains("restart"), "{message}");
        // A worker that has stopped is no dead one.
        health.stopping.cancel();
        assert_eq!(ask(&health, "/healthz").await.0, 200);
        assert_eq!(ask(&health, "/readyz").await.0, 503);
    }

    #[tokio::test]
    async fn a_paused_service_is_ready_and_says_so() {
        let (health, store) = health();
        let pauses = &store.stores.pauses;
        let pause = |model: Option<&str>| kinora_store::Pause {
            model: model.map(str::to_owned),
            since_ms: 1_000,
            reason: Some("a secret".to_owned()),
        };
        let paused = async || {
            let request = Request::get("/readyz").body(Body::empty()).unwrap();
            let answer = health_router(health.clone()).call(request).await.unwrap();
            assert_eq!(answer.status().as_u16(), 200);
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            String::from_utf8(body.to_vec()).unwrap()
        };
        assert_eq!(paused().await, r#"{"status":"ok"}"#);
        pauses.pause(pause(Some("one"))).await.unwrap();
        assert_eq!(paused().await, r#"{"status":"ok","paused":"some"}"#);
        pauses.pause(pause(None)).await.unwrap();
        assert_eq!(paused().await, r#"{"status":"ok","paused":"all"}"#);
    }

    #[tokio::test]
    async fn what_ends_by_itself_needs_no_restart() {
        let (health, _store) = health();
        health.readiness.set_storable(false);
        assert_eq!(ask(&health, "/readyz").await.0, 503);
        assert_eq!(ask(&health, "/healthz").await.0, 200);
        health.readiness.set_storable(true);
        assert_eq!(ask(&health, "/readyz").await.0, 200);
    }
}
