//! How long to wait before the next attempt: as long as the server asks for, or doubling times.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;

const MAX: Duration = Duration::from_secs(60);
/// The longest wait that a server may ask for.
const ASKED_MAX: Duration = Duration::from_secs(300);

/// The wait before retry number `retry`, counted from 0: at least the time that the server asked
/// for, otherwise 75 to 125 % of a time that begins with `first` and doubles.
pub(crate) fn wait(first: Duration, retry: u32, asked: Option<Duration>) -> Duration {
    let doubled = first.saturating_mul(1 << retry.min(16)).min(MAX);
    let spread = doubled.mul_f64(0.75 + f64::from(random_byte()) / 512.0);
    asked.map_or(spread, |asked| asked.max(spread))
}

/// Without randomness all downloads wait equally long, which is harmless.
fn random_byte() -> u8 {
    let mut byte = [128];
    let _ = getrandom::fill(&mut byte);
    byte[0]
}

/// `Retry-After` in seconds; a date is ignored.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    let seconds: u64 = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(ASKED_MAX))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_obey_the_server() {
        let first = Duration::from_secs(1);
        for retry in 0..40 {
            let middle = first.saturating_mul(1 << retry.min(16)).min(MAX);
            let wait = wait(first, retry, None);
            let (least, most) = (middle.mul_f64(0.75), middle.mul_f64(1.25));
            assert!(least <= wait && wait <= most, "{retry}: {wait:?}");
        }
        let asked = Duration::from_secs(100);
        assert_eq!(wait(first, 0, Some(asked)), asked);
    }

    #[test]
    fn a_server_asks_for_whole_seconds_within_a_bound() {
        let asked = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
            retry_after(&headers)
        };
        assert_eq!(asked("7"), Some(Duration::from_secs(7)));
        assert_eq!(asked("86400"), Some(ASKED_MAX));
        for nonsense in ["", "-1", "soon", "Sat, 21 Nov 2026 12:00:30 GMT"] {
            assert_eq!(asked(nonsense), None, "{nonsense}");
        }
    }
}
