//! The fetch as a whole: hop after hop until there is a body, each hop judged anew, all under one
//! deadline. It keeps nothing from one fetch to the next.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use url::Url;

use crate::body::{Pace, save};
use crate::connect::{Stream, connect, tls};
use crate::error::{Cause, FetchError};
use crate::exchange::{Answer, Head, ask};
use crate::options::{Options, OptionsError};
use crate::resolve::{Resolve, SystemResolver};
use crate::target::aim;

/// Reads reference URLs into files, any number at a time.
pub struct Fetcher {
    options: Options,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
}

impl Fetcher {
    /// A fetcher that asks the resolver of the operating system.
    ///
    /// # Errors
    /// When the options cannot be used.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        Self::with_resolver(options, Arc::new(SystemResolver))
    }

    /// A fetcher that asks `resolver`, whose answers are judged like any other's.
    ///
    /// # Errors
    /// When the options cannot be used.
    pub fn with_resolver(
        options: Options,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        let tls = tls(options.extra_roots_pem.as_deref())?;
        Ok(Self {
            options,
            resolver,
            tls,
        })
    }

    /// Writes what `url` holds to the new file `to`, which is not synced, and returns its length
    /// in bytes. Unless this returns `Ok` there is no such file, also when the future is dropped.
    ///
    /// # Errors
    /// [`FetchError`]; more than `bytes_max` bytes are `TooLarge`, and an existing `to` is
    /// `Storage` and stays as it is.
    pub async fn fetch(&self, url: &str, to: &Path, bytes_max: u64) -> Result<u64, FetchError> {
        let deadline = Instant::now() + self.options.total_timeout;
        let parsed = Url::parse(url);
        let mut url = parsed.map_err(|error| FetchError::Unreachable(Cause::Url(error)))?;
        for _ in 0..=self.options.redirects_max {
            let stream = self.reach(&url, deadline).await?;
            match within(deadline, self.ask(&url, stream)).await?.head(&url)? {
                Head::Elsewhere(next) => url = next,
                Head::Body(body, driver) => {
                    let pace = Pace {
                        window: self.options.rate_window,
                        bytes_min: self.options.rate_min_bytes,
                    };
                    let saving = async {
                        let saved = save(body, to, bytes_max, pace, &mut |_| {}).await;
                        saved.map_err(FetchError::from)
                    };
                    let saved = within(deadline, saving).await;
                    drop(driver);
                    return saved;
                }
            }
        }
        let redirects_max = self.options.redirects_max;
        Err(FetchError::Unreachable(Cause::Redirects(redirects_max)))
    }

    /// Resolves, judges and connects. Running out of time here is no `Timeout`: a filtered port
    /// must look like a closed one.
    async fn reach(&self, url: &Url, deadline: Instant) -> Result<Stream, FetchError> {
        let deadline = deadline.min(Instant::now() + self.options.connect_timeout);
        let aimed = aim(
            url.clone(),
            self.resolver.as_ref(),
            &self.options.allow_networks,
        );
        let Ok(target) = timeout_at(deadline, aimed).await else {
            let host = url.host_str().unwrap_or_default().to_owned();
            return Err(FetchError::Unreachable(Cause::ConnectTimeout(host)));
        };
        let connected = connect(&target?, &self.tls, deadline).await;
        connected.map_err(FetchError::Unreachable)
    }

    async fn ask(&self, url: &Url, stream: Stream) -> Result<Answer, FetchError> {
        ask(url, stream).await.map_err(FetchError::Unreachable)
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("options", &self.options)
            .field("resolver", &self.resolver)
            .finish_non_exhaustive()
    }
}

/// The outcome of `work`, or `Timeout` once `deadline` has passed.
async fn within<T>(
    deadline: Instant,
    work: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    let over = |_| FetchError::Timeout(Cause::TotalTimeout);
    timeout_at(deadline, work).await.map_err(over)?
}
