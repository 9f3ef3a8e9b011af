//! The service with stores that fail: `KINORA_FAULT_PPM` asks for so many failing calls per
//! million, and the client then repeats what a failing store refused, as clients should.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ureq::http::request::Parts;
use ureq::http::{HeaderName, HeaderValue, Method};

use crate::process::Finished;
use crate::reply::Reply;

/// What was asked for, if anything.
pub(crate) fn ppm() -> Option<&'static str> {
    static PPM: OnceLock<Option<String>> = OnceLock::new();
    PPM.get_or_init(|| std::env::var("KINORA_FAULT_PPM").ok())
        .as_deref()
}

/// Whether the stores of services fail on purpose: then the client may have sent a request more than once.
pub fn stores_fail() -> bool {
    ppm().is_some()
}

/// Whether something was asked for once. A store that fails to keep it has it asked for again.
pub fn is_once(asked: usize) -> bool {
    asked == 1 || asked > 1 && stores_fail()
}

/// The variables of a service whose stores fail; each service fails at other calls.
pub(crate) fn variables() -> Option<[(&'static str, String); 2]> {
    static SEED: AtomicU64 = AtomicU64::new(1);
    let seed = SEED.fetch_add(2, Ordering::Relaxed).to_string();
    Some([("FAULT_PPM", ppm()?.to_owned()), ("FAULT_SEED", seed)])
}

/// A submit without an idempotency key gets one, so that it may be repeated.
pub(crate) fn make_repeatable(head: &mut Parts) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    const KEY: HeaderName = HeaderName::from_static("idempotency-key");
    let submits = head.method == Method::POST && !head.uri.path().ends_with("/cancel");
    if submits && !head.headers.contains_key(KEY) {
        let key = format!("repeatable-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        head.headers
            .insert(KEY, HeaderValue::try_from(key).unwrap());
    }
}

/// Whether a failing store was all that was wrong.
pub(crate) fn caused(reply: &Reply) -> bool {
    // The answer to a HEAD has no body that would say why.
    let says_why = || reply.assert_envelope()["code"] == "storage_unavailable";
    reply.status == 503 && (reply.body.is_empty() || says_why())
}

/// Whether a store that failed on purpose was what ended the service.
pub(crate) fn ended(service: &Finished) -> bool {
    explain(&service.stderr)
}

/// Whether a store that failed on purpose explains these words.
pub(crate) fn explain(words: &str) -> bool {
    ppm().is_some() && words.contains("an injected fault")
}
