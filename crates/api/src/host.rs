//! Checks the `Host` header (RFC 9112, section 3.2). Nothing here depends on its value, but a proxy
//! in front may, and two servers must not read one request differently.

use std::net::Ipv6Addr;

use axum::http::{HeaderMap, Version, header};
use kinora_contract::ErrorCode;

use crate::error::ApiError;

/// Maximum length of a host name, in bytes (RFC 1035, section 2.3.4).
const NAME_BYTES_MAX: usize = 255;

/// Refuses a request without the one valid `Host` that HTTP/1.1 requires. HTTP/1.0 may omit it.
pub(crate) fn check(version: Version, headers: &HeaderMap) -> Result<(), ApiError> {
    let mut all = headers.get_all(header::HOST).iter();
    let message = match (all.next(), all.next()) {
        (None, _) if version < Version::HTTP_11 => return Ok(()),
        (None, _) => "The request has no 'Host' header; HTTP/1.1 needs one.",
        (Some(_), Some(_)) => "'Host' was sent more than once.",
        (Some(only), None) => match only.to_str() {
            Ok(text) if is_host(text) => return Ok(()),
            _ => "'Host' must be a host name or an IP address, with an optional port.",
        },
    };
    Err(ApiError::of(ErrorCode::InvalidValue, "Host", message).closing())
}

/// Whether `text` is a host with an optional port, as in a URL (RFC 3986, section 3.2.2).
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, port))) => (address.parse::<Ipv6Addr>().is_ok(), port),
        Some(None) => return false,
        None => {
            let end = text.find(':').unwrap_or(text.len());
            let (name, port) = text.split_at(end);
            (is_name(name), port)
        }
    };
    host && is_port(port)
}

/// A name or an IPv4 address. RFC 3986 allows more characters, but names that resolve use only
/// these.
fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte))
}

/// Empty, or a colon followed by an optional number.
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        None => text.is_empty(),
        Some(digits) => {
            let all = digits.bytes().all(|byte| byte.is_ascii_digit());
            all && (digits.is_empty() || digits.parse::<u16>().is_ok())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_urls_are_hosts() {
        for good in [
            "localhost",
            "localhost:8080",
            "Kinora.Example.com.",
            "my_service:80",
            "192.0.2.1:65535",
            "[::1]",
            "[2001:db8::1]:8080",
            "xn--bcher-kva.example",
            "example.com:",
        ] {
            assert!(is_host(good), "{good}");
        }
        let long = "a".repeat(256);
        for bad in [
            "",
            ":80",
            "a b",
            "a,b",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "user@host",
            "http://host",
            "host:80:80",
            "host:65536",
            "host:8o",
            "host:-1",
            "::1",
            "[::1",
            "[::1]x",
            "[::1%eth0]",
            "[localhost]",
            "[]",
            &long,
        ] {
            assert!(!is_host(bad), "{bad}");
        }
    }

    #[test]
    fn http_1_1_needs_one_host_and_http_1_0_none() {
        let headers = |hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, header::HeaderValue::from_static(host));
            }
            headers
        };
        for (version, hosts, good) in [
            (Version::HTTP_11, &["a"][..], true),
            (Version::HTTP_11, &[], false),
            (Version::HTTP_11, &["a", "a"], false),
            (Version::HTTP_11, &["a b"], false),
            (Version::HTTP_10, &[], true),
            (Version::HTTP_10, &["a"], true),
            (Version::HTTP_10, &["a", "b"], false),
        ] {
            let checked = check(version, &headers(hosts));
            assert_eq!(checked.is_ok(), good, "{version:?} {hosts:?}");
        }
    }
}
