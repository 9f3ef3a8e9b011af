//! `GET /v1/videos/{id}`: the current state of a task, or its next one. Never scans the store and
//! never reads a file.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use kinora_contract::{Status, Task, VideoObject};

use crate::auth::Reader;
use crate::error::ApiError;
use crate::path_id::PathId;
use crate::prefer::PREFERENCE_APPLIED;
use crate::refusals::OfRead;
use crate::state::SharedApi;
use crate::wire::json_bytes;
use crate::{long_poll, prefer};

/// How soon a client should poll again while the task is unfinished.
const POLL_AFTER_MS: u64 = 1_000;
/// Added for each task ahead in the queue.
const POLL_AFTER_MS_PER_TASK_AHEAD: u64 = 250;
/// The longest suggested wait.
const POLL_AFTER_MS_MAX: u64 = 10_000;

/// Query a video task.
///
/// Call again while `status` is `queued` or `in_progress`, after the milliseconds in
/// `openai-poll-after-ms`. Do not read `result_url` before `status` is `completed`. With `Prefer:
/// wait=30` the service
/// answers when `status` or `progress` changes, or after 30 seconds; `Preference-Applied` confirms
/// the wait.
#[utoipa::path(
    get,
    path = "/v1/videos/{id}",
    tag = "videos",
    params(
        ("id" = String, Path, description = "Task identifier."),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`, at most 60: answer at the next change."),
    ),
    responses((status = 200, description = "The task.", body = VideoObject), OfRead),
    security(("bearer" = []))
)]
pub(crate) async fn read(
    State(api): State<SharedApi>,
    Reader(key): Reader,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let wait = prefer::wait(&headers);
    let (task, has_waited) = match wait {
        // Boxed: a wait would enlarge the future of every poll.
        Some(wait) => Box::pin(long_poll::changed(&api, &key.key, id, wait)).await?,
        None => (api.polled_task(&key.key.project, id).await?, false),
    };
    let position = api.position(&task).await?;
    let mut response = json_bytes(StatusCode::OK, api.object_json(&task, position)?);
    if !task.state.phase().is_terminal() {
        let after = HeaderValue::from(poll_after_ms(&task, position));
        response.headers_mut().insert("openai-poll-after-ms", after);
    }
    if let Some(wait) = wait.filter(|_| has_waited) {
        let applied = HeaderValue::from_str(&format!("wait={}", wait.as_secs()));
        let applied = applied.map_err(|error| ApiError::internal(&error))?;
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
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
