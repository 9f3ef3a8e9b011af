//! `GET /v1/videos/events` and `GET /v1/videos/{id}/events`: the updates of all tasks of a project,
//! or of one task until it has ended, as server-sent events.

use std::collections::VecDeque;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use kinora_contract::limits::EVENTS_RESUMED_MAX;
use kinora_contract::{Status, TaskId};
use kinora_store::{EndedRequest, EndedTasks, TaskGlance};

use crate::error::ApiError;
use crate::event_id::{EventId, ReportedState};
use crate::event_stream::{EventStream, StreamRequest, StreamSubject};
use crate::extract::{PathId, ReadKey};
use crate::refusals::{OfEvents, OfTaskEvents};
use crate::state::SharedApi;
use crate::watch::WatchSubject;

/// Follow all video tasks.
///
/// Server-sent events. Each `video.updated` has a task object of the key's project as its `data`,
/// as
/// `GET /v1/videos/{id}` renders it. The stream begins with the unfinished tasks, and reports each
/// change of
/// `status` or `progress`. To resume, send the id of the last event in `Last-Event-ID`: the stream
/// then begins
/// with the tasks that may have changed since then, including ended ones. It does not report
/// deleted tasks.
#[utoipa::path(
    get,
    path = "/v1/videos/events",
    tag = "videos",
    params(
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event received."),
    ),
    responses(
        (status = 200, description = "The events.", content_type = "text/event-stream", body = String),
        OfEvents,
    ),
    security(("bearer" = []))
)]
pub(crate) async fn events(
    State(api): State<SharedApi>,
    ReadKey(key): ReadKey,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let mut opening = StreamRequest::new(&api, &key.key, &headers, StreamSubject::Project)?;
    // The id of a single task's stream says nothing about other tasks.
    opening.last = opening.last.filter(|last| last.since_ms > 0);
    let subject = WatchSubject {
        project: opening.project.clone(),
        task: None,
    };
    // Join before reading the tasks, so that no change is missed in between.
    let waiter = api.watch.join(subject, &api.tasks, &api.stopping);
    let unfinished = api.tasks.unfinished(&opening.project).await?;
    let request = EndedRequest {
        project: opening.project.to_string(),
        since_ms: opening.last.map_or(0, |last| last.since_ms),
        // A new client does not receive earlier ends.
        limit: opening.last.map_or(0, |_| EVENTS_RESUMED_MAX),
    };
    // Read after the unfinished tasks, so that a task which ends in between is reported as ended.
    let ended = api.tasks.ended(request).await?;
    waiter.record_read(&unfinished, &ended);
    let open_ms = ended.next_ms;
    let beginning = match opening.last {
        None => unfinished.iter().map(|glance| glance.id).collect(),
        Some(last) => changed_since(last, &unfinished, &ended),
    };
    let stream = EventStream::new(api, opening, waiter, beginning, open_ms);
    Ok(stream.response())
}

/// The tasks that may have changed since the last event: all that ended or were accepted since
/// then, and all that are in progress. Only for the task of the last event is the client's state
/// known exactly.
fn changed_since(last: EventId, unfinished: &[TaskGlance], ended: &EndedTasks) -> VecDeque<TaskId> {
    let ends = ended
        .tasks
        .iter()
        .map(|(_, id)| *id)
        .filter(|id| !(last.state.has_ended() && last.state.task == *id));
    let others = unfinished.iter().filter(|glance| {
        let is_new = glance.created_at_ms >= ended.from_ms;
        let is_told = last.state == ReportedState::from(**glance);
        (last.is_partial || is_new || glance.status != Status::Queued) && !is_told
    });
    ends.chain(others.map(|glance| glance.id)).collect()
}

/// Follow a video task.
///
/// Server-sent events. Each `video.updated` has the task object as its `data`, as `GET
/// /v1/videos/{id}` renders it. The
/// stream begins with the current state, reports each change of `status` or `progress`, and ends
/// after `completed`
/// or `failed`. To resume, send the id of the last event in `Last-Event-ID`: the stream then does
/// not repeat that
/// state, and the answer is 204 if the task has ended and the client has its last event.
#[utoipa::path(
    get,
    path = "/v1/videos/{id}/events",
    tag = "videos",
    params(
        ("id" = String, Path, description = "Task identifier."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event received."),
    ),
    responses(
        (status = 200, description = "The events.", content_type = "text/event-stream", body = String),
        (status = 204, description = "The task has ended and the client has its last event."),
        OfTaskEvents,
    ),
    security(("bearer" = []))
)]
pub(crate) async fn task_events(
    State(api): State<SharedApi>,
    ReadKey(key): ReadKey,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let opening = StreamRequest::new(&api, &key.key, &headers, StreamSubject::Task)?;
    // Join before reading the task, so that no change is missed in between.
    let subject = WatchSubject {
        project: opening.project.clone(),
        task: Some(id),
    };
    let waiter = api.watch.join(subject, &api.tasks, &api.stopping);
    let task = api.find_task(&opening.project, id).await?;
    let glance = TaskGlance::from_task(&task).ok_or_else(ApiError::expired)?;
    let known = opening.last.map(|last| last.state);
    if glance.has_ended() && known == Some(ReportedState::from(glance)) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(EventStream::new(api, opening, waiter, [id].into(), 0).response())
}
