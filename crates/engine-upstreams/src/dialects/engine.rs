//! The upstreams as an engine of finished films, and the operator's settings of it, whose commented example is
//! in `config.default.toml`. It follows tickets and does not inspect the film.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::{Clock, VideoSpec, Warning, WarningCode};
use kinora_engine::places::Places;
use kinora_engine::{
    EngineDescription, EngineError, EngineKind, EngineOutput, FilmEngine, FilmEngineSummary,
    FilmJob, FilmKind, KindError, ServerReport,
};
use serde::Deserialize;

use super::calls::RepeatRule;
use super::describe;
use super::dialect::{LookupTables, ServerDialect};
use super::encode::{RemoteRequest, RemoteTicket};
use super::options::RemoteOptions;
use super::remote::RemoteServers;
use super::template::Template;
use crate::servers::{
    DISK_THREADS, ExchangeWatcher, LAST_CALL_MAX, ServerOptions, SystemTimer, UpstreamError,
    check_positive, key_source, milliseconds, read_ticket, seconds, setting,
};

/// An engine whose films come from upstreams.
#[derive(Debug)]
pub struct RemoteEngine {
    remote: RemoteServers,
    description: EngineDescription,
}

impl RemoteEngine {
    /// An engine of this name, visible to clients, that uses `remote`.
    pub fn new(remote: RemoteServers, name: &str) -> Self {
        let options = &remote.0.options;
        let description = EngineDescription {
            // Unknown, so assume a trained model.
            is_trained: true,
            final_from_video: false,
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features: options.dialect.features_with(options.sound),
        };
        Self {
            remote,
            description,
        }
    }

    fn options(&self) -> &RemoteOptions {
        &self.remote.0.options
    }

    fn request(&self, spec: &VideoSpec, key: &str) -> RemoteRequest {
        RemoteRequest {
            model: self.options().model.clone(),
            spec: spec.clone(),
            references: Vec::new(),
            audio_switch: self.has_sound_switch(),
            key: key.to_owned(),
            avoid: Vec::new(),
        }
    }
}

#[async_trait]
impl FilmEngine for RemoteEngine {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn has_sound_switch(&self) -> bool {
        self.description.features.audio_output
    }

    fn warnings(&self, _spec: &VideoSpec) -> Vec<Warning> {
        if self.options().dialect.names_seed() {
            Vec::new()
        } else {
            vec![WarningCode::SeedIgnored.into()]
        }
    }

    fn keeps_undecodable(&self) -> bool {
        self.options().keeps_undecodable
    }

    fn keeps_mismatched(&self) -> bool {
        let is_paid = self.options().dialect.repeat() == RepeatRule::Never;
        self.options().keeps_mismatched.unwrap_or(is_paid)
    }

    async fn film(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        let request = RemoteRequest {
            references: job.references.to_vec(),
            avoid: job.control.place.avoided(),
            ..self.request(job.spec, job.key)
        };
        let ticket = job.ticket.and_then(read_ticket);
        let bytes = self.remote.run(&request, ticket, job).await?;
        tracing::debug!(bytes, "film received");
        Ok(())
    }

    fn places(&self) -> Option<&Arc<Places>> {
        Some(&self.remote.0.pool.places)
    }

    /// Not by default where each submit may be charged.
    fn repeats_failed_jobs(&self) -> bool {
        let options = self.options();
        !options.dialect.is_paid() || options.retry_failed_jobs
    }

    async fn call_off(&self, ticket: &str) -> Result<(), EngineError> {
        let Some(ticket) = read_ticket::<RemoteTicket>(ticket) else {
            return Ok(());
        };
        match self.remote.call_off(&ticket).await {
            // If the upstream is no longer configured, there is nobody to call off.
            Ok(()) | Err(UpstreamError::Forgotten(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn summary(&self) -> Option<FilmEngineSummary> {
        let options = self.options();
        Some(describe::summary(&options.dialect, &options.result_origins))
    }

    async fn check_spec(&self, spec: &VideoSpec) -> Result<(), EngineError> {
        let encoded = self.remote.encode(&self.request(spec, "check")).await;
        Ok(encoded.map(drop)?)
    }

    async fn ask_servers(&self) -> Vec<ServerReport> {
        self.remote.ask_all().await
    }
}

/// An engine that other servers provide.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteKind {
    /// A built-in name, or the path of a file.
    dialect: String,
    /// Empty: that of the dialect.
    #[serde(default)]
    base_urls: Vec<String>,
    /// Merged into every submit.
    body: Option<Template>,
    /// Tables for `body`, beside the dialect's.
    #[serde(default)]
    lookup: LookupTables,
    /// Empty: none.
    #[serde(default)]
    key_file: PathBuf,
    /// Empty: none.
    #[serde(default)]
    key_variable: String,
    /// Empty: the upstreams choose.
    #[serde(default)]
    model: String,
    #[serde(default)]
    sound: bool,
    #[serde(default)]
    undecodable: UnfitFilm,
    /// Absent: by dialect.
    #[serde(default)]
    mismatched: Option<UnfitFilm>,
    #[serde(default)]
    result_origins: Vec<String>,
    #[serde(default = "setting::<2_000>")]
    poll_milliseconds: u32,
    #[serde(default = "setting::<30_000>")]
    poll_milliseconds_max: u32,
    #[serde(default = "setting::<300>")]
    silence_seconds: u32,
    #[serde(default = "setting::<7_200>")]
    run_seconds: u32,
    #[serde(default)]
    retry_failed_jobs: bool,
    /// Read once, so that all parts of the service see the same dialect.
    #[serde(skip)]
    opened: OnceLock<Result<OpenedDialect, KindError>>,
}

/// The dialect of an engine, with the servers that speak it.
#[derive(Clone, Debug, PartialEq)]
struct OpenedDialect {
    dialect: Arc<ServerDialect>,
    base_urls: Vec<String>,
}

/// What to do with a film that cannot be decoded here, or does not match the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UnfitFilm {
    /// Fail its task.
    #[default]
    Refuse,
    /// Serve it all the same.
    Keep,
}

impl EngineKind for RemoteKind {
    fn check(&self, _confined: bool) -> Result<(), KindError> {
        ServerOptions::with_urls(&self.base_urls)?;
        key_source(&self.key_file, &self.key_variable)?;
        check_positive(&[
            ("poll_milliseconds", self.poll_milliseconds),
            ("silence_seconds", self.silence_seconds),
            ("run_seconds", self.run_seconds),
        ])?;
        // A file is read when the engine is made: a process that runs no engines need not have it.
        match ServerDialect::path_of(&self.dialect) {
            Some(_) => Ok(()),
            None => self.options().map(drop),
        }
    }

    fn output(&self) -> EngineOutput<'_> {
        EngineOutput::Films(self)
    }

    fn device(&self) -> Option<String> {
        Some("upstream".to_owned())
    }
}

impl FilmKind for RemoteKind {
    fn engine(&self, name: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn FilmEngine>, KindError> {
        Ok(Arc::new(self.watched(name, clock, None)?))
    }

    fn servers(&self) -> &[String] {
        self.opened()
            .map_or(&self.base_urls, |opened| &opened.base_urls)
    }

    fn silence_max(&self) -> Duration {
        seconds(self.silence_seconds) + LAST_CALL_MAX
    }

    fn blocking_threads(&self) -> usize {
        DISK_THREADS
    }
}

impl RemoteKind {
    /// The dialect with the engine's own `body`, and the servers.
    fn opened(&self) -> Result<&OpenedDialect, KindError> {
        let opened = self.opened.get_or_init(|| {
            let mut dialect = ServerDialect::find(&self.dialect)?;
            if let Some(body) = &self.body {
                dialect = Arc::new(dialect.with_body(body, &self.lookup)?);
            }
            self.check_model(&dialect)?;
            let mut base_urls = self.base_urls.clone();
            if base_urls.is_empty() {
                base_urls.extend(dialect.base_url.clone());
            }
            Ok(OpenedDialect { dialect, base_urls })
        });
        let opened = opened.as_ref().map_err(KindError::clone)?;
        if opened.base_urls.is_empty() {
            let dialect = &self.dialect;
            return Err(KindError(format!(
                "base_urls must name a server: the dialect {dialect} has no base_url of its own"
            )));
        }
        Ok(opened)
    }

    fn model(&self) -> Option<String> {
        Some(self.model.clone()).filter(|model| !model.is_empty())
    }

    fn check_model(&self, dialect: &ServerDialect) -> Result<(), KindError> {
        match (dialect.names_model(), self.model.is_empty()) {
            ((_, true), true) => Err("model: name it: the dialect has it in its paths"),
            ((false, _), false) => Err("model: remove it: the dialect never sends it"),
            _ => Ok(()),
        }
        .map_err(|problem| KindError(problem.to_owned()))
    }

    /// The engine, of which `watcher` is shown every exchange.
    ///
    /// # Errors
    /// If the settings are unusable, or a key cannot be read.
    pub fn watched(
        &self,
        name: &str,
        clock: Arc<dyn Clock>,
        watcher: Option<Arc<dyn ExchangeWatcher>>,
    ) -> Result<RemoteEngine, KindError> {
        let timer = Arc::new(SystemTimer::new(clock.clone()));
        let mut options = self.options()?;
        options.servers.watcher = watcher;
        let remote = RemoteServers::new(options, timer, clock)?;
        Ok(RemoteEngine::new(remote, name))
    }

    /// The dialect, with the engine's own `body`.
    ///
    /// # Errors
    /// If it is unknown, cannot be read or cannot be meant.
    pub fn dialect(&self) -> Result<&ServerDialect, KindError> {
        self.opened().map(|opened| &*opened.dialect)
    }

    /// The settings as options of [`RemoteServers`].
    ///
    /// # Errors
    /// If they are unusable.
    pub fn options(&self) -> Result<RemoteOptions, KindError> {
        let OpenedDialect { dialect, base_urls } = self.opened()?;
        let servers = ServerOptions {
            key: key_source(&self.key_file, &self.key_variable)?,
            poll_every: milliseconds(self.poll_milliseconds),
            silence_max: seconds(self.silence_seconds),
            run_max: seconds(self.run_seconds),
            ..ServerOptions::with_urls(base_urls)?
        };
        Ok(RemoteOptions {
            model: self.model(),
            sound: self.sound,
            keeps_undecodable: self.undecodable == UnfitFilm::Keep,
            keeps_mismatched: self.mismatched.map(|one| one == UnfitFilm::Keep),
            result_origins: self.result_origins.clone(),
            poll_every_min: milliseconds(self.poll_milliseconds.min(200)),
            poll_every_max: milliseconds(self.poll_milliseconds_max),
            retry_failed_jobs: self.retry_failed_jobs,
            ..RemoteOptions::new(dialect.clone(), servers)
        })
    }
}
