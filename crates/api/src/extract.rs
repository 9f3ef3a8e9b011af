//! Extractors of endpoints: the API key with its scope, and the task id in a path. Missing,
//! malformed, unknown, revoked and expired keys get the same answer. Keys are looked up by hash;
//! the key text is never stored or logged.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use kinora_contract::{ErrorCode, FileId, KeyText, TaskId};
use kinora_store::{ApiKey, KeyScope};

use crate::error::ApiError;
use crate::middleware::SharedContext;
use crate::state::{Api, SharedApi};

/// A key that may read.
pub(crate) struct ReadKey(pub(crate) Arc<ApiKey>);

/// A key that may submit, cancel and delete.
pub(crate) struct WriteKey(pub(crate) Arc<ApiKey>);

/// A key that may see the whole service.
pub(crate) struct OperatorKey(#[allow(dead_code, reason = "only its scope matters")] Arc<ApiKey>);

/// A key that may pause and resume models.
pub(crate) struct ControlKey(pub(crate) Arc<ApiKey>);

macro_rules! key_extractors {
    ($($key:ident = $scope:ident),*) => {$(
        impl FromRequestParts<SharedApi> for $key {
            type Rejection = ApiError;

            async fn from_request_parts(
                parts: &mut Parts,
                api: &SharedApi,
            ) -> Result<Self, ApiError> {
                let (headers, extensions) = (&parts.headers, &parts.extensions);
                let key = authorize(api, headers, extensions, KeyScope::$scope).await;
                key.map(Self)
            }
        }
    )*};
}

key_extractors!(
    ReadKey = Read,
    WriteKey = Write,
    OperatorKey = Operations,
    ControlKey = Control
);

/// Returns the key of a request if it is usable, within its rate limit and has `scope`.
pub(crate) async fn authorize(
    api: &Api,
    headers: &HeaderMap,
    extensions: &Extensions,
    scope: KeyScope,
) -> Result<Arc<ApiKey>, ApiError> {
    let Some(sha256) = bearer(headers) else {
        return Err(unauthorized());
    };
    let now_ms = api.clock.now_ms();
    let found = api.keys.find_key(&sha256, now_ms).await?;
    // Revoked and expired keys get the answer of unknown ones: a caller cannot find out which keys
    // once existed.
    let usable = found.filter(|key| key.is_usable(now_ms));
    let key = usable.ok_or_else(unauthorized)?;
    // The listener provides the meter; requests that reach the router without it are not metered.
    if let Some(context) = extensions.get::<SharedContext>() {
        let standing = context
            .meter
            .count(&key.key.id, key.key.requests_per_minute, now_ms)
            .await;
        if let Some(seconds) = standing.and_then(|one| one.retry_after_seconds) {
            let message = "Rate limit exceeded; retry after the time in Retry-After.";
            return Err(ApiError::new(ErrorCode::RateLimitExceeded, message).retry_after(seconds));
        }
    }
    if !key.key.scopes.contains(&scope) {
        let message = format!("This API key lacks the scope '{}'.", scope.name());
        return Err(ApiError::new(ErrorCode::ScopeMissing, message));
    }
    Ok(key)
}

/// The answer to a request without a usable key.
pub(crate) fn unauthorized() -> ApiError {
    ApiError::new(
        ErrorCode::InvalidApiKey,
        "Missing or invalid API key; send the header 'Authorization: Bearer KEY'.",
    )
}

/// The SHA-256 of the well-formed key in the one `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<[u8; 32]> {
    let (scheme, key) = only(headers, AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| KeyText::sha256_of(key.trim_matches(' ')))?
}

/// The value of a header that was sent once.
pub(crate) fn only(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none())
}

/// The `{id}` of a path. A malformed id counts as an unknown task, without asking the store.
pub(crate) struct PathId(pub(crate) TaskId);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = path_id(parts, state).await;
        id.map(Self).ok_or_else(ApiError::video_not_found)
    }
}

/// The `{id}` of a path to a file, in the same way.
pub(crate) struct PathFileId(pub(crate) FileId);

impl<S: Send + Sync> FromRequestParts<S> for PathFileId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = path_id(parts, state).await;
        id.map(Self).ok_or_else(ApiError::file_not_found)
    }
}

async fn path_id<T: FromStr, S: Send + Sync>(parts: &mut Parts, state: &S) -> Option<T> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    let (_, text) = params.iter().find(|(name, _)| *name == "id")?;
    text.parse().ok()
}
