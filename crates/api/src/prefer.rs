//! Parses the `Prefer` header (RFC 7240). The supported preferences are `wait`, in seconds, and
//! `return=minimal`.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use kinora_contract::limits::WAIT_SECONDS_MAX;

use crate::conditional::listed;

const PREFER: HeaderName = HeaderName::from_static("prefer");
/// Reports the preference that was applied.
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// How long the client is willing to wait for a change, at most [`WAIT_SECONDS_MAX`]. Invalid
/// preferences are ignored, as the RFC allows.
pub(crate) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let digits = value(headers, "wait")?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A number too large for `u64` is simply a long time.
    let seconds = is_number.then(|| digits.parse().unwrap_or(u64::MAX))?;
    Some(Duration::from_secs(seconds.min(WAIT_SECONDS_MAX)))
}

/// Whether the client prefers an answer without a body to one that only says that there is nothing.
pub(crate) fn is_minimal(headers: &HeaderMap) -> bool {
    value(headers, "return") == Some("minimal")
}

/// The value of the first preference `wanted`, without its quotes.
fn value<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let value = listed(headers, &PREFER).find_map(|preference| {
        // Parameters follow a semicolon; none of ours has any.
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        let is_wanted = name.trim().eq_ignore_ascii_case(wanted);
        is_wanted.then(|| value.trim())
    })?;
    let unquoted = value
        .strip_prefix('"')
        .and_then(|quoted| quoted.strip_suffix('"'));
    Some(unquoted.unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn seconds(lines: &[&str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(PREFER, HeaderValue::from_str(line).unwrap());
        }
        wait(&headers).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_wait_is_found_among_other_preferences_and_bounded() {
        for (lines, wanted) in [
            (&["wait=30"][..], 30),
            (&["respond-async, wait=10"], 10),
            (&["respond-async", "Wait = 7; x=y"], 7),
            (&["wait=\"5\""], 5),
            (&["wait=1, wait=2"], 1),
            (&["wait=0"], 0),
            (&["wait=61"], 60),
            (&["wait=99999999999999999999999"], 60),
        ] {
            assert_eq!(seconds(lines), Some(wanted), "{lines:?}");
        }
    }

    #[test]
    fn a_minimal_answer_is_asked_for_by_name() {
        for (line, wanted) in [
            ("return=minimal", true),
            ("wait=1, Return=\"minimal\"", true),
            ("return=representation", false),
            ("minimal", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(PREFER, HeaderValue::from_static(line));
            assert_eq!(is_minimal(&headers), wanted, "{line}");
        }
    }

    #[test]
    fn what_is_no_wait_in_seconds_is_ignored() {
        for lines in [
            &[][..],
            &["respond-async"],
            &["wait"],
            &["wait="],
            &["wait=-1"],
            &["wait=+1"],
            &["wait=1.5"],
            &["waiting=3"],
            &["wait=\"3"],
        ] {
            assert_eq!(seconds(lines), None, "{lines:?}");
        }
    }
}
