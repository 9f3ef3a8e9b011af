//! `Idempotency-Key`: parses the header and describes the request for the store.

use axum::http::HeaderMap;
use kinora_contract::limits::{IDEMPOTENCY_HOURS, IDEMPOTENCY_KEY_CHARS_MAX};
use kinora_contract::{ErrorCode, SubmitRequest};
use kinora_store::Idempotency;

use crate::error::ApiError;

const HEADER: &str = "Idempotency-Key";
const BOUND_MS: u64 = IDEMPOTENCY_HOURS * 60 * 60 * 1000;

/// The idempotency of a request that sends the header.
pub(crate) fn of_request(
    headers: &HeaderMap,
    request: &SubmitRequest,
) -> Result<Option<Idempotency>, ApiError> {
    let Some(key) = key(headers)? else {
        return Ok(None);
    };
    let fingerprint = request.fingerprint()?;
    Ok(Some(Idempotency {
        key,
        fingerprint,
        bound_ms: BOUND_MS,
    }))
}

/// The header's value: sent once, 1 to 255 visible ASCII characters.
fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
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
        return Err(ApiError::of(ErrorCode::InvalidValue, HEADER, message));
    }
    Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
}
