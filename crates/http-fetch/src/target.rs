//! From a URL to the addresses that may be dialled for it. The policy checks the parsed host and
//! every answer of a single resolution, never the text. One forbidden answer forbids the URL: a
//! name that mixes public and private addresses is suspicious.

use std::net::{IpAddr, SocketAddr};

use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Url};

use crate::error::{FetchCause, FetchError, is_shortage};
use crate::policy::AddressPolicy;
use crate::resolve::{LookupError, ProjectResolver};

/// Maximum number of dialled addresses per family, so neither family hides the other if it has no
/// route. All answers are checked.
const FAMILY_ADDRESSES_MAX: usize = 2;

/// The destination of one hop.
#[derive(Debug)]
pub(crate) struct FetchTarget {
    /// http or https, with a host and without user information.
    pub(crate) url: Url,
    /// Permitted and distinct, at least one, at most [`FAMILY_ADDRESSES_MAX`] per family.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl FetchTarget {
    /// The name expected in the certificate; `None` for http.
    ///
    /// # Errors
    /// For https with a host that cannot appear in a certificate.
    pub(crate) fn tls_name(&self) -> Result<Option<ServerName<'static>>, FetchCause> {
        if self.url.scheme() == "http" {
            return Ok(None);
        }
        let name = match self.url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address).into()),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address).into()),
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).ok(),
            None => None,
        };
        name.map(Some).ok_or(FetchCause::TlsName)
    }
}

/// Resolves the host of `url` once, for `project`, and checks every answer.
///
/// # Errors
/// `Forbidden` before any packet is sent to the host; `Unreachable` without an address.
pub(crate) async fn resolve_target(
    url: Url,
    project: &str,
    resolver: &dyn ProjectResolver,
    policy: &AddressPolicy,
) -> Result<FetchTarget, FetchError> {
    let (host, port) = host_and_port(&url)?;
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
        return Err(FetchError::Unreachable(FetchCause::NoAddress(shown)));
    }
    Ok(FetchTarget { url, addresses })
}

fn unresolved(host: &str, source: LookupError) -> FetchError {
    let is_ours = match &source {
        LookupError::Busy => true,
        LookupError::Failed(error) => is_shortage(error),
        LookupError::NoSuchName | LookupError::TimedOut => false,
    };
    let host = host.to_owned();
    let cause = FetchCause::Resolve { host, source };
    if is_ours {
        FetchError::Later(cause)
    } else {
        FetchError::Unreachable(cause)
    }
}

/// Host and port of a URL, if it has the only supported form.
fn host_and_port(url: &Url) -> Result<(Host<String>, u16), FetchError> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme().to_owned();
        return Err(FetchError::Forbidden(FetchCause::Scheme(scheme)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FetchError::Forbidden(FetchCause::UserInfo));
    }
    match (url.host(), url.port_or_known_default()) {
        (Some(host), Some(port)) => Ok((host.to_owned(), port)),
        _ => Err(FetchError::Unreachable(FetchCause::Url(
            url::ParseError::EmptyHost,
        ))),
    }
}
