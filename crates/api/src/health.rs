//! `/healthz`: the process runs. `/readyz`: it can accept and run tasks: the stores can be read and
//! written, and the process is not stopping. Both need no key, so neither writes: the components
//! that write report their state.

use std::sync::Arc;

use axum::extract::State;
use kinora_blobs::Reserve;
use kinora_contract::{Readiness, Standstill, TaskId};
use kinora_store::Tasks;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::refusals::{OfAlive, OfReady};
use crate::state::SharedApi;
use crate::wire::Answer;

/// Health status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct Sign {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Whether the process runs.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "health",
    responses((status = 200, description = "The process runs.", body = Sign), OfAlive)
)]
pub(crate) async fn alive() -> Answer<Sign> {
    Answer(Sign { status: "ok" })
}

/// Whether tasks can be submitted and run.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses((status = 200, description = "Tasks can be submitted and run.", body = Sign), OfReady)
)]
pub(crate) async fn ready(State(api): State<SharedApi>) -> Result<Answer<Sign>, ApiError> {
    let health = Health {
        tasks: api.tasks.clone(),
        reserve: api.settings.reserve.clone(),
        readiness: api.readiness.clone(),
        stopping: api.stopping.clone(),
    };
    health.ready().await
}

/// Readiness of a process that runs tasks but serves no clients.
pub(crate) async fn worker_ready(State(health): State<Health>) -> Result<Answer<Sign>, ApiError> {
    health.ready().await
}

/// The state that `/readyz` checks.
#[derive(Clone, Debug)]
pub struct Health {
    /// Tasks.
    pub tasks: Arc<dyn Tasks>,
    /// The reserve of free disk space.
    pub reserve: Reserve,
    /// Whether accepted tasks can run, as reported by the worker of this process, if it has one.
    pub readiness: Readiness,
    /// Cancelled when the process stops.
    pub stopping: CancellationToken,
}

impl Health {
    async fn ready(&self) -> Result<Answer<Sign>, ApiError> {
        if self.stopping.is_cancelled() {
            return Err(ApiError::shutting_down("The service is stopping."));
        }
        if let Some(message) = self.standstill() {
            return Err(ApiError::away(message));
        }
        // No project has an empty name: this queries the store and finds nothing.
        let none = TaskId::from_parts(0, [0; 10]);
        self.tasks.get("", none).await?;
        Ok(Answer(Sign { status: "ok" }))
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
            Standstill::Results => "The result store is not writable; accepted tasks wait.",
            Standstill::Worker => {
                "The worker has died; accepted tasks wait until the service is restarted."
            }
        })
    }
}
