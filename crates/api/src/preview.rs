//! The thumbnail of an unfinished video: the latest preview of its run. It keeps changing, so it is
//! never cached.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use kinora_contract::{State, Task};

use crate::error::ApiError;
use crate::files::Variant;
use crate::security::MEDIA_POLICY;
use crate::state::Api;

/// The preview, if `variant` is the thumbnail and the task's run has one.
pub(crate) async fn preview(
    api: &Api,
    task: &Task,
    variant: Variant,
) -> Result<Option<Response>, ApiError> {
    if variant != Variant::Thumbnail || !matches!(task.state, State::Running) {
        return Ok(None);
    }
    Ok(api.tasks.preview(task.id).await?.map(respond))
}

fn respond(preview: Arc<[u8]>) -> Response {
    let bytes = Bytes::from_owner(preview);
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, Variant::Thumbnail.media_type()),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, MEDIA_POLICY),
        (header::CONTENT_DISPOSITION, "inline"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
