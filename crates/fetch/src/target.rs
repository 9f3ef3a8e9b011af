//! From a URL to the addresses that may be dialled for it. The judgement is on what the parser
//! made of the host and on every answer of one resolution; the texts are never looked at. One
//! forbidden answer forbids the URL: a name that mixes is a name that plays.

use std::net::{IpAddr, SocketAddr};

use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Url};

use crate::error::{Cause, FetchError};
use crate::policy::Policy;
use crate::resolve::{LookupError, Resolve};

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

/// Resolves the host of `url` once, for `project`, and judges every answer.
///
/// # Errors
/// `Forbidden` without any packet sent to the host, `Unreachable` without an address.
pub(crate) async fn aim(
    url: Url,
    project: &str,
    resolver: &dyn Resolve,
    policy: &Policy,
) -> Result<Target, FetchError> {
    let (host, port) = parts(&url)?;
    let answers = match &host {
        Host::Ipv4(address) => vec![IpAddr::V4(*address)],
        Host::Ipv6(address) => vec![IpAddr::V6(*address)],
        Host::Domain(name) => {
            let answers = resolver.resolve(project, name).await;
            answers.map_err(|source| unresolved(name, source))?
        }
    };
    let shown = host.to_string();
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for answer in answers {
        let address = SocketAddr::new(answer, port);
        policy.permit(&shown, address)?;
        let family = addresses
            .iter()
            .filter(|one| one.is_ipv4() == address.is_ipv4());
        if family.count() < FAMILY_ADDRESSES_MAX && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(FetchError::Unreachable(Cause::NoAddress(shown)));
    }
    Ok(Target { url, addresses })
}

fn unresolved(host: &str, source: LookupError) -> FetchError {
    let is_busy = matches!(source, LookupError::Busy);
    let host = host.to_owned();
    let cause = Cause::Resolve { host, source };
    match is_busy {
        true => FetchError::Later(cause),
        false => FetchError::Unreachable(cause),
    }
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
