//! The fetch as a whole: hop after hop until there is a body, each hop judged anew, all under one
//! deadline. From one fetch to the next it keeps nothing but counts: connections by host, bytes by
//! project.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hyper::body::{Body, Incoming};
use kinora_contract::Clock;
use kinora_pool::Pool;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::body::{Pace, Saving, save};
use crate::budget::{Budget, Reservation};
use crate::connect::{Connection, Connector, tls};
use crate::error::{Cause, FetchError};
use crate::exchange::{Answer, Head, ask};
use crate::options::{Options, OptionsError};
use crate::patience::Patience;
use crate::policy::Policy;
use crate::resolve::{LookupError, Resolve, SystemResolver};
use crate::surroundings::{Interfaces, Surroundings, SystemInterfaces};
use crate::target::aim;
use crate::turns::{HostKey, Turns};

/// Threads of the runtime that write what is fetched.
pub const DISK_THREADS: usize = 8;

/// What is to be fetched, for whom, and where it goes.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// On whose behalf: look-ups, connections and bytes are shared among projects.
    pub project: &'a str,
    /// As the client gave it.
    pub url: &'a str,
    /// The new file.
    pub to: &'a Path,
    /// The longest file, in bytes.
    pub bytes_max: u64,
}

/// Reads reference URLs into files, any number at a time.
pub struct Fetcher {
    options: Options,
    policy: Policy,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
    turns: Turns,
    budget: Budget,
    disk: Pool,
    clock: Arc<dyn Clock>,
}

impl Fetcher {
    /// A fetcher that asks the operating system for names and interfaces, and measures its patience by `clock`.
    ///
    /// # Errors
    /// When the options cannot be used.
    pub fn new(options: Options, clock: Arc<dyn Clock>) -> Result<Self, OptionsError> {
        let resolver = SystemResolver::new(options.lookup_timeout, clock.clone());
        Self::with(
            options,
            Arc::new(resolver),
            Box::new(SystemInterfaces),
            clock,
        )
    }

    /// A fetcher that asks `resolver`, whose answers are judged like any other's, and takes the
    /// machine to have `interfaces`.
    ///
    /// # Errors
    /// When the options cannot be used.
    pub fn with(
        options: Options,
        resolver: Arc<dyn Resolve>,
        interfaces: Box<dyn Interfaces>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        let policy = Policy::new(
            options.allow_networks.clone(),
            options.deny_networks.clone(),
            Surroundings::new(interfaces, clock.clone()),
        );
        Ok(Self {
            tls: tls(options.extra_roots_pem.as_deref())?,
            turns: Turns::new(options.host_connections_max),
            budget: Budget::new(options.project_bytes_per_hour, clock.clone()),
            disk: Pool::new(DISK_THREADS),
            policy,
            resolver,
            options,
            clock,
        })
    }

    /// Writes what the URL holds to the new file, which is not synced, and returns its length in
    /// bytes. Unless this returns `Ok` there is no such file, also when the future is dropped.
    ///
    /// # Errors
    /// [`FetchError`]; more than `bytes_max` bytes are `TooLarge`, and an existing file is
    /// `Storage` and stays as it is.
    pub async fn fetch(&self, request: &Request<'_>) -> Result<u64, FetchError> {
        let parsed = Url::parse(request.url);
        let mut url = parsed.map_err(|error| FetchError::Unreachable(Cause::Url(error)))?;
        // Nobody is asked for what could not be taken.
        drop(self.reserve(request.project, 1)?);
        let mut patience = Patience::new(&self.options, &self.clock);
        for _ in 0..=self.options.redirects_max {
            let connection = self.reach(&url, request.project, &mut patience).await?;
            let asking = async {
                let asked = ask(&url, connection).await;
                asked.map_err(FetchError::Unreachable)
            };
            let answer: Answer = patience.unsized_time(asking).await?;
            match answer.head(&url)? {
                Head::Elsewhere(next) => url = next,
                Head::Body(body, driver) => {
                    let saved = self.save(request, body, &patience).await;
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
    async fn reach(
        &self,
        url: &Url,
        project: &str,
        patience: &mut Patience,
    ) -> Result<Connection, FetchError> {
        let named = match url.host() {
            Some(Host::Domain(name)) => {
                // With the root's dot it is the same host.
                let key = HostKey::Name(name.trim_end_matches('.').to_owned());
                Some(patience.turn(&self.turns, key, project).await?)
            }
            _ => None,
        };
        let aimed = aim(url.clone(), project, self.resolver.as_ref(), &self.policy);
        // A resolver bounds its own time; whatever it does, it gets no more.
        let limit = self.options.lookup_timeout.saturating_mul(2);
        let target = timeout(limit, aimed).await.unwrap_or_else(|_| {
            let host = url.host_str().unwrap_or_default().to_owned();
            let source = LookupError::TimedOut;
            Err(FetchError::Unreachable(Cause::Resolve { host, source }))
        })?;
        let connector = Connector {
            tls: &self.tls,
            policy: &self.policy,
            turns: &self.turns,
            project,
        };
        let limit = patience.at_most(self.options.connect_timeout);
        let mut connection = connector.connect(&target, limit, patience).await?;
        connection.turns.extend(named);
        Ok(connection)
    }

    /// A body into the file, within the time for its size.
    async fn save(
        &self,
        request: &Request<'_>,
        body: Incoming,
        patience: &Patience,
    ) -> Result<u64, FetchError> {
        let declared = body.size_hint().exact();
        if declared.is_some_and(|bytes| bytes > request.bytes_max) {
            return Err(FetchError::TooLarge);
        }
        let mut reserved = self.reserve(request.project, declared.unwrap_or(request.bytes_max))?;
        let saving = Saving {
            to: request.to,
            bytes_max: request.bytes_max,
            pace: Pace {
                window: self.options.rate_window,
                bytes_min: self.options.rate_min_bytes,
            },
            disk: &self.disk,
            clock: &self.clock,
        };
        let saved = async {
            let mut count = |bytes| reserved.count(bytes);
            Ok(save(body, saving, &mut count).await?)
        };
        let limit = declared.map(|bytes| self.options.time_for(bytes));
        patience.sized_time(limit, saved).await
    }

    fn reserve(&self, project: &str, bytes: u64) -> Result<Reservation, FetchError> {
        let reserved = self.budget.reserve(project, bytes);
        reserved.map_err(|frees_after| FetchError::Later(Cause::Budget { frees_after }))
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
