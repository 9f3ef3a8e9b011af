//! Conditional requests by entity tag and single byte ranges (RFC 9110, sections 13 and 14).
//! Nothing served here has a modification date, so conditions on dates are ignored; a request for
//! several ranges gets the whole file. The RFC allows both.

use std::ops::Range;

use axum::http::{HeaderMap, HeaderName, header};
use kinora_contract::ErrorCode;

use crate::error::ApiError;

/// Checks `If-Match` and `If-None-Match` against the current tag, quotes included: `"abc"`. Returns
/// whether the client already has the content, which makes the answer a 304.
pub(crate) fn is_known(headers: &HeaderMap, etag: &str) -> Result<bool, ApiError> {
    // In the order of the RFC (9110, section 13.2.2): `If-Match` first, so a client that
    // requires the old content learns that it is gone.
    if headers.contains_key(header::IF_MATCH) && !names(headers, &header::IF_MATCH, etag) {
        let message = "The content does not match 'If-Match'; omit it, or send the current 'ETag'.";
        let code = ErrorCode::PreconditionFailed;
        return Err(ApiError::for_param(code, "If-Match", message));
    }
    Ok(listed(headers, &header::IF_NONE_MATCH)
        .any(|one| one == "*" || one.trim_start_matches("W/") == etag))
}

/// Whether a list of strong validators contains `etag` or is `*`.
pub(crate) fn names(headers: &HeaderMap, name: &HeaderName, etag: &str) -> bool {
    listed(headers, name).any(|one| one == "*" || one == etag)
}

/// The members of a list header, across all of its lines.
pub(crate) fn listed<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).iter();
    let texts = lines.filter_map(|value| value.to_str().ok());
    // No member that we look for contains a comma.
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

/// The part of a file to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// All of it, with 200.
    Whole,
    /// These bytes, with 206.
    Part(Range<u64>),
    /// Nothing: 416.
    Unsatisfiable,
}

/// Parses the header for a file of `length` bytes. Ranges it does not understand are ignored.
pub(crate) fn stretch(header: Option<&str>, length: u64) -> ByteRange {
    let Some(spec) = header.and_then(|text| text.strip_prefix("bytes=")) else {
        return ByteRange::Whole;
    };
    let Some((first, last)) = spec.trim().split_once('-') else {
        return ByteRange::Whole;
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(first) || !is_number(last) {
        return ByteRange::Whole;
    }
    // A number too large for `u64` is past the end of any file.
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    match (first, last) {
        ("", "") => ByteRange::Whole,
        ("", tail) => match number(tail) {
            0 => ByteRange::Unsatisfiable,
            tail => part(length.saturating_sub(tail)..length, length),
        },
        (first, "") => part(number(first)..u64::MAX, length),
        (first, last) if number(first) > number(last) => ByteRange::Whole,
        (first, last) => part(number(first)..number(last).saturating_add(1), length),
    }
}

fn part(wanted: Range<u64>, length: u64) -> ByteRange {
    if wanted.start >= length {
        return ByteRange::Unsatisfiable;
    }
    ByteRange::Part(wanted.start..wanted.end.min(length))
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
            is_known(&headers, "\"a\"").map_err(|refusal| refusal.code())
        };
        let (only, not) = (header::IF_MATCH, header::IF_NONE_MATCH);
        let failed = Err(ErrorCode::PreconditionFailed);
        for (pairs, expected) in [
            (vec![], Ok(false)),
            (vec![(only.clone(), "\"a\"")], Ok(false)),
            (vec![(only.clone(), "*")], Ok(false)),
            (vec![(only.clone(), "\"b\", \"a\"")], Ok(false)),
            (
                vec![(only.clone(), "\"b\""), (only.clone(), "\"a\"")],
                Ok(false),
            ),
            (vec![(only.clone(), "\"b\"")], failed),
            (vec![(only.clone(), "W/\"a\"")], failed),
            (vec![(only.clone(), "")], failed),
            (
                vec![(only.clone(), "\"b\""), (not.clone(), "\"a\"")],
                failed,
            ),
            (vec![(only, "\"a\""), (not.clone(), "\"a\"")], Ok(true)),
            (vec![(not.clone(), "W/\"a\"")], Ok(true)),
            (vec![(not.clone(), "*")], Ok(true)),
            (vec![(not, "\"b\"")], Ok(false)),
        ] {
            assert_eq!(judged(&pairs), expected, "{pairs:?}");
        }
    }
}

#[cfg(test)]
mod range_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_forms_of_the_rfc_are_understood() {
        for (header, expected) in [
            (None, ByteRange::Whole),
            (Some("bytes=0-499"), ByteRange::Part(0..500)),
            (Some("bytes=500-999"), ByteRange::Part(500..1000)),
            (Some("bytes=500-"), ByteRange::Part(500..1000)),
            (Some("bytes=-1"), ByteRange::Part(999..1000)),
            (Some("bytes=-5000"), ByteRange::Part(0..1000)),
            (Some("bytes=999-5000"), ByteRange::Part(999..1000)),
            (Some("bytes=1000-"), ByteRange::Unsatisfiable),
            (
                Some("bytes=99999999999999999999999-"),
                ByteRange::Unsatisfiable,
            ),
            (Some("bytes=-0"), ByteRange::Unsatisfiable),
            (Some("bytes=9-1"), ByteRange::Whole),
            (Some("bytes=0-1,5-6"), ByteRange::Whole),
            (Some("bytes=-"), ByteRange::Whole),
            (Some("bytes=a-b"), ByteRange::Whole),
            (Some("bytes=+1-2"), ByteRange::Whole),
            (Some("chapters=1-2"), ByteRange::Whole),
        ] {
            assert_eq!(stretch(header, 1000), expected, "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_file(header: String, first: u64, last: u64, length in 0_u64..5000) {
            for text in [header, format!("bytes={first}-{last}"), format!("bytes=-{last}")] {
                if let ByteRange::Part(part) = stretch(Some(&text), length) {
                    prop_assert!(part.start < part.end && part.end <= length);
                }
            }
        }
    }
}
