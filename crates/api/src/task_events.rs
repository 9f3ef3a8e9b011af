//! `GET /v1/videos/{id}/events`: the updates of one task, as server-sent events, until it has ended.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use kinora_store::Glance;

use crate::auth::Reader;
use crate::error::ApiError;
use crate::event_id::Told;
use crate::event_stream::{EventStream, Following, Opening};
use crate::path_id::PathId;
use crate::refusals::OfTaskEvents;
use crate::state::SharedApi;
use crate::watch::Subject;

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
    Reader(key): Reader,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let opening = Opening::new(&api, &key.key, &headers, Following::Task)?;
    // Join before reading the task, so that no change is missed in between.
    let subject = Subject::Task(id, opening.project.clone());
    let waiter = api.watch.join(subject, &api.tasks, &api.stopping);
    let task = api.own_task(&opening.project, id).await?;
    let glance = Glance::of(&task).ok_or_else(ApiError::expired)?;
    let known = opening.last.map(|last| last.told);
    if glance.has_ended() && known == Some(Told::from(glance)) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(EventStream::of_task(api, opening, waiter, id).response())
}
