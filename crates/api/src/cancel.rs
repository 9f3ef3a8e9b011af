//! `POST /v1/videos/{id}/cancel`: an unfinished task becomes `failed`, and work on it stops. `POST
//! /v1/videos/cancel` does the same to all queued tasks of the project.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use kinora_contract::short_requests::CancelVideos;
use kinora_contract::validate::named_model;
use kinora_contract::{ErrorCode, FailureCode, VideoObject};
use kinora_store::{CancelOutcome, QueuedCancel};
use serde::Serialize;
use utoipa::ToSchema;

use crate::body;
use crate::error::ApiError;
use crate::extract::{PathId, WriteKey};
use crate::refusals::{OfCancel, OfCancelQueued};
use crate::responses::JsonResponse;
use crate::state::SharedApi;

/// The outcome of a cancel of queued tasks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VideosCancelled {
    /// Always `videos.cancelled`.
    #[schema(example = "videos.cancelled")]
    object: &'static str,
    /// Number of tasks that this call has cancelled.
    #[schema(example = 12)]
    cancelled: u64,
}

/// Cancel a video task.
///
/// When the answer arrives, the task is `failed` with the code `cancelled`; work on it stops
/// within two seconds. A finished task is refused with `not_cancellable`.
#[utoipa::path(
    post,
    path = "/v1/videos/{id}/cancel",
    tag = "videos",
    params(("id" = String, Path, description = "Task identifier.")),
    responses((status = 200, description = "The task, now failed.", body = VideoObject), OfCancel),
    security(("bearer" = []))
)]
pub(crate) async fn cancel(
    State(api): State<SharedApi>,
    WriteKey(key): WriteKey,
    PathId(id): PathId,
) -> Result<JsonResponse<VideoObject>, ApiError> {
    let retention_ms = api.settings.failed_retention_ms;
    let failure = FailureCode::Cancelled.into();
    match api
        .tasks
        .cancel(&key.key.project, id, failure, retention_ms)
        .await?
    {
        CancelOutcome::Cancelled(task) => {
            tracing::info!(task = %id, "task cancelled");
            Ok(JsonResponse(api.object(&task).await?))
        }
        CancelOutcome::AlreadyFinished(task) => {
            let status = task.status().ok_or_else(ApiError::expired)?;
            let message = format!("This video is already {}.", status.as_str());
            Err(ApiError::new(ErrorCode::NotCancellable, message).final_answer())
        }
        CancelOutcome::NotFound => Err(ApiError::video_not_found()),
    }
}

/// Cancel all queued tasks.
///
/// Cancels the project's tasks that wait for their first run, of one model or of all. When the answer
/// arrives, they are `failed` with the code `cancelled`. Running tasks go on. A task that is submitted
/// during the call may stay. Safe to repeat: a second call cancels those that wait by then.
#[utoipa::path(
    post,
    path = "/v1/videos/cancel",
    tag = "videos",
    request_body = CancelVideos,
    responses((status = 200, description = "How many tasks were cancelled.", body = VideosCancelled), OfCancelQueued),
    security(("bearer" = []))
)]
pub(crate) async fn cancel_queued(
    State(api): State<SharedApi>,
    WriteKey(key): WriteKey,
    headers: HeaderMap,
    body: Body,
) -> Result<JsonResponse<VideosCancelled>, ApiError> {
    let request = CancelVideos::from_json(&body::json(&headers, body).await?)?;
    let model = request.model.as_deref();
    let model = model.map(|name| named_model(name, &api.catalog));
    let request = QueuedCancel {
        project: key.key.project.clone(),
        model: model.transpose()?.map(|card| card.id.clone()),
        failure: FailureCode::Cancelled.into(),
        retention_ms: api.settings.failed_retention_ms,
    };
    let cancelled = api.tasks.cancel_queued(request).await?;
    tracing::info!(
        tasks = cancelled,
        key = key.key.id,
        "queued tasks cancelled"
    );
    Ok(JsonResponse(VideosCancelled {
        object: "videos.cancelled",
        cancelled,
    }))
}
