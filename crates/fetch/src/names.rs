//! Resolves names for HTTP clients that may connect to any address, on the same dedicated threads
//! as those of references, so a resolver that hangs delays only the calls that need it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::dns::Name;
use kinora_contract::Clock;
use tower_service::Service;

use crate::resolve::{LookupError, Resolve, SystemResolver};

/// Resolves names for a client of `hyper-util`.
#[derive(Clone, Debug)]
pub struct Names(SystemResolver);

impl Names {
    /// A resolver whose look-ups may take `timeout`.
    pub fn new(timeout: Duration, clock: Arc<dyn Clock>) -> Self {
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
            // Each host gets a share of the threads, as projects do for references.
            let addresses = resolver.resolve(name.as_str(), name.as_str()).await?;
            // The port comes from the URL.
            let sockets = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            Ok(sockets.collect::<Vec<_>>().into_iter())
        })
    }
}
