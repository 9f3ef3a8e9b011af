//! Resolves names to addresses, behind a trait so that tests can fake it. It checks nothing: all
//! answers pass the same policy, whatever their source.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dns_lookup::{AddrInfoHints, LookupErrorKind, getaddrinfo};
use kinora_contract::Clock;
use kinora_http::{BoxError, NameResolver};

use crate::error::is_shortage;
use crate::lookups::LookupPool;
pub use crate::lookups::{LookupError, NameLookup};

/// Called once per hop, and never for a host that is already an address.
#[async_trait]
pub trait ProjectResolver: Send + Sync + Debug {
    /// All addresses of `host`, a domain name in ASCII form, best first, for `project`.
    ///
    /// # Errors
    /// [`LookupError`]. The caller limits the time as well.
    async fn resolve(&self, project: &str, host: &str) -> Result<Vec<IpAddr>, LookupError>;
}

/// The operating system's resolver, on its own threads.
#[derive(Clone, Debug)]
pub struct SystemResolver(LookupPool);

impl SystemResolver {
    /// A resolver whose look-ups may take `timeout`, after waiting up to `timeout` for a thread.
    pub fn new(timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        Self::with_lookup(timeout, Arc::new(GetAddrInfo), clock)
    }

    /// Like [`SystemResolver::new`], with a custom look-up.
    pub fn with_lookup(
        timeout: Duration,
        lookup: Arc<dyn NameLookup>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(LookupPool::new(timeout, lookup, clock))
    }
}

#[async_trait]
impl ProjectResolver for SystemResolver {
    async fn resolve(&self, project: &str, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        self.0.resolve(project, host).await
    }
}

/// For clients that may connect to any address: on the same dedicated threads, so a resolver that hangs delays
/// only the calls that need it. Each host gets a share of the threads, as projects do for references.
impl NameResolver for SystemResolver {
    fn resolve(
        &self,
        host: &str,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, BoxError>> + Send>> {
        let (lookups, host) = (self.0.clone(), host.to_owned());
        Box::pin(async move { Ok(lookups.resolve(&host, &host).await?) })
    }
}

/// `getaddrinfo`, with the system's hosts file, search domains and name services.
#[derive(Debug)]
struct GetAddrInfo;

impl NameLookup for GetAddrInfo {
    fn look_up_blocking(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let hints = AddrInfoHints {
            // Without it, every address appears once per socket type.
            socktype: dns_lookup::SockType::Stream.into(),
            ..AddrInfoHints::default()
        };
        let answers =
            getaddrinfo(Some(host), None, Some(hints)).map_err(|error| match error.kind() {
                LookupErrorKind::NoName | LookupErrorKind::NoData => LookupError::NoSuchName,
                _ => LookupError::Failed(Arc::new(shortage().unwrap_or_else(|| error.into()))),
            })?;
        // Unknown address families cannot be dialled.
        Ok(answers
            .flatten()
            .map(|answer| answer.sockaddr.ip())
            .collect())
    }
}

/// The present lack of descriptors or memory, if there is one: the C library reports it as a name service that fails for a
/// moment.
fn shortage() -> Option<io::Error> {
    File::open("/dev/null").err().filter(is_shortage)
}
