//! A bearer token, and the only origin that may see it.

use std::fmt;

use hyper::header::HeaderValue;
use url::{Host, Origin, Url};

use crate::error::DownloadError;

/// A token for files that a publisher hands out to known accounts. `Debug` does not show it.
#[derive(Clone)]
pub struct OriginToken {
    origin: Origin,
    header: HeaderValue,
}

impl OriginToken {
    /// A token for `origin`, for example `https://hub.example.com`.
    ///
    /// # Errors
    /// [`DownloadError::Options`] if the origin is not https (http is allowed on this machine), or if the
    /// token is empty or has characters that a header cannot contain.
    pub fn new(origin: &str, secret: &str) -> Result<Self, DownloadError> {
        let url = Url::parse(origin).ok().filter(is_safe).ok_or_else(|| {
            DownloadError::Options(format!(
                "'{origin}' is not an origin for a token: write scheme and host, such as https://hub.example.com"
            ))
        })?;
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(DownloadError::Options(
                "the token is empty or not plain ASCII".to_owned(),
            ));
        }
        let header = HeaderValue::try_from(format!("Bearer {secret}"));
        let mut header =
            header.map_err(|_| DownloadError::Options("the token cannot be sent".to_owned()))?;
        header.set_sensitive(true);
        Ok(Self {
            origin: url.origin(),
            header,
        })
    }

    /// The header for a request to `url`, if it may see the token.
    #[must_use]
    pub fn header_for(&self, url: &Url) -> Option<&HeaderValue> {
        (url.origin() == self.origin).then_some(&self.header)
    }
}

/// An origin and nothing else, that nobody can listen to on the way.
fn is_safe(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    let is_bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
    is_bare && (url.scheme() == "https" || url.scheme() == "http" && is_here)
}

impl fmt::Debug for OriginToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.origin.ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_one_origin_and_never_shown() {
        let token = OriginToken::new("https://hub.example.com", "marked-secret").unwrap();
        let shows = |url: &str| token.header_for(&Url::parse(url).unwrap()).is_some();
        assert!(shows("https://hub.example.com/a/b?c"));
        assert!(shows("https://hub.example.com:443/a"));
        for other in [
            "http://hub.example.com/a",
            "https://hub.example.com:8443/a",
            "https://cdn.hub.example.com/a",
            "https://hub.example.com.evil.example/a",
        ] {
            assert!(!shows(other), "{other}");
        }
        let header = token.header_for(&Url::parse("https://hub.example.com").unwrap());
        assert!(!format!("{token:?} {header:?}").contains("marked-secret"));
    }

    #[test]
    fn an_origin_is_encrypted_or_on_this_machine() {
        for origin in [
            "https://a",
            "http://127.0.0.1:1",
            "http://[::1]:1",
            "http://localhost",
        ] {
            OriginToken::new(origin, "x").unwrap();
        }
        for origin in [
            "http://a",
            "https://a/b",
            "https://u@a",
            "https://a?b",
            "ftp://a",
            "a",
            "",
        ] {
            assert!(OriginToken::new(origin, "x").is_err(), "{origin}");
        }
        for secret in ["", "two words", "gr\u{fc}n", "a\nb"] {
            assert!(OriginToken::new("https://a", secret).is_err(), "{secret:?}");
        }
    }
}
