//! `POST /v1/videos/{id}/cancel`: an unfinished task becomes `failed`, and work on it stops.

use axum::extract::State;
use kinora_contract::{ErrorCode, FailureCode, VideoObject};
use kinora_store::Cancellation;

use crate::error::ApiError;
use crate::extract::{PathId, Writer};
use crate::refusals::OfCancel;
use crate::responses::Answer;
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
    Writer(key): Writer,
    PathId(id): PathId,
) -> Result<Answer<VideoObject>, ApiError> {
    let retention_ms = api.settings.failed_retention_ms;
    let failure = FailureCode::Cancelled.into();
    match api
        .tasks
        .cancel(&key.key.project, id, failure, retention_ms)
        .await?
    {
        Cancellation::Cancelled(task) => {
            tracing::info!(task = %id, "task cancelled");
            Ok(Answer(api.object(&task).await?))
        }
        Cancellation::AlreadyFinished(task) => {
            let status = task.status().ok_or_else(ApiError::expired)?;
            let message = format!("This video is already {}.", status.as_str());
            Err(ApiError::new(ErrorCode::NotCancellable, message).final_answer())
        }
        Cancellation::NotFound => Err(ApiError::video_not_found()),
    }
}
