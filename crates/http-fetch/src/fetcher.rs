//! The whole fetch: it follows redirects until there is a body, checks each hop anew, and keeps one
//! deadline. Between fetches it stores only counts: connections per host and bytes per project.

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use kinora_contract::Clock;
use kinora_system::pool::BlockingPool;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::body::{MinimumPace, SaveTarget, save};
use crate::budget::{ByteBudget, ByteReservation};
use crate::coding::ContentCoding;
use crate::connect::{CountedConnection, PeerConnector, tls};
use crate::error::{FetchCause, FetchError};
use crate::exchange::{HeadOutcome, HostAnswer, ask, get, post};
use crate::options::{FetchOptions, FetchOptionsError};
use crate::patience::FetchTimer;
use crate::policy::AddressPolicy;
use crate::resolve::{LookupError, ProjectResolver, SystemResolver};
use crate::surroundings::{InterfaceSource, LocalNetworks, SystemInterfaces};
use crate::target::resolve_target;
use crate::turns::{HostKey, HostTurns};

/// Number of runtime threads that write fetched files.
pub const DISK_THREADS: usize = 8;

/// A file to fetch, its project, and its destination.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceRequest<'a> {
    /// The project that pays for it: projects share look-ups, connections and bytes fairly.
    pub project: &'a str,
    /// The URL as the client sent it.
    pub url: &'a str,
    /// The new file.
    pub to: &'a Path,
    /// Maximum length of the file, in bytes.
    pub bytes_max: u64,
    /// Whether these first bytes are of a file of the wanted kind, whatever coding the host names.
    pub is_plain: fn(&[u8]) -> bool,
}

/// A post to a webhook.
#[derive(Clone, Debug)]
pub struct WebhookPost<'a> {
    /// The project that pays for it: projects share look-ups and connections fairly.
    pub project: &'a str,
    /// The webhook.
    pub url: &'a str,
    /// Headers besides those of every request: lower-case names and values.
    pub headers: &'a [(&'static str, &'a str)],
    /// The body.
    pub body: Bytes,
    /// Maximum time from the wait for a turn to the head of the answer.
    pub limit: Duration,
}

/// Fetches reference URLs into files, any number at a time.
pub struct ReferenceFetcher {
    options: FetchOptions,
    policy: AddressPolicy,
    resolver: Arc<dyn ProjectResolver>,
    tls: TlsConnector,
    turns: HostTurns,
    budget: ByteBudget,
    disk: BlockingPool,
    clock: Arc<dyn Clock>,
}

impl ReferenceFetcher {
    /// A fetcher that uses the operating system's resolver and interfaces, and measures time by
    /// `clock`.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn new(options: FetchOptions, clock: Arc<dyn Clock>) -> Result<Self, FetchOptionsError> {
        let resolver = SystemResolver::new(options.lookup_timeout, clock.clone());
        Self::with(
            options,
            Arc::new(resolver),
            Box::new(SystemInterfaces),
            clock,
        )
    }

    /// A fetcher with a custom `resolver`, whose answers are checked like any other's, and custom
    /// `interfaces`.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn with(
        options: FetchOptions,
        resolver: Arc<dyn ProjectResolver>,
        interfaces: Box<dyn InterfaceSource>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, FetchOptionsError> {
        options.check()?;
        let policy = AddressPolicy::new(
            options.allow_networks.clone(),
            options.deny_networks.clone(),
            LocalNetworks::new(interfaces, clock.clone()),
        );
        Ok(Self {
            tls: tls(options.extra_roots_pem.as_deref())?,
            turns: HostTurns::new(options.host_connections_max),
            budget: ByteBudget::new(options.project_bytes_per_hour, clock.clone()),
            disk: BlockingPool::new(DISK_THREADS),
            policy,
            resolver,
            options,
            clock,
        })
    }

    /// Saves the file at the URL to a new file, without syncing it, and returns its length in
    /// bytes. Unless this returns `Ok` there is no such file, even if the future is dropped.
    ///
    /// # Errors
    /// [`FetchError`]; more than `bytes_max` bytes are `TooLarge`; an existing file is `Storage`
    /// and stays unchanged.
    pub async fn fetch(&self, request: &ReferenceRequest<'_>) -> Result<u64, FetchError> {
        let parsed = Url::parse(request.url);
        let mut url = parsed.map_err(|error| FetchError::Unreachable(FetchCause::Url(error)))?;
        // Without any budget left there is no point in connecting.
        drop(self.reserve(request.project, 1)?);
        let mut patience = FetchTimer::new(&self.options, &self.clock);
        for _ in 0..=self.options.redirects_max {
            let connection = self.reach(&url, request.project, &mut patience).await?;
            let asking = async {
                let asked = ask(get(&url), connection).await;
                asked.map_err(FetchError::Unreachable)
            };
            let answer: HostAnswer = patience.unsized_time(asking).await?;
            match answer.head(&url)? {
                HeadOutcome::Elsewhere(next) => url = next,
                HeadOutcome::Body(body, coding, driver) => {
                    let saved = self.save(request, body, coding, &patience).await;
                    drop(driver);
                    return saved;
                }
            }
        }
        let redirects_max = self.options.redirects_max;
        Err(FetchError::Unreachable(FetchCause::Redirects(
            redirects_max,
        )))
    }

    /// Posts to a webhook, and returns the status of the answer, without reading its body.
    /// Redirects count as answers. The body counts towards the bytes that the project may transfer
    /// in an hour.
    ///
    /// # Errors
    /// [`FetchError`] if there is no answer.
    pub async fn post(&self, message: WebhookPost<'_>) -> Result<u16, FetchError> {
        let parsed = Url::parse(message.url);
        let url = parsed.map_err(|error| FetchError::Unreachable(FetchCause::Url(error)))?;
        let posted = async {
            let mut patience = FetchTimer::new(&self.options, &self.clock);
            let project = message.project;
            let bytes = u64::try_from(message.body.len()).unwrap_or(u64::MAX);
            let mut reserved = self.reserve(project, bytes)?;
            let connection = self.reach(&url, project, &mut patience).await?;
            reserved.count(bytes);
            let asked = ask(post(&url, message.headers, message.body), connection).await;
            Ok(asked.map_err(FetchError::Unreachable)?.status())
        };
        let answered = timeout(message.limit, posted).await;
        answered.unwrap_or(Err(FetchError::Timeout(FetchCause::TotalTimeout)))
    }

    /// Resolves, checks and connects. A timeout here is not `Timeout`: a filtered port must look
    /// like a closed one.
    ///
    /// Boxed, so that only this crate compiles it: each crate that polls the future of an `async fn` compiles its body.
    fn reach<'a>(
        &'a self,
        url: &'a Url,
        project: &'a str,
        patience: &'a mut FetchTimer,
    ) -> Pin<Box<dyn Future<Output = Result<CountedConnection, FetchError>> + Send + 'a>> {
        Box::pin(self.connect(url, project, patience))
    }

    async fn connect(
        &self,
        url: &Url,
        project: &str,
        patience: &mut FetchTimer,
    ) -> Result<CountedConnection, FetchError> {
        let named = match url.host() {
            Some(Host::Domain(name)) => {
                // A trailing dot names the same host.
                let key = HostKey::Name(name.trim_end_matches('.').to_owned());
                Some(patience.turn(&self.turns, key, project).await?)
            }
            _ => None,
        };
        let aimed = resolve_target(url.clone(), project, self.resolver.as_ref(), &self.policy);
        // Resolvers limit their own time; this is the backstop.
        let limit = self.options.lookup_timeout.saturating_mul(2);
        let target = timeout(limit, aimed).await.unwrap_or_else(|_| {
            let host = url.host_str().unwrap_or_default().to_owned();
            let source = LookupError::TimedOut;
            Err(FetchError::Unreachable(FetchCause::Resolve {
                host,
                source,
            }))
        })?;
        let connector = PeerConnector {
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

    /// Saves the body, within the time allowed for its size.
    async fn save(
        &self,
        request: &ReferenceRequest<'_>,
        body: Incoming,
        coding: ContentCoding,
        patience: &FetchTimer,
    ) -> Result<u64, FetchError> {
        let declared = body.size_hint().exact();
        if declared.is_some_and(|bytes| bytes > request.bytes_max) {
            return Err(FetchError::TooLarge);
        }
        let mut reserved = self.reserve(request.project, declared.unwrap_or(request.bytes_max))?;
        let saving = SaveTarget {
            to: request.to,
            bytes_max: request.bytes_max,
            coding,
            is_plain: request.is_plain,
            pace: MinimumPace {
                window: self.options.rate_window,
                bytes_min: self.options.rate_min_bytes,
            },
            disk: &self.disk,
            clock: &self.clock,
        };
        let saved = async {
            let mut received = 0;
            let mut count = |bytes| {
                received += bytes;
                reserved.count(bytes);
            };
            let saved = save(body, saving, &mut count).await;
            saved.map_err(|error| FetchError::from_save(error, received, declared))
        };
        let limit = declared.map(|bytes| self.options.time_for(bytes));
        patience.sized_time(limit, saved).await
    }

    fn reserve(&self, project: &str, bytes: u64) -> Result<ByteReservation, FetchError> {
        let reserved = self.budget.reserve(project, bytes);
        reserved.map_err(|frees_after| FetchError::Later(FetchCause::Budget { frees_after }))
    }
}

impl fmt::Debug for ReferenceFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("options", &self.options)
            .field("resolver", &self.resolver)
            .finish_non_exhaustive()
    }
}
