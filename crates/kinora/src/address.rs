//! The address that the service listens on, and the URL under which clients reach it. Mistakes are
//! refused with what to write instead.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use serde::Deserialize;
use url::Url;

use crate::failure::Failure;

/// An address to listen on: an IP address or a host name, and a port. A name is resolved when the
/// service starts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ListenAddress {
    host: ListenHost,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ListenHost {
    Address(IpAddr),
    Name(String),
}

impl ListenAddress {
    /// The address to bind: the first address of a name, IPv4 before IPv6.
    pub(crate) fn resolve(&self) -> Result<SocketAddr, Failure> {
        let name = match &self.host {
            ListenHost::Address(address) => return Ok((*address, self.port).into()),
            ListenHost::Name(name) => name,
        };
        let found = (name.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| {
                Failure::because(format!("The name in '{self}' does not resolve"), error)
            })?;
        found
            // `localhost` often resolves to ::1 first, where clients that are configured with
            // 127.0.0.1 would find nobody.
            .min_by_key(SocketAddr::is_ipv6)
            .ok_or_else(|| Failure::new(format!("The name in '{self}' has no address.")))
    }

    /// Whether the address is that of all interfaces, such as 0.0.0.0, which names no host.
    pub(crate) fn is_unspecified(&self) -> bool {
        matches!(self.host, ListenHost::Address(address) if address.is_unspecified())
    }

    /// The authority that clients on this machine use, when it is bound to `bound`.
    pub(crate) fn authority(&self, bound: SocketAddr) -> String {
        match &self.host {
            ListenHost::Address(address) if address.is_unspecified() => {
                format!("localhost:{}", bound.port())
            }
            ListenHost::Address(_) => bound.to_string(),
            ListenHost::Name(name) => format!("{name}:{}", bound.port()),
        }
    }
}

/// An address to listen on, or none (empty text).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct OptionalAddress(pub(crate) Option<ListenAddress>);

impl TryFrom<String> for OptionalAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        text.parse().map(Some).map(Self)
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self {
            host: ListenHost::Address(address.ip()),
            port: address.port(),
        }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The standard parser answers only "invalid socket address syntax". This is the flag that
        // is mistyped most, so each usual mistake gets a sentence with what to write instead.
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let wrong = |why: &str| Err(format!("'{text}' {why}"));
        if text.contains('/') {
            return wrong("is not a listen address: omit scheme and path, as in 127.0.0.1:8080");
        }
        if text
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_ipv6())
        {
            return wrong("needs brackets and a port, as in [::1]:8080");
        }
        let Some((host, port)) = text.rsplit_once(':') else {
            return match text.parse::<u16>() {
                Ok(_) => {
                    wrong("is only a port: write 127.0.0.1:8080, or 0.0.0.0:8080 for all addresses")
                }
                Err(_) => wrong("names no port: write it after the host, as in localhost:8080"),
            };
        };
        if host.is_empty() {
            return wrong("names no host: write 127.0.0.1:8080, or 0.0.0.0:8080 for all addresses");
        }
        if host.contains(':') && !host.starts_with('[') {
            return wrong("needs brackets around its IPv6 address, as in [::1]:8080");
        }
        let Ok(port) = port.parse() else {
            return wrong("has no port from 0 to 65535 after its last colon");
        };
        // Only digits and dots: an IP address or a mistake, never a name.
        let is_name = host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
            && host.chars().any(|c| c.is_ascii_alphabetic());
        if !is_name {
            return wrong("does not begin with an IP address or a host name");
        }
        Ok(Self {
            host: ListenHost::Name(host.to_owned()),
            port,
        })
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|error| format!("listen: {error}"))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            ListenHost::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
            ListenHost::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// Checks the base of result URLs; empty means derived from the listen address.
///
/// # Errors
/// If it is not an absolute http or https URL with a host, or has parts that a path cannot follow.
pub(crate) fn check_base_url(text: &str) -> Result<(), Failure> {
    let wrong = |why: &str| {
        Err(Failure::new(format!(
            "The setting base_url {why}; it is what clients reach the service by, as in \
             https://video.example.com, and is '{}'.",
            text.escape_debug()
        )))
    };
    if text.is_empty() {
        return Ok(());
    }
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return wrong("must begin with http:// or https://");
    }
    // The parser drops or encodes these, but the text is used unchanged.
    if !text.chars().all(|c| c.is_ascii_graphic() && c != '\\') {
        return wrong("must be ASCII without spaces");
    }
    let Ok(url) = Url::parse(text) else {
        return wrong("must name a host");
    };
    // The parser reads `http:///path` as the host `path`.
    if text.split('/').nth(2).is_none_or(str::is_empty) {
        return wrong("must name a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Failure::new(
            "The setting base_url must not contain a user name or password: clients see it.",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("must have no query (?) and no fragment (#)");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ip_address_or_a_name_with_a_port() {
        for (text, bound, authority) in [
            ("127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1:8080"),
            ("0.0.0.0:80", "0.0.0.0:80", "localhost:80"),
            ("[::]:80", "[::]:80", "localhost:80"),
            ("[::1]:0", "[::1]:0", "[::1]:0"),
            ("localhost:8080", "127.0.0.1:8080", "localhost:8080"),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            let resolved = address.resolve().unwrap();
            assert_eq!(resolved, bound.parse().unwrap(), "{text}");
            assert_eq!(address.authority(resolved), authority);
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_to_write() {
        for (text, named) in [
            (":8080", "0.0.0.0:8080"),
            ("8080", "only a port"),
            ("localhost", "no port"),
            ("everywhere", "no port"),
            ("[::1]", "port"),
            ("::1", "[::1]:8080"),
            ("fe80::1:2:99999", "brackets"),
            ("localhost:", "no port from"),
            ("localhost:99999", "65535"),
            ("localhost:-1", "65535"),
            ("http://localhost:8080", "scheme"),
            ("*:8080", "does not begin"),
            ("127.0.0:8080", "does not begin"),
            ("256.0.0.1:8080", "does not begin"),
            ("[::1%lo:8080", "does not begin"),
            ("a b:8080", "does not begin"),
            ("", "no port"),
        ] {
            let error = text.parse::<ListenAddress>().unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn an_unknown_name_is_named() {
        let address: ListenAddress = "no-such-host.invalid:80".parse().unwrap();
        let error = address.resolve().unwrap_err().to_string();
        assert!(error.contains("no-such-host.invalid:80"), "{error}");
    }

    #[test]
    fn a_base_url_is_where_clients_find_the_service() {
        for good in [
            "",
            "http://localhost:8080",
            "https://video.example.com",
            "https://example.com/video/",
            "http://[::1]:8080",
        ] {
            check_base_url(good).unwrap();
        }
        for (wrong, named) in [
            ("video.example.com", "must begin with"),
            ("ftp://example.com", "must begin with"),
            ("http:example.com", "must begin with"),
            ("http://", "host"),
            ("https:///path", "host"),
            ("http://:8080", "host"),
            ("http://a:99999", "host"),
            ("https://example.com?x=1", "query"),
            ("https://example.com/#top", "fragment"),
            ("https://example.com/?", "query"),
            ("https://me:secret@example.com", "password"),
            ("https://me@example.com", "user name"),
            ("https://example.com/a b", "spaces"),
            ("https://example.com\n", "spaces"),
            ("https://exa\\mple.com", "spaces"),
        ] {
            let error = check_base_url(wrong).unwrap_err().to_string();
            assert!(error.contains(named), "{wrong}: {error}");
            assert!(
                error.contains("base_url") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
