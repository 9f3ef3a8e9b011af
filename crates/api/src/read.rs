//! `GET /v1/videos/{id}`: the current state of a task. Never scans and never reads a file.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use kinora_contract::{Status, Task, VideoObject};

use crate::auth::Reader;
use crate::error::ApiError;
use crate::path_id::PathId;
use crate::refusals::OfRead;
use crate::state::SharedApi;
use crate::wire::json_bytes;

/// How soon a client should poll again while the task is unfinished.
const POLL_AFTER_MS: u64 = 1_000;
/// Added for each task ahead in the queue.
const POLL_AFTER_MS_PER_TASK_AHEAD: u64 = 250;
/// The longest suggested wait.
const POLL_AFTER_MS_MAX: u64 = 10_000;

/// Query a video task.
///
/// Call again while `status` is `queued` or `in_progress`, after the milliseconds of
/// `openai-poll-after-ms`. Only `completed` means that `result_url` may be read.
#[utoipa::path(
    get,
    path = "/v1/videos/{id}",
    tag = "videos",
    params(("id" = String, Path, description = "Task identifier.")),
    responses((status = 200, description = "The task.", body = VideoObject), OfRead),
    security(("bearer" = []))
)]
pub(crate) async fn read(
    State(api): State<SharedApi>,
    Reader(key): Reader,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let found = api.tasks.get(&key.key.project, id).await?;
    let task = found.ok_or_else(ApiError::video_not_found)?;
    let position = api.position(&task).await?;
    let mut response = json_bytes(StatusCode::OK, api.object_json(&task, position)?);
    if !task.state.phase().is_terminal() {
        let after = HeaderValue::from(poll_after_ms(&task, position));
        response.headers_mut().insert("openai-poll-after-ms", after);
    }
    Ok(response)
}

fn poll_after_ms(task: &Task, position: Option<u64>) -> u64 {
    let queued = task.status() == Some(Status::Queued);
    // A queued task without a position is far back, or was submitted just now.
    let unknown = if queued { u64::MAX } else { 0 };
    let ahead = position.unwrap_or(unknown);
    let wait = POLL_AFTER_MS.saturating_add(ahead.saturating_mul(POLL_AFTER_MS_PER_TASK_AHEAD));
    wait.min(POLL_AFTER_MS_MAX)
}
