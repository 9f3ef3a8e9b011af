//! How long a server asks its client to wait, from the headers of an answer. No clock is needed: a
//! date is measured from the `Date` of the same answer.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{DATE, HeaderName, RETRY_AFTER};

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
}
