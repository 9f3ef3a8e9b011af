//! `POST /v1/videos/{id}/cancel`: an unfinished task becomes `failed`, and work on it stops.

use axum::extract::State;
use kinora_contract::{ErrorCode, FailureCode, VideoObject};
use kinora_store::CancelOutcome;

use crate::error::ApiError;
use crate::extract::{PathId, WriteKey};
use crate::refusals::OfCancel;
use crate::responses::JsonResponse;
use crate::state::SharedApi;

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
