//! From a URL to the addresses that may be dialled for it. The judgement is on what the parser
//! made of the host and on every answer of one resolution; the texts are never looked at. One
//! forbidden answer forbids the URL: a name that mixes is a name that plays.

use std::net::{IpAddr, SocketAddr};

use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Url};

use crate::address::{Verdict, judge};
use crate::error::{Cause, FetchError};
use crate::network::Network;
use crate::resolve::Resolve;

/// How many answers of each family are dialled, so that neither hides the other where it has no
/// way out. All are judged.
const FAMILY_ADDRESSES_MAX: usize = 2;

/// Where one hop goes.
#[derive(Debug)]
pub(crate) struct Target {
    /// http or https, with a host and without user information.
    pub(crate) url: Url,
    /// Judged and distinct, at least one, and at most [`FAMILY_ADDRESSES_MAX`] of each family.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Target {
    /// Whose certificate is expected; none for http.
    ///
    /// # Errors
    /// For https and a host that no certificate can name.
    pub(crate) fn tls_name(&self) -> Result<Option<ServerName<'static>>, Cause> {
        if self.url.scheme() == "http" {
            return Ok(None);
        }
        let name = match self.url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address).into()),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address).into()),
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).ok(),
            None => None,
        };
        name.map(Some).ok_or(Cause::TlsName)
    }
}

/// Resolves the host of `url` once and judges every answer.
///
/// # Errors
/// `Forbidden` without any packet sent to the host, `Unreachable` without an address.
pub(crate) async fn aim(
    url: Url,
    resolver: &dyn Resolve,
    allowed: &[Network],
) -> Result<Target, FetchError> {
    let (host, port) = parts(&url)?;
    let answers = match &host {
        Host::Ipv4(address) => vec![IpAddr::V4(*address)],
        Host::Ipv6(address) => vec![IpAddr::V6(*address)],
        Host::Domain(name) => resolver.resolve(name).await.map_err(|source| {
            let host = name.clone();
            FetchError::Unreachable(Cause::Resolve { host, source })
        })?,
    };
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for answer in answers {
        let address = SocketAddr::new(answer, port);
        permit(&host, address, allowed).map_err(FetchError::Forbidden)?;
        let family = addresses
            .iter()
            .filter(|one| one.is_ipv4() == address.is_ipv4());
        if family.count() < FAMILY_ADDRESSES_MAX && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(FetchError::Unreachable(Cause::NoAddress(host.to_string())));
    }
    Ok(Target { url, addresses })
}

/// Host and port of a URL of the only form that is read.
fn parts(url: &Url) -> Result<(Host<String>, u16), FetchError> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme().to_owned();
        return Err(FetchError::Forbidden(Cause::Scheme(scheme)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FetchError::Forbidden(Cause::UserInfo));
    }
    match (url.host(), url.port_or_known_default()) {
        (Some(host), Some(port)) => Ok((host.to_owned(), port)),
        _ => Err(FetchError::Unreachable(Cause::Url(
            url::ParseError::EmptyHost,
        ))),
    }
}

fn permit(host: &Host<String>, address: SocketAddr, allowed: &[Network]) -> Result<(), Cause> {
    // What is dialled for an IPv4-mapped address is the IPv4 one.
    let dialled = address.ip().to_canonical();
    if allowed.iter().any(|network| network.contains(dialled)) {
        return Ok(());
    }
    if let Verdict::Forbidden(reason) = judge(dialled) {
        let host = host.to_string();
        return Err(Cause::Address {
            host,
            address,
            reason,
        });
    }
    // Below 1024 live the protocols that a crafted HTTP request could speak to by accident.
    match address.port() {
        80 | 443 | 1024.. => Ok(()),
        port => Err(Cause::Port(port)),
    }
}
