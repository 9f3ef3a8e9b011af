//! When an upstream wants the next request, from the headers of its answer. No clock is needed: a
//! `Retry-After` date is measured from the `Date` of the same answer.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{DATE, RETRY_AFTER};

/// Maximum wait; longer requests are cut to this.
const HINT_MAX: Duration = Duration::from_hours(1);

/// The wait before the next poll (`openai-poll-after-ms`), otherwise [`retry_after`].
pub fn poll_after(headers: &HeaderMap) -> Option<Duration> {
    milliseconds(headers, "openai-poll-after-ms").or_else(|| retry_after(headers))
}

/// The wait before a refused call may be repeated: `retry-after-ms`, otherwise `Retry-After` in
/// either form (RFC 9110, 10.2.3).
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    milliseconds(headers, "retry-after-ms").or_else(|| {
        let value = text(headers, RETRY_AFTER.as_str())?;
        let wish = match value.parse::<f64>() {
            Ok(seconds) => return bounded(seconds),
            Err(_) => {
                let then = httpdate::parse_http_date(value).ok()?;
                let now = httpdate::parse_http_date(text(headers, DATE.as_str())?).ok()?;
                then.duration_since(now).unwrap_or_default()
            }
        };
        Some(wish.min(HINT_MAX))
    })
}

fn milliseconds(headers: &HeaderMap, name: &str) -> Option<Duration> {
    bounded(text(headers, name)?.parse::<f64>().ok()? / 1000.0)
}

fn bounded(seconds: f64) -> Option<Duration> {
    let is_wish = seconds.is_finite() && seconds >= 0.0;
    is_wish.then(|| Duration::from_secs_f64(seconds.min(HINT_MAX.as_secs_f64())))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
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
    fn each_form_of_a_wish_is_understood() {
        for (given, seconds) in [
            (&[("retry-after", "7")][..], 7.0),
            (&[("retry-after", " 0.5 ")], 0.5),
            (&[("retry-after-ms", "1500"), ("retry-after", "9")], 1.5),
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
            let wish = retry_after(&headers(given));
            assert_eq!(wish, Some(Duration::from_secs_f64(seconds)), "{given:?}");
        }
        let both = headers(&[("openai-poll-after-ms", "250"), ("retry-after", "9")]);
        assert_eq!(poll_after(&both), Some(Duration::from_millis(250)));
    }

    #[test]
    fn nonsense_is_no_wish() {
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
        assert_eq!(poll_after(&HeaderMap::new()), None);
    }
}
