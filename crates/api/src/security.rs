//! Headers that restrict what browsers may do with an answer.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// On every answer that does not set them itself.
pub(crate) const ALWAYS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
];

/// For results. A browser that opens one builds its own page around it, under the same policy: the
/// player may load the result and apply styles, nothing else.
pub(crate) const MEDIA_POLICY: &str = "default-src 'none'; media-src 'self'; img-src 'self'; style-src 'unsafe-inline'; \
     frame-ancestors 'none'";

/// Adds the missing headers.
pub(crate) fn harden(headers: &mut HeaderMap) {
    for (name, value) in ALWAYS {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}
