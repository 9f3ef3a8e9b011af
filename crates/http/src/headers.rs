//! What the headers of an answer mean for the next request: the wait that a server asks for, the target of
//! a redirect, the place of a part in its file. No clock is needed: a date is measured from the `Date` of
//! the same answer.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{CONTENT_RANGE, DATE, HeaderName, LOCATION, RETRY_AFTER};
use url::Url;

/// Maximum wait; longer requests are cut to this.
const WAIT_MAX: Duration = Duration::from_hours(1);

/// The wait of `Retry-After`, in either form (RFC 9110, 10.2.3).
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = text(headers, RETRY_AFTER)?;
    let wait = match value.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds.is_finite() => {
            Duration::from_secs_f64(seconds.min(WAIT_MAX.as_secs_f64()))
        }
        Ok(_) => return None,
        Err(_) => {
            let then = httpdate::parse_http_date(value).ok()?;
            let now = httpdate::parse_http_date(text(headers, DATE)?).ok()?;
            then.duration_since(now).unwrap_or_default()
        }
    };
    Some(wait.min(WAIT_MAX))
}

/// The target of a redirect from `from`: http or https, but never from https to http, where anyone on the way
/// could read the request.
pub fn redirect_target(from: &Url, headers: &HeaderMap) -> Option<Url> {
    let url = from.join(text(headers, LOCATION)?).ok()?;
    let is_safe = match url.scheme() {
        "https" => true,
        scheme => scheme == "http" && from.scheme() == "http",
    };
    is_safe.then_some(url)
}

/// The first byte of a part, and the length of the whole file if the server knows it: `(10, Some(20))` for
/// `content-range: bytes 10-19/20`.
pub fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let range = text(headers, CONTENT_RANGE)?.strip_prefix("bytes ")?;
    let (part, whole) = range.split_once('/')?;
    let (first, _) = part.split_once('-')?;
    Some((first.parse().ok()?, whole.parse().ok()))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (name.parse().unwrap(), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn each_form_of_a_wait_is_understood() {
        for (given, seconds) in [
            (&[("retry-after", "7")][..], 7.0),
            (&[("retry-after", " 0.5 ")], 0.5),
            (
                &[
                    ("retry-after", "Sat, 21 Nov 2026 12:00:30 GMT"),
                    ("date", "Sat, 21 Nov 2026 12:00:00 GMT"),
                ],
                30.0,
            ),
            (
                &[
                    ("retry-after", "Sat, 21 Nov 2026 11:00:00 GMT"),
                    ("date", "Sat, 21 Nov 2026 12:00:00 GMT"),
                ],
                0.0,
            ),
            (&[("retry-after", "99999999999999999999")], 3600.0),
        ] {
            let wait = retry_after(&headers(given));
            assert_eq!(wait, Some(Duration::from_secs_f64(seconds)), "{given:?}");
        }
    }

    #[test]
    fn nonsense_is_no_wait() {
        for value in [
            "",
            "-1",
            "NaN",
            "inf",
            "soon",
            "Sat, 21 Nov 2026 12:00:30 GMT",
        ] {
            assert_eq!(
                retry_after(&headers(&[("retry-after", value)])),
                None,
                "{value}"
            );
        }
    }

    #[test]
    fn a_part_has_its_first_byte_and_perhaps_the_whole_length() {
        let range = |value| content_range(&headers(&[("content-range", value)]));
        assert_eq!(range("bytes 10-19/20"), Some((10, Some(20))));
        assert_eq!(range("bytes 10-19/*"), Some((10, None)));
        for nonsense in ["", "lines 10-19/20", "bytes */20", "bytes 10-19"] {
            assert_eq!(range(nonsense), None, "{nonsense}");
        }
        assert_eq!(content_range(&HeaderMap::new()), None);
    }

    #[test]
    fn a_redirect_never_leaves_https() {
        let to = |from: &str, location: &'static str| {
            let headers = headers(&[("location", location)]);
            redirect_target(&Url::parse(from).unwrap(), &headers).map(String::from)
        };
        assert_eq!(to("http://a/b", "/c").as_deref(), Some("http://a/c"));
        assert!(to("http://a/b", "https://c/d").is_some());
        assert!(to("https://a/b", "https://c/d").is_some());
        for refused in ["http://c/d", "file:///etc/passwd", "https://"] {
            assert_eq!(to("https://a/b", refused), None, "{refused}");
        }
        assert_eq!(to("http://a/b", "file:///etc/passwd"), None);
        let nowhere = redirect_target(&Url::parse("http://a").unwrap(), &HeaderMap::new());
        assert_eq!(nowhere, None);
    }
}
