//! Headers that keep browsers from doing more with an answer than it is meant for.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// On every answer that sets nothing else itself.
pub(crate) const ALWAYS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
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
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}
