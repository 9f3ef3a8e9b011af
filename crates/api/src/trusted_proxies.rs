//! The address of a client behind proxies. Only proxies that the operator trusts may name it;
//! anyone can write anything into `X-Forwarded-For`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::HeaderMap;

/// The addresses of the operator's own proxies.
#[derive(Clone)]
pub struct TrustedProxies(Option<Arc<dyn Fn(IpAddr) -> bool + Send + Sync>>);

impl TrustedProxies {
    /// Trusts no proxy: the client is the peer of the connection.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Trusts the addresses for which `trusts` holds; IPv4 addresses arrive in IPv4 form.
    pub fn those(trusts: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(trusts)))
    }

    /// Whether `address` is one of them.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.0
            .as_ref()
            .is_some_and(|trusts| trusts(address.to_canonical()))
    }

    /// The client of a request sent by `peer`: the last address before the trusted proxies. An
    /// unreadable entry ends the search at the proxy that forwarded it.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        let lines = headers.get_all("x-forwarded-for").into_iter();
        let lines: Vec<&str> = lines.map_while(|line| line.to_str().ok()).collect();
        // Each proxy appends the address that it was called from, so the list is read from its end.
        // Example: `198.51.100.7, 203.0.113.9` from a trusted proxy. It was called by 203.0.113.9,
        // whom nobody trusts: that is the client, and what it wrote before its own address means
        // nothing.
        let named = lines.iter().rev().flat_map(|line| line.rsplit(','));
        for text in named {
            let Some(address) = address(text.trim()) else {
                break;
            };
            client = address;
            if !self.trusts(client) {
                break;
            }
        }
        client
    }
}

impl fmt::Debug for TrustedProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = if self.0.is_some() { "some" } else { "none" };
        write!(f, "TrustedProxies({some})")
    }
}

/// An address as proxies write it: bare, in brackets, or with a port.
fn address(text: &str) -> Option<IpAddr> {
    let address = if let Ok(both) = text.parse::<SocketAddr>() {
        both.ip()
    } else if let Some(inner) = text.strip_prefix('[') {
        inner.strip_suffix(']')?.parse().ok()?
    } else {
        text.parse().ok()?
    };
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, lines: &[&str]) -> String {
        let proxies = TrustedProxies::those(|address| address.to_string().starts_with("10."));
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(client("192.0.2.1", &["203.0.113.9"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("::ffff:10.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        let none = TrustedProxies::none();
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", "203.0.113.9".parse().unwrap());
        let peer = "10.0.0.1".parse().unwrap();
        assert_eq!(none.client(peer, &headers), peer);
    }

    #[test]
    fn the_last_untrusted_address_counts_whatever_the_client_wrote_before() {
        for (lines, expected) in [
            (&["198.51.100.7, 203.0.113.9"][..], "203.0.113.9"),
            (&["198.51.100.7, 203.0.113.9, 10.9.9.9"], "203.0.113.9"),
            (&["198.51.100.7", "203.0.113.9, 10.9.9.9"], "203.0.113.9"),
            (&["203.0.113.9:1234"], "203.0.113.9"),
            (&["[2001:db8::1]:1234"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["::ffff:203.0.113.9"], "203.0.113.9"),
            (&["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
            (&["203.0.113.9, nonsense"], "10.0.0.1"),
            (&["203.0.113.9, nonsense, 10.2.2.2"], "10.2.2.2"),
            (&[""], "10.0.0.1"),
            (&[], "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", lines), expected, "{lines:?}");
        }
    }
}
