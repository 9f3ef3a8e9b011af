//! `POST /v1/videos/edits` and `POST /v1/videos/{id}/remix`: OpenAI's endpoints for editing. Both
//! become a submit and take the same path from there.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use kinora_contract::VideoObject;
use kinora_contract::edit_endpoints::{
    EditVideo, RemixVideo, edits_request, remix_request, rename_param_for_edits,
};

use crate::body;
use crate::error::ApiError;
use crate::extract::{PathId, WriteKey};
use crate::refusals::{OfEdits, OfRemix};
use crate::state::SharedApi;
use crate::submit::{SubmitEndpoint, create_task};

/// Edit a video.
///
/// The same as a submit with `edit_task_id`. Without `model`, the first model that supports edits
/// makes the edit.
#[utoipa::path(
    post,
    path = "/v1/videos/edits",
    tag = "videos",
    params(("Idempotency-Key" = Option<String>, Header, description = "As on a submit.")),
    request_body(content(
        (EditVideo = "application/json"),
        (EditVideo = "multipart/form-data"),
    )),
    responses((status = 200, description = "The accepted task.", body = VideoObject), OfEdits),
    security(("bearer" = []))
)]
pub(crate) async fn edits(
    State(api): State<SharedApi>,
    WriteKey(key): WriteKey,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let sent = body::fields(&headers, body).await?;
    let request = edits_request(sent, &api.catalog)?;
    let endpoint = SubmitEndpoint {
        name: "POST /v1/videos/edits",
        source: None,
    };
    let accepted = create_task(&api, &key.key, &headers, &request.into(), endpoint).await;
    accepted.map_err(|error| error.reworded(rename_param_for_edits))
}

/// Remix a video.
///
/// The same as an edit, with the video in the path.
#[utoipa::path(
    post,
    path = "/v1/videos/{id}/remix",
    tag = "videos",
    params(
        ("id" = String, Path, description = "The completed video."),
        ("Idempotency-Key" = Option<String>, Header, description = "As on a submit."),
    ),
    request_body(content(
        (RemixVideo = "application/json"),
        (RemixVideo = "multipart/form-data"),
    )),
    responses((status = 200, description = "The accepted task.", body = VideoObject), OfRemix),
    security(("bearer" = []))
)]
pub(crate) async fn remix(
    State(api): State<SharedApi>,
    WriteKey(key): WriteKey,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let sent = body::fields(&headers, body).await?;
    let request = remix_request(sent, id, &api.catalog)?;
    let endpoint = SubmitEndpoint {
        name: "POST /v1/videos/{id}/remix",
        source: Some(id),
    };
    let accepted = create_task(&api, &key.key, &headers, &request.into(), endpoint).await;
    accepted.map_err(|error| error.reworded(rename_param_for_edits))
}
