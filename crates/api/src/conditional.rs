//! Conditional requests by entity tag (RFC 9110, section 13). Nothing served here has a
//! modification date, so conditions on dates are ignored, as the RFC requires.

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kinora_contract::ErrorCode;

use crate::error::ApiError;

/// The outcome of a request's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Send the content.
    Met,
    /// The client already has the content: 304.
    NotModified,
    /// The content is not the one the client expects: 412.
    Failed,
}

impl Condition {
    /// Checks `If-Match` and `If-None-Match` against the current tag, quotes included: `"abc"`.
    pub(crate) fn of(headers: &HeaderMap, etag: &str) -> Self {
        if headers.contains_key(header::IF_MATCH) && !names(headers, &header::IF_MATCH, etag) {
            return Self::Failed;
        }
        let known = listed(headers, &header::IF_NONE_MATCH)
            .any(|one| one == "*" || one.trim_start_matches("W/") == etag);
        if known { Self::NotModified } else { Self::Met }
    }

    /// The answer that replaces the content, if any. The caller adds headers such as `ETag`.
    pub(crate) fn refused(self) -> Option<Response> {
        match self {
            Self::Met => None,
            Self::NotModified => Some(StatusCode::NOT_MODIFIED.into_response()),
            Self::Failed => {
                let message =
                    "The content does not match 'If-Match'; omit it, or send the current 'ETag'.";
                let code = ErrorCode::PreconditionFailed;
                Some(ApiError::of(code, "If-Match", message).into_response())
            }
        }
    }
}

/// Whether a list of strong validators contains `etag` or is `*`.
pub(crate) fn names(headers: &HeaderMap, name: &HeaderName, etag: &str) -> bool {
    listed(headers, name).any(|one| one == "*" || one == etag)
}

/// The members of a list header, across all of its lines.
fn listed<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).iter();
    let texts = lines.filter_map(|value| value.to_str().ok());
    // Our tags contain only hexadecimal digits, so a comma never belongs to one of them.
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn if_match_is_strong_and_goes_before_if_none_match() {
        let judged = |pairs: &[(HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name.clone(), HeaderValue::from_static(value));
            }
            Condition::of(&headers, "\"a\"")
        };
        let (only, not) = (header::IF_MATCH, header::IF_NONE_MATCH);
        for (pairs, expected) in [
            (vec![], Condition::Met),
            (vec![(only.clone(), "\"a\"")], Condition::Met),
            (vec![(only.clone(), "*")], Condition::Met),
            (vec![(only.clone(), "\"b\", \"a\"")], Condition::Met),
            (
                vec![(only.clone(), "\"b\""), (only.clone(), "\"a\"")],
                Condition::Met,
            ),
            (vec![(only.clone(), "\"b\"")], Condition::Failed),
            (vec![(only.clone(), "W/\"a\"")], Condition::Failed),
            (vec![(only.clone(), "")], Condition::Failed),
            (
                vec![(only.clone(), "\"b\""), (not.clone(), "\"a\"")],
                Condition::Failed,
            ),
            (
                vec![(only, "\"a\""), (not.clone(), "\"a\"")],
                Condition::NotModified,
            ),
            (vec![(not.clone(), "W/\"a\"")], Condition::NotModified),
            (vec![(not.clone(), "*")], Condition::NotModified),
            (vec![(not, "\"b\"")], Condition::Met),
        ] {
            assert_eq!(judged(&pairs), expected, "{pairs:?}");
        }
    }
}
