//! `GET /v1/videos/{id}`: the current state of a task, or its next one for a client that waits
//! (long poll). Never scans the store and never reads a file.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use kinora_contract::{Status, Task, TaskId, VideoObject};
use kinora_store::{NewKey, TaskGlance};
use tokio::time::timeout;

use crate::error::ApiError;
use crate::extract::{PathId, ReadKey, unauthorized};
use crate::prefer;
use crate::prefer::PREFERENCE_APPLIED;
use crate::refusals::OfRead;
use crate::responses::json_bytes;
use crate::state::{Api, SharedApi};
use crate::watch::{TaskWaiter, WatchSubject};

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
    ReadKey(key): ReadKey,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let wait = prefer::wait(&headers);
    let (task, has_waited) = match wait {
        // Boxed: a wait would enlarge the future of every poll.
        Some(wait) => Box::pin(wait_for_change(&api, &key.key, id, wait)).await?,
        None => (api.poll_task(&key.key.project, id).await?, false),
    };
    let position = api.position(&task).await?;
    let mut response = json_bytes(StatusCode::OK, api.object_json(&task, position)?);
    if !task.state.phase().is_terminal() {
        let after = HeaderValue::from(poll_after_ms(&task, position));
        response.headers_mut().insert("openai-poll-after-ms", after);
    }
    if let Some(wait) = wait.filter(|_| has_waited) {
        let applied = HeaderValue::from_str(&format!("wait={}", wait.as_secs()));
        let applied = applied.map_err(ApiError::internal)?;
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

/// The task after its next change, or in its state after `wait`; and whether there was room to
/// wait.
async fn wait_for_change(
    api: &Api,
    key: &NewKey,
    id: TaskId,
    wait: Duration,
) -> Result<(Arc<Task>, bool), ApiError> {
    // Without room the answer comes at once: the client will ask again.
    let Ok(_permit) = api.watch.waits.try_acquire(&key.id) else {
        return Ok((api.find_task(&key.project, id).await?, false));
    };
    // Join before reading the task, so that no change is missed in between.
    let subject = WatchSubject {
        project: key.project.as_str().into(),
        task: Some(id),
    };
    let waiter = api.watch.join(subject, &api.tasks, &api.stopping);
    let task = api.find_task(&key.project, id).await?;
    let before = TaskGlance::from_task(&task);
    if before.is_none_or(|before| before.has_ended()) {
        return Ok((task, true));
    }
    let hold = api.watch.keys.hold(key.sha256, &api.keys, &api.clock);
    // The key may be revoked during the wait of up to a minute.
    let change = async {
        tokio::select! {
            biased;
            () = hold.ended() => Err(unauthorized()),
            changed = next_change(api, (&key.project, id), &waiter, before) => changed,
        }
    };
    let task = match timeout(wait, change).await {
        Ok(changed) => changed?,
        Err(_) => api.find_task(&key.project, id).await?,
    };
    Ok((task, true))
}

/// Returns the task once its state differs from `before`, or the service stops.
async fn next_change(
    api: &Api,
    (project, id): (&str, TaskId),
    waiter: &TaskWaiter,
    before: Option<TaskGlance>,
) -> Result<Arc<Task>, ApiError> {
    let mailbox = waiter.mailbox();
    loop {
        mailbox.moved().await;
        // No update: the service stops, and the client gets the state as it is.
        let Some(update) = mailbox.pop() else {
            return api.find_task(project, id).await;
        };
        let task = match update.task {
            Some(task) => task,
            None => api.find_task(project, id).await?,
        };
        if TaskGlance::from_task(&task) != before {
            return Ok(task);
        }
    }
}
