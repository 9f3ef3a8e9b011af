//! `GET /v1/videos`: lists a project's tasks, one page at a time.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use kinora_contract::limits::PAGE_BYTES_MAX;
use kinora_contract::{PageQuery, TaskId, VideoList, VideoObject, listed_bytes};
use kinora_store::{ListOrder, PageRequest, TaskPage};
use tokio::task::spawn_blocking;

use crate::error::ApiError;
use crate::extract::ReadKey;
use crate::memory::{LimitReached, MemoryBudget, MemoryOwner, ReservedMemory};
use crate::middleware::SharedContext;
use crate::refusals::OfList;
use crate::request_id::RequestId;
use crate::responses::json_bytes;
use crate::state::{Api, SharedApi};

/// How long a page waits for clients of its project to receive earlier pages.
const ROOM_PATIENCE: Duration = Duration::from_secs(2);

/// List video tasks.
///
/// The project's own tasks, newest first. For the next page, pass `last_id` as `after`. A page
/// may hold fewer tasks than `limit`; `has_more` says whether there are more.
#[utoipa::path(
    get,
    path = "/v1/videos",
    tag = "videos",
    params(
        ("after" = Option<String>, Query, description = "Only tasks after this one."),
        ("limit" = Option<u32>, Query, description = "Tasks of a page, 1 to 100.", minimum = 1, maximum = 100),
        ("order" = Option<String>, Query, description = "`desc` (default, newest first) or `asc`."),
    ),
    responses((status = 200, description = "A page of tasks.", body = VideoList), OfList),
    security(("bearer" = []))
)]
pub(crate) async fn list(
    State(api): State<SharedApi>,
    ReadKey(key): ReadKey,
    RawQuery(query): RawQuery,
    context: Option<Extension<SharedContext>>,
) -> Result<Response, ApiError> {
    let query = query.unwrap_or_default();
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let asked = PageQuery::parse(pairs.iter().map(|(name, value)| (&**name, &**value)))?;
    let project = key.key.project.clone();
    let turn = api.turns.acquire_own(&project).await?;
    // Taken before reading, so concurrent requests cannot exceed the memory budget.
    let held = match &context {
        Some(Extension(context)) => Some(room(&context.buffers, &project).await?),
        None => None,
    };
    // Last of the three waits: nobody holds one of the few turns of all projects while it waits for
    // its own memory.
    let turn = api.turns.acquire_turn(turn).await?;
    let request = PageRequest {
        project,
        after: asked.after,
        limit: asked.limit,
        order: if asked.ascending {
            ListOrder::Ascending
        } else {
            ListOrder::Descending
        },
    };
    // Spawned: a client that hangs up must not end the turn or release the memory before the work
    // ends.
    let reading = tokio::spawn(RequestId::carried(async move {
        let page = api.tasks.list(request).await?;
        let ids: Vec<TaskId> = page.tasks.iter().map(|task| task.id).collect();
        let positions = api.tasks.positions(&ids).await?;
        let written =
            spawn_blocking(RequestId::inherited(move || write(&api, &page, &positions))).await;
        drop(turn);
        let body = written.map_err(ApiError::internal)??;
        Ok::<_, ApiError>((body, held))
    }));
    let (body, held) = reading.await.map_err(ApiError::internal)??;
    Ok(respond(body, held))
}

/// Memory for a page of the project, held until the client has received it.
async fn room(buffers: &MemoryBudget, project: &str) -> Result<ReservedMemory, LimitReached> {
    let owner = MemoryOwner::Project(project.into());
    let bytes = PAGE_BYTES_MAX as u64;
    buffers.reserve(&owner, bytes, ROOM_PATIENCE).await
}

/// Writes the page as JSON into a buffer of about its size: growing by doubling could take twice
/// the counted memory.
fn write(api: &Api, page: &TaskPage, positions: &[Option<u64>]) -> Result<Vec<u8>, ApiError> {
    let bytes = page.tasks.iter().map(|task| listed_bytes(task)).sum();
    let data: Vec<VideoObject> = page
        .tasks
        .iter()
        .zip(positions)
        .map(|(task, position)| api.object_at(task, *position))
        .collect::<Result<_, _>>()?;
    let list = VideoList {
        object: "list",
        first_id: data.first().map(|object| object.id.clone()),
        last_id: data.last().map(|object| object.id.clone()),
        data,
        has_more: page.has_more,
    };
    let mut body = Vec::with_capacity(bytes);
    serde_json::to_writer(&mut body, &list).map_err(ApiError::internal)?;
    body.shrink_to_fit();
    Ok(body)
}

fn respond(body: Vec<u8>, held: Option<ReservedMemory>) -> Response {
    let bytes = body.len() as u64;
    let mut response = json_bytes(StatusCode::OK, body);
    if let Some(mut held) = held {
        held.shrink_to(bytes);
        response.extensions_mut().insert(Arc::new(held));
    }
    response
}
