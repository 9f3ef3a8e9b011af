//! Headers that keep browsers from doing more with an answer than it is meant for.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// On every answer that sets nothing else itself.
pub(crate) const ALWAYS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    (
        "content-security-policy",
        "default-src 'none'; frame-ancestors 'none'",
    ),
];

/// For results. A browser that opens one makes a page of its own around it, whose player is
/// bound by the same policy: it may load the result itself and be laid out, nothing else.
pub(crate) const MEDIA_POLICY: &str = "default-src 'none'; media-src 'self'; img-src 'self'; style-src 'unsafe-inline'; \
     frame-ancestors 'none'";

/// Adds what is missing.
pub(crate) fn harden(headers: &mut HeaderMap) {
    for (name, value) in ALWAYS {
        headers
            .entry(HeaderName::from_static(name))
            .or_insert(HeaderValue::from_static(value));
    }
}
