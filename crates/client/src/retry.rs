//! When to retry a call: after the time that the service asks for, or after doubling waits.

use std::time::Duration;

use hyper::HeaderMap;

const FIRST: Duration = Duration::from_millis(250);
const MAX: Duration = Duration::from_secs(8);
/// The longest wait that the service may ask for; the API documents 120 s.
const ASKED_MAX: Duration = Duration::from_secs(300);

/// The wait before retry number `attempt`, counted from 0: at least the time that the service asked
/// for, otherwise 75 to 125 % of a doubling time, so that many clients do not return at once.
pub(crate) fn wait(attempt: u32, asked: Option<Duration>) -> Duration {
    let doubled = FIRST.saturating_mul(1 << attempt.min(16)).min(MAX);
    let spread = doubled.mul_f64(0.75 + f64::from(random_byte()) / 512.0);
    asked.map_or(spread, |asked| asked.max(spread))
}

/// Without randomness all clients wait equally long, which is harmless.
fn random_byte() -> u8 {
    let mut byte = [128];
    let _ = getrandom::fill(&mut byte);
    byte[0]
}

/// `Retry-After` in seconds, the form that the service sends.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    seconds(number(headers, "retry-after")?)
}

/// `openai-poll-after-ms`: when to poll again.
pub(crate) fn poll_after(headers: &HeaderMap) -> Option<Duration> {
    seconds(number(headers, "openai-poll-after-ms")? / 1000.0)
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

fn seconds(number: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(number).ok()?;
    Some(wait.min(ASKED_MAX))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_obey_the_service() {
        for attempt in 0..40 {
            let middle = FIRST.saturating_mul(1 << attempt.min(16)).min(MAX);
            let wait = wait(attempt, None);
            assert!(
                middle.mul_f64(0.75) <= wait && wait <= middle.mul_f64(1.25),
                "{attempt}: {wait:?}"
            );
        }
        let asked = Duration::from_secs(30);
        assert_eq!(wait(0, Some(asked)), asked);
    }

    #[test]
    fn headers_ask_for_a_wait_and_nonsense_does_not() {
        let asked = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", HeaderValue::from_static(value));
            retry_after(&headers)
        };
        assert_eq!(asked("7"), Some(Duration::from_secs(7)));
        assert_eq!(asked("86400"), Some(ASKED_MAX));
        for nonsense in ["", "-1", "NaN", "soon", "Sat, 21 Nov 2026 12:00:30 GMT"] {
            assert_eq!(asked(nonsense), None, "{nonsense}");
        }
    }
}
