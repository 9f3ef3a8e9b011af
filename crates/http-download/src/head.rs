//! What the head of an answer means for the bytes that are present. Decides alone; reads and
//! writes nothing.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, LAST_MODIFIED,
};
use kinora_http::content_range;

use crate::error::DownloadError;

/// The longest wait that a server may ask for.
const ASKED_MAX: Duration = Duration::from_secs(300);

/// The bytes that are present, and the file that they belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldBytes {
    /// Their number.
    pub(crate) length: u64,
    /// The entity tag, or the date, of the server's file when they came.
    pub(crate) validator: Option<String>,
    /// Its length at that time.
    pub(crate) whole: Option<u64>,
}

/// What follows the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyMeaning {
    /// The whole file; its length, if the server announces it.
    Whole(Option<u64>),
    /// The bytes that are missing; the length of the whole file.
    Rest(Option<u64>),
    /// Nothing: all bytes are present.
    Nothing,
}

/// Judges an answer of `origin` to a request for the bytes after those of `held`.
pub(crate) fn evaluate_head(
    status: StatusCode,
    headers: &HeaderMap,
    origin: &str,
    held: &HeldBytes,
) -> Result<BodyMeaning, DownloadError> {
    if let Some(encoding) = text(headers, &CONTENT_ENCODING).filter(|one| *one != "identity") {
        return Err(DownloadError::Answer(format!("it is encoded ({encoding})")));
    }
    match status {
        StatusCode::OK => {
            let length = text(headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok());
            Ok(BodyMeaning::Whole(length))
        }
        StatusCode::PARTIAL_CONTENT => rest(headers, held),
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let whole: Option<u64> = text(headers, &CONTENT_RANGE)
                .and_then(|range| range.strip_prefix("bytes */"))
                .and_then(|whole| whole.parse().ok());
            match whole {
                // Complete but for its check and its name.
                Some(whole) if whole == held.length && held.length > 0 => Ok(BodyMeaning::Nothing),
                _ => Err(DownloadError::Changed),
            }
        }
        status => Err(DownloadError::Status {
            origin: origin.to_owned(),
            status: status.as_u16(),
            retry_after: kinora_http::retry_after(headers).map(|wait| wait.min(ASKED_MAX)),
        }),
    }
}

/// A part must begin with the first missing byte, and belong to the same file as the others.
fn rest(headers: &HeaderMap, held: &HeldBytes) -> Result<BodyMeaning, DownloadError> {
    let Some((first, whole)) = content_range(headers) else {
        let range = text(headers, &CONTENT_RANGE).unwrap_or_default();
        return Err(DownloadError::Answer(format!(
            "'{range}' names no part of a file"
        )));
    };
    let is_other_length = matches!((whole, held.whole), (Some(now), Some(then)) if now != then);
    // Servers exist that ignore If-Range.
    let is_other_file = match (validator(headers), &held.validator) {
        (Some(now), Some(then)) => now != *then,
        _ => false,
    };
    if first != held.length || held.length == 0 || is_other_length || is_other_file {
        return Err(DownloadError::Changed);
    }
    Ok(BodyMeaning::Rest(whole.or(held.whole)))
}

/// The value for `If-Range`: the entity tag, unless it is weak, or else the date of the last
/// change.
pub(crate) fn validator(headers: &HeaderMap) -> Option<String> {
    let tag = text(headers, &ETAG).filter(|tag| tag.starts_with('"'));
    tag.or_else(|| text(headers, &LAST_MODIFIED))
        .map(str::to_owned)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(rows: &[(&'static str, &'static str)]) -> HeaderMap {
        let rows = rows.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        rows.collect()
    }

    fn held() -> HeldBytes {
        HeldBytes {
            length: 10,
            validator: Some("\"a\"".to_owned()),
            whole: Some(20),
        }
    }

    fn judged(
        status: u16,
        rows: &[(&'static str, &'static str)],
    ) -> Result<BodyMeaning, DownloadError> {
        let status = StatusCode::from_u16(status).unwrap();
        evaluate_head(status, &headers(rows), "https://a", &held())
    }

    #[test]
    fn a_part_must_be_the_missing_one_of_the_same_file() {
        for (rows, whole) in [
            (&[("content-range", "bytes 10-19/20")][..], Some(20)),
            (&[("content-range", "bytes 10-19/*")], Some(20)),
            (
                &[("content-range", "bytes 10-19/20"), ("etag", "\"a\"")],
                Some(20),
            ),
        ] {
            assert_eq!(
                judged(206, rows).unwrap(),
                BodyMeaning::Rest(whole),
                "{rows:?}"
            );
        }
        for rows in [
            &[("content-range", "bytes 0-19/20")][..],
            &[("content-range", "bytes 11-19/20")],
            &[("content-range", "bytes 10-29/30")],
            &[("content-range", "bytes 10-19/20"), ("etag", "\"b\"")],
        ] {
            let judged = judged(206, rows);
            assert!(
                matches!(judged, Err(DownloadError::Changed)),
                "{rows:?}: {judged:?}"
            );
        }
        for rows in [&[][..], &[("content-range", "lines 10-19/20")]] {
            let judged = judged(206, rows);
            assert!(matches!(judged, Err(DownloadError::Answer(_))), "{rows:?}");
        }
    }

    #[test]
    fn a_whole_file_has_the_announced_length() {
        let body = judged(200, &[("content-length", "20")]).unwrap();
        assert_eq!(body, BodyMeaning::Whole(Some(20)));
        assert_eq!(judged(200, &[]).unwrap(), BodyMeaning::Whole(None));
        let encoded = judged(200, &[("content-encoding", "gzip")]);
        assert!(matches!(encoded, Err(DownloadError::Answer(_))));
    }

    #[test]
    fn an_unsatisfiable_range_means_complete_or_changed() {
        let complete = judged(416, &[("content-range", "bytes */10")]).unwrap();
        assert_eq!(complete, BodyMeaning::Nothing);
        for rows in [&[][..], &[("content-range", "bytes */5")]] {
            assert!(
                matches!(judged(416, rows), Err(DownloadError::Changed)),
                "{rows:?}"
            );
        }
    }

    #[test]
    fn refusals_keep_their_status_and_their_wait() {
        let refused = judged(503, &[("retry-after", "9")]).unwrap_err();
        assert!(refused.is_transient() && refused.retry_after().is_some());
        for status in [401, 403, 404, 410, 304] {
            assert!(!judged(status, &[]).unwrap_err().is_transient(), "{status}");
        }
    }

    #[test]
    fn weak_tags_validate_nothing() {
        let of = |rows: &[(&'static str, &'static str)]| validator(&headers(rows));
        assert_eq!(of(&[("etag", "\"a\"")]).as_deref(), Some("\"a\""));
        assert_eq!(of(&[("etag", "W/\"a\"")]), None);
        let date = "Sat, 21 Nov 2026 12:00:30 GMT";
        let dated = [("etag", "W/\"a\""), ("last-modified", date)];
        assert_eq!(of(&dated).as_deref(), Some(date));
    }
}
