//! When an upstream wants the next request, from the headers of its answer.

use std::time::Duration;

use hyper::HeaderMap;

/// Maximum wait; longer requests are cut to this.
const HINT_MAX: Duration = Duration::from_hours(1);

/// The wait before the next poll (`openai-poll-after-ms`), otherwise [`retry_after`].
pub fn poll_after(headers: &HeaderMap) -> Option<Duration> {
    milliseconds(headers, "openai-poll-after-ms").or_else(|| retry_after(headers))
}

/// The wait before a refused call may be repeated: `retry-after-ms`, otherwise `Retry-After`.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    milliseconds(headers, "retry-after-ms").or_else(|| kinora_http::retry_after(headers))
}

fn milliseconds(headers: &HeaderMap, name: &str) -> Option<Duration> {
    let value = headers.get(name)?.to_str().ok()?;
    let seconds = value.trim().parse::<f64>().ok()? / 1000.0;
    let is_wish = seconds.is_finite() && seconds >= 0.0;
    is_wish.then(|| Duration::from_secs_f64(seconds.min(HINT_MAX.as_secs_f64())))
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
    fn milliseconds_go_before_seconds() {
        for (given, seconds) in [
            (&[("retry-after", "7")][..], Some(7.0)),
            (
                &[("retry-after-ms", "1500"), ("retry-after", "9")],
                Some(1.5),
            ),
            (
                &[("retry-after-ms", "soon"), ("retry-after", "9")],
                Some(9.0),
            ),
            (&[("retry-after-ms", "-1")], None),
            (&[("retry-after-ms", "1e30")], Some(3600.0)),
            (&[], None),
        ] {
            let wish = retry_after(&headers(given));
            assert_eq!(wish, seconds.map(Duration::from_secs_f64), "{given:?}");
        }
        let both = headers(&[("openai-poll-after-ms", "250"), ("retry-after", "9")]);
        assert_eq!(poll_after(&both), Some(Duration::from_millis(250)));
        assert_eq!(poll_after(&HeaderMap::new()), None);
    }
}
