//! `/healthz`: the process runs. `/readyz`: it can take work: the store answers and nothing stops.

use axum::extract::State;
use kinora_contract::TaskId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::openapi::refusals::{OfAlive, OfReady};
use crate::state::SharedApi;
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

/// Whether tasks can be submitted.
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
    // No project has an empty name: this asks the store itself, and finds nothing.
    api.tasks.get("", TaskId::from_parts(0, [0; 10])).await?;
    Ok(Answer(Health { status: "ok" }))
}
