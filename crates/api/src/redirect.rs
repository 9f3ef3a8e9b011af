//! Redirects a download to the result store, using a URL that the store signs for a few minutes.
//! Clients keep using the service's own signed URL.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kinora_blobs::DirectLink;
use kinora_contract::{StoredFile, Task};

use crate::error::ApiError;
use crate::files::{KEEPABLE, Variant};
use crate::state::Api;

/// Lifetime of the store's URL; shorter if the task expires earlier.
const TTL_SECONDS_MAX: u64 = 300;
/// The store uses other entity tags than we do: with ours, these conditions would fail or return
/// the whole file.
const CONDITIONS: [HeaderName; 3] = [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_RANGE];

/// The redirect to `file` in the store; `None` if the service must send the file itself.
pub(crate) async fn redirect(
    api: &Api,
    task: &Task,
    variant: Variant,
    file: &StoredFile,
    headers: &HeaderMap,
) -> Result<Option<Response>, ApiError> {
    let has_condition = CONDITIONS.iter().any(|name| headers.contains_key(name));
    if !api.settings.redirects || has_condition {
        return Ok(None);
    }
    let expires_at_ms = task.expires_at_ms.unwrap_or(u64::MAX);
    let left = expires_at_ms.saturating_sub(api.clock.now_ms()) / 1000;
    let link = DirectLink {
        ttl: Duration::from_secs(left.clamp(1, TTL_SECONDS_MAX)),
        media_type: variant.media_type(),
        disposition: &variant.disposition(task.id),
        cache_control: KEEPABLE,
    };
    let signed = api.blobs.direct_url(&file.key, &link).await;
    let Some(url) = signed.map_err(|error| ApiError::storage(&error))? else {
        return Ok(None);
    };
    let mut location =
        HeaderValue::from_str(url.as_str()).map_err(|error| ApiError::internal(&error))?;
    location.set_sensitive(true);
    let no_store = HeaderValue::from_static("private, no-store");
    let fields = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, no_store),
    ];
    Ok(Some(
        (StatusCode::TEMPORARY_REDIRECT, fields).into_response(),
    ))
}
