//! `/healthz`: the process runs. `/readyz`: it can take work and do it: the stores can be read and written,
//! and nothing stops. Anybody may ask, so that the answer costs no write: the parts that write know.

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
    // No project has an empty name: this asks the store itself, and finds nothing.
    api.tasks.get("", TaskId::from_parts(0, [0; 10])).await?;
    Ok(Answer(Health { status: "ok" }))
}

/// What keeps the service from its work. A submit is refused in the first two cases, and taken in the others.
fn standstill(api: &Api) -> Option<&'static str> {
    if !api.tasks.is_writable() {
        return Some("The task store cannot be written; submits are refused until it can.");
    }
    if !api.settings.reserve.has_room() {
        return Some("Disk space is below the reserve; submits are refused until there is more.");
    }
    api.readiness.standstill().map(|why| match why {
        Standstill::Results => "Results cannot be stored; accepted tasks wait until they can.",
        Standstill::Worker => {
            "The worker has died; accepted tasks wait until the service is restarted."
        }
    })
}
