//! The header `Idempotency-Key`, of every endpoint that creates something.

use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use kinora_contract::ErrorCode;
use kinora_contract::limits::{IDEMPOTENCY_HOURS, IDEMPOTENCY_KEY_CHARS_MAX};
use kinora_store::IdempotencyKey;

use crate::error::ApiError;

const HEADER: &str = "Idempotency-Key";
const BOUND_MS: u64 = IDEMPOTENCY_HOURS * 60 * 60 * 1000;

/// The key `key`, bound to the request with this fingerprint.
pub(crate) fn bound(key: String, fingerprint: [u8; 32]) -> IdempotencyKey {
    IdempotencyKey {
        key,
        fingerprint,
        bound_ms: BOUND_MS,
    }
}

/// The header's value: sent once, 1 to 255 visible ASCII characters.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut all = headers.get_all(HEADER).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    let bytes = value.as_bytes();
    let visible = bytes.iter().all(u8::is_ascii_graphic);
    if all.next().is_some() || !visible || !(1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&bytes.len()) {
        let message = format!(
            "'{HEADER}' must be sent once, as 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters."
        );
        let code = ErrorCode::InvalidValue;
        return Err(ApiError::for_param(code, HEADER, message));
    }
    Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
}

/// Marks the response to a request that an earlier identical one has carried out.
pub(crate) fn replayed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    response
}

/// The refusal of a key that was used with another request.
pub(crate) fn reused() -> ApiError {
    ApiError::for_param(
        ErrorCode::IdempotencyKeyReused,
        HEADER,
        "This idempotency key was used with another request; use a fresh one.",
    )
}
