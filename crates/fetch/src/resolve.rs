//! Names to addresses, behind an interface so that tests can lie. It judges nothing: every
//! answer goes through the same judgement, whoever gave it.

use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dns_lookup::{AddrInfoHints, LookupErrorKind, getaddrinfo};
use kinora_contract::Clock;

use crate::lookups::Lookups;
pub use crate::lookups::{Lookup, LookupError};

/// Asked once per hop, never for a host that is an address already.
#[async_trait]
pub trait Resolve: Send + Sync + Debug {
    /// All addresses of `host`, a domain name in ASCII form, best first, for `project`.
    ///
    /// # Errors
    /// [`LookupError`]. The caller bounds the time as well.
    async fn resolve(&self, project: &str, host: &str) -> Result<Vec<IpAddr>, LookupError>;
}

/// The resolver of the operating system, on threads of its own.
#[derive(Clone, Debug)]
pub struct SystemResolver(Lookups);

impl SystemResolver {
    /// A resolver whose look-ups may take `timeout`, and wait as long for their turn before that.
    pub fn new(timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        Self::with_lookup(timeout, Arc::new(OfSystem), clock)
    }

    /// The same with another way to look names up.
    pub fn with_lookup(timeout: Duration, lookup: Arc<dyn Lookup>, clock: Arc<dyn Clock>) -> Self {
        Self(Lookups::new(timeout, lookup, clock))
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, project: &str, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        self.0.resolve(project, host).await
    }
}

/// `getaddrinfo`, with the hosts file, search domains and name services that the system has.
#[derive(Debug)]
struct OfSystem;

impl Lookup for OfSystem {
    fn look_up(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let hints = AddrInfoHints {
            // Without it every address comes once for each kind of socket.
            socktype: dns_lookup::SockType::Stream.into(),
            ..AddrInfoHints::default()
        };
        let answers =
            getaddrinfo(Some(host), None, Some(hints)).map_err(|error| match error.kind() {
                LookupErrorKind::NoName | LookupErrorKind::NoData => LookupError::NoSuchName,
                _ => LookupError::Failed(Arc::new(error.into())),
            })?;
        // A family that is not known here is no address to dial.
        Ok(answers
            .flatten()
            .map(|answer| answer.sockaddr.ip())
            .collect())
    }
}
