//! The thumbnail of a video that is being made: the last preview of its run. It changes from one
//! look to the next, so nothing of it is kept anywhere.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use kinora_store::TaskView;

use crate::files::Variant;
use crate::security::MEDIA_POLICY;

/// The preview, where `variant` is asked for while a run has one.
pub(crate) fn preview(view: &TaskView, variant: Variant) -> Option<Response> {
    let preview = view.preview.as_ref()?;
    if variant != Variant::Thumbnail {
        return None;
    }
    let bytes = Bytes::from_owner(Arc::clone(preview));
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, variant.media_type()),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, MEDIA_POLICY),
        (header::CONTENT_DISPOSITION, "inline"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}
