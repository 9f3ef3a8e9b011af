//! Checks the syntax of reference URLs: http or https, a host, no user information, bounded length.
//! The fetch, not this file, checks the addresses that the host resolves to.

use url::Url;

use crate::error::{ErrorCode, RequestRefusal};
use crate::limits::URL_BYTES_MAX;

/// Checks the syntax of `text`, sent as `param`.
///
/// # Errors
/// `invalid_url`; the message never quotes the URL, which may carry a signature.
pub fn check(text: &str, param: &str) -> Result<(), RequestRefusal> {
    let refuse = |message: &str| {
        Err(RequestRefusal::for_param(
            ErrorCode::InvalidUrl,
            param,
            message,
        ))
    };
    if text.len() > URL_BYTES_MAX {
        return refuse(&format!("The URL is longer than {URL_BYTES_MAX} bytes."));
    }
    // Parsers drop tabs and line feeds (https://url.spec.whatwg.org/#concept-basic-url-parser), so a
    // caller who sends them means another URL than the one that would be fetched.
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return refuse("The URL contains white space or control characters.");
    }
    let Ok(url) = Url::parse(text) else {
        return refuse("This is not an absolute URL.");
    };
    if !matches!(url.scheme(), "http" | "https") {
        return refuse("Only http and https URLs are supported.");
    }
    if !url.username().is_empty() || url.password().is_some() || has_user_info(text) {
        return refuse("The URL must not contain user information.");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return refuse("The URL has no host.");
    }
    Ok(())
}

/// Ports that reference URLs may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedPorts {
    named: Vec<u16>,
}

impl AllowedPorts {
    /// The usual ports and those that the operator names.
    pub const fn with_extra(named: Vec<u16>) -> Self {
        Self { named }
    }

    /// Whether `port` may be used with some host. Port 0 never works.
    pub fn contains(&self, port: u16) -> bool {
        port != 0 && (is_usual_port(port) || self.named.contains(&port))
    }
}

/// Whether references on public hosts may use `port`. Ports below 1024 belong to other protocols,
/// which a crafted HTTP request could speak by accident.
pub const fn is_usual_port(port: u16) -> bool {
    matches!(port, 80 | 443 | 1024..)
}

/// Checks the port of the URL `text`, sent as `param`, which has passed [`check`].
///
/// # Errors
/// `invalid_url` for a port that no host may use.
pub fn check_port(text: &str, param: &str, ports: &AllowedPorts) -> Result<(), RequestRefusal> {
    let port = Url::parse(text)
        .ok()
        .and_then(|url| url.port_or_known_default());
    match port {
        Some(port) if !ports.contains(port) => {
            let message = format!("Port {port} is not allowed; use 80, 443 or one from 1024 up.");
            Err(RequestRefusal::for_param(
                ErrorCode::InvalidUrl,
                param,
                message,
            ))
        }
        _ => Ok(()),
    }
}

/// Whether the authority contains an `@`; parsing leaves no trace of an empty user.
fn has_user_info(text: &str) -> bool {
    // By hand, because `https://@host/` parses to a URL without a user. Backslashes count as
    // slashes, as in the parser.
    let after_scheme = text.split_once(':').map_or("", |(_, rest)| rest);
    let authority = after_scheme.trim_start_matches(['/', '\\']);
    let end = authority
        .find(['/', '\\', '?', '#'])
        .unwrap_or(authority.len());
    authority[..end].contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_urls_pass() {
        for good in [
            "https://example.com/a.png",
            "http://example.com:8080/a?b=c#d",
            "HTTPS://EXAMPLE.COM/",
            "http://[2001:db8::1]/x",
            "https://例え.jp/絵.png",
            "https://example.com/@me",
        ] {
            assert_eq!(check(good, "first_frame"), Ok(()), "{good}");
        }
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let long = format!("https://example.com/{}", "a".repeat(URL_BYTES_MAX));
        for wrong in [
            "",
            "example.com/a.png",
            "/a.png",
            "file:///etc/passwd",
            "data:image/png;base64,AA==",
            "ftp://example.com/a",
            "https://",
            "https://user@example.com/",
            "https://:p@example.com/",
            "https://@example.com/",
            "https://a:b@example.com/",
            "https:\\\\@example.com/",
            "https://example.com/a b",
            "https://example.com/\n",
            "java\tscript:alert(1)",
            "http://exa mple.com",
            "http://[::1",
            "http://example.com:99999/",
            &long,
        ] {
            let refusal = check(wrong, "first_frame").unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidUrl, "{wrong}");
            assert_eq!(refusal.param.as_deref(), Some("first_frame"));
        }
    }

    #[test]
    fn a_port_that_is_never_asked_is_refused() {
        let check = |port: u16, ports: &AllowedPorts| {
            let url = format!("http://example.com:{port}/a.png");
            check_port(&url, "first_frame", ports).map_err(|refusal| refusal.code)
        };
        let (usual, named) = (AllowedPorts::default(), AllowedPorts::with_extra(vec![81]));
        for port in [80, 443, 1024, 8080, u16::MAX] {
            assert_eq!(check(port, &usual), Ok(()), "{port}");
        }
        for port in [0, 1, 22, 25, 81, 442, 444, 1023] {
            assert_eq!(check(port, &usual), Err(ErrorCode::InvalidUrl), "{port}");
            assert_eq!(check(port, &named).is_ok(), port == 81, "{port}");
        }
        for url in ["https://example.com/", "http://example.com/"] {
            assert_eq!(check_port(url, "x", &usual), Ok(()));
        }
    }

    #[test]
    fn the_length_limit_is_exact() {
        let base = "https://example.com/";
        let at = format!("{base}{}", "a".repeat(URL_BYTES_MAX - base.len()));
        assert_eq!(check(&at, "x"), Ok(()));
        assert!(check(&format!("{at}a"), "x").is_err());
        let wide = format!("{base}{}", "絵".repeat((URL_BYTES_MAX - base.len()) / 3));
        assert_eq!(check(&wide, "x"), Ok(()));
        assert!(check(&format!("{wide}絵"), "x").is_err());
    }
}
