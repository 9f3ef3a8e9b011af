//! Names to addresses, behind an interface so that tests can lie. It judges nothing: every
//! answer goes through the same judgement, whoever gave it.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Asked once per hop, never for a host that is an address already.
#[async_trait]
pub trait Resolve: Send + Sync + Debug {
    /// All addresses of `host`, a domain name in ASCII form, best first.
    ///
    /// # Errors
    /// When there is no answer. The caller bounds the time.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let answers = tokio::net::lookup_host((host, 0)).await?;
        Ok(answers.map(|answer| answer.ip()).collect())
    }
}
