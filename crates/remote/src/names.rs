//! Upstreams' names to addresses, by the same threads-of-their-own look-ups as references': a
//! resolver that does not answer holds up nothing but the calls that need it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::dns::Name;
use kinora_contract::Clock;
use kinora_fetch::{LookupError, Resolve, SystemResolver};
use tower_service::Service;

/// Looks up the names of one engine's upstreams.
#[derive(Clone, Debug)]
pub(crate) struct Names(SystemResolver);

impl Names {
    /// Look-ups that may take `timeout`.
    pub(crate) fn new(timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        Self(SystemResolver::new(timeout, clock))
    }
}

impl Service<Name> for Names {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = LookupError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LookupError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.0.clone();
        Box::pin(async move {
            // Each upstream has a share of the threads, as projects have of those for references.
            let addresses = resolver.resolve(name.as_str(), name.as_str()).await?;
            // The port is the URL's.
            let sockets = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            Ok(sockets.collect::<Vec<_>>().into_iter())
        })
    }
}
