//! `/healthz`: the process runs. `/readyz`: it can take and run tasks: the stores can be read and
//! written, and the process is not stopping. Both are open to anyone, so neither writes: the
//! components that write report their state.

use axum::extract::State;
use kinora_contract::{Standstill, TaskId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::refusals::{OfAlive, OfReady};
use crate::state::{Api, SharedApi};
use crate::wire::Answer;

/// A sign of health.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Whether the process runs.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "health",
    responses((status = 200, description = "It runs.", body = Health), OfAlive)
)]
pub(crate) async fn alive() -> Answer<Health> {
    Answer(Health { status: "ok" })
}

/// Whether tasks can be submitted and run.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses((status = 200, description = "They can.", body = Health), OfReady)
)]
pub(crate) async fn ready(State(api): State<SharedApi>) -> Result<Answer<Health>, ApiError> {
    if api.stopping.is_cancelled() {
        return Err(ApiError::shutting_down("The service is stopping."));
    }
    if let Some(message) = standstill(&api) {
        return Err(ApiError::away(message));
    }
    // No project has an empty name: this queries the store and finds nothing.
    api.tasks.get("", TaskId::from_parts(0, [0; 10])).await?;
    Ok(Answer(Health { status: "ok" }))
}

/// Why the service cannot work. The first two cases refuse submits; the others accept them.
fn standstill(api: &Api) -> Option<&'static str> {
    if !api.tasks.is_writable() {
        return Some("The task store is not writable; submits are refused.");
    }
    if !api.settings.reserve.has_room() {
        return Some("Disk space is below the reserve; submits are refused.");
    }
    api.readiness.standstill().map(|why| match why {
        Standstill::Results => "The result store is not writable; accepted tasks wait.",
        Standstill::Worker => {
            "The worker has died; accepted tasks wait until the service is restarted."
        }
    })
}
