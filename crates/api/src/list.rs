//! `GET /v1/videos`: a project's tasks, a page at a time.

use axum::extract::{RawQuery, State};
use kinora_contract::{PageQuery, VideoList, VideoObject};
use kinora_store::{Order, PageRequest};

use crate::auth::Reader;
use crate::error::ApiError;
use crate::openapi::refusals::OfList;
use crate::state::SharedApi;
use crate::wire::Answer;

/// List video tasks.
///
/// The project's own tasks, newest first. `after` takes the `last_id` of the page before.
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
    Reader(key): Reader,
    RawQuery(query): RawQuery,
) -> Result<Answer<VideoList>, ApiError> {
    let query = query.unwrap_or_default();
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let asked = PageQuery::parse(pairs.iter().map(|(name, value)| (&**name, &**value)))?;
    let page = api
        .tasks
        .list(PageRequest {
            project: key.key.project.clone(),
            after: asked.after,
            limit: asked.limit,
            order: if asked.ascending {
                Order::Ascending
            } else {
                Order::Descending
            },
        })
        .await?;
    let data: Vec<VideoObject> = page
        .tasks
        .iter()
        .map(|view| api.object(view))
        .collect::<Result<_, _>>()?;
    Ok(Answer(VideoList {
        object: "list",
        first_id: data.first().map(|object| object.id.clone()),
        last_id: data.last().map(|object| object.id.clone()),
        data,
        has_more: page.has_more,
    }))
}
