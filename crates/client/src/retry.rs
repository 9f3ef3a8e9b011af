//! When to retry a call: after the time that the service asks for, or after doubling waits.

use std::time::Duration;

use hyper::HeaderMap;
use kinora_http::Backoff;

/// The waits before retries.
pub(crate) const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(250),
    max: Duration::from_secs(8),
};
/// The longest wait that the service may ask for; the API documents 120 s.
const ASKED_MAX: Duration = Duration::from_secs(300);

/// The wait of `Retry-After`.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    kinora_http::retry_after(headers).map(|wait| wait.min(ASKED_MAX))
}

/// `openai-poll-after-ms`: when to poll again.
pub(crate) fn poll_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("openai-poll-after-ms")?.to_str().ok()?;
    let milliseconds: f64 = value.trim().parse().ok()?;
    let wait = Duration::try_from_secs_f64(milliseconds / 1000.0).ok()?;
    Some(wait.min(ASKED_MAX))
}
