//! The upstreams as an engine of finished films, and the operator's settings of it, whose commented example is
//! in `config.default.toml`. It follows tickets and does not inspect the film.

use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::{Clock, FailureCode, Money, VideoSpec, Warning, WarningCode};
use kinora_engine::places::Places;
use kinora_engine::{
    EngineDescription, EngineError, EngineKind, EngineOutput, FilmEngine, FilmEngineSummary,
    FilmJob, FilmKind, JobControl, KindError, ServerReport, TicketStore, WorkStage,
};
use serde::Deserialize;

use super::calls::RepeatRule;
use super::describe;
use super::dialect::{DialectError, LookupTables, ServerDialect};
use super::encode::{RemoteRequest, RemoteTicket};
use super::error::RemoteError;
use super::options::{RemoteOptions, UpstreamOptions};
use super::remote::{DISK_THREADS, RemoteServers};
use super::run::JobWatcher;
use super::template::Template;
use crate::servers::{
    ExchangeWatcher, KeySource, SettingsError, SystemTimer, chain, check_each_once, key_source,
};

/// Settings of a [`RemoteEngine`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// The configured name, visible to clients.
    pub name: String,
    /// The upstreams' name of the model; `None` lets them choose.
    pub model: Option<String>,
    /// Whether the model has a switch for sound. Without it, sound cannot be requested.
    pub sound: bool,
    /// Whether to accept films that cannot be decoded here.
    pub keeps_undecodable: bool,
    /// Whether to keep films of another size, length or sound than requested. `None`: where each
    /// submit costs money.
    pub keeps_mismatched: Option<bool>,
}

/// An engine whose films come from upstreams.
#[derive(Debug)]
pub struct RemoteEngine {
    remote: RemoteServers,
    description: EngineDescription,
    model: Option<String>,
    sound: bool,
    keeps_undecodable: bool,
    keeps_mismatched: bool,
}

impl RemoteEngine {
    /// An engine that uses `remote`.
    pub fn new(remote: RemoteServers, options: EngineOptions) -> Self {
        let features = remote.dialect().features_with(options.sound);
        let sound = features.audio_output;
        let description = EngineDescription {
            // Unknown, so assume a trained model.
            is_trained: true,
            final_from_video: false,
            name: options.name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features,
        };
        let is_paid = remote.dialect().repeat() == RepeatRule::Never;
        Self {
            keeps_mismatched: options.keeps_mismatched.unwrap_or(is_paid),
            remote,
            description,
            model: options.model,
            sound,
            keeps_undecodable: options.keeps_undecodable,
        }
    }
}

#[async_trait]
impl FilmEngine for RemoteEngine {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn has_sound_switch(&self) -> bool {
        self.sound
    }

    fn warnings(&self, _spec: &VideoSpec) -> Vec<Warning> {
        if self.remote.dialect().names_seed() {
            Vec::new()
        } else {
            vec![WarningCode::SeedIgnored.into()]
        }
    }

    fn keeps_undecodable(&self) -> bool {
        self.keeps_undecodable
    }

    fn keeps_mismatched(&self) -> bool {
        self.keeps_mismatched
    }

    async fn film(&self, job: &FilmJob<'_>) -> Result<(), EngineError> {
        let request = RemoteRequest {
            model: self.model.clone(),
            spec: job.spec.clone(),
            references: job.references.to_vec(),
            audio_switch: self.sound,
            key: job.key.to_owned(),
            avoid: job.control.place.avoided(),
        };
        let mut relay = EventRelay {
            control: job.control,
            tickets: job.tickets,
        };
        let ticket = job.ticket.and_then(read);
        let ran = self
            .remote
            .run(&request, ticket, job.to, &mut relay, job.cancel);
        match ran.await {
            Ok(bytes) => {
                tracing::debug!(bytes, "film received");
                Ok(())
            }
            Err(RemoteError::Cancelled) => Err(EngineError::Cancelled),
            Err(error) => Err(engine_error(&error)),
        }
    }

    fn places(&self) -> Option<&Arc<Places>> {
        Some(self.remote.places())
    }

    fn repeats_failed_jobs(&self) -> bool {
        self.remote.repeats_failed_jobs()
    }

    async fn call_off(&self, ticket: &str) -> Result<(), EngineError> {
        let Some(ticket) = read(ticket) else {
            return Ok(());
        };
        match self.remote.call_off(&ticket).await {
            // If the upstream is no longer configured, there is nobody to call off.
            Ok(()) | Err(RemoteError::Forgotten(_)) => Ok(()),
            Err(error) => Err(engine_error(&error)),
        }
    }

    fn summary(&self) -> Option<FilmEngineSummary> {
        let origins = &self.remote.0.options.result_origins;
        Some(describe::summary(self.remote.dialect(), origins))
    }

    async fn check_spec(&self, spec: &VideoSpec) -> Result<(), EngineError> {
        let request = RemoteRequest {
            model: self.model.clone(),
            spec: spec.clone(),
            references: Vec::new(),
            audio_switch: self.sound,
            key: "check".to_owned(),
            avoid: Vec::new(),
        };
        let encoded = self.remote.encode(&request).await;
        encoded.map(drop).map_err(|error| engine_error(&error))
    }

    async fn ask_servers(&self) -> Vec<ServerReport> {
        let asked = self.remote.ask_all().await.into_iter();
        asked
            .map(|(server, answer)| ServerReport {
                server,
                refusal: answer.err().map(|cause| cause.to_string()),
            })
            .collect()
    }
}

/// Whose failure it is: the job's, unless the upstream gave no reason, its result cannot be read,
/// or it stopped answering.
fn engine_error(error: &RemoteError) -> EngineError {
    let (code, cause) = (error.code(), chain(error));
    match error {
        RemoteError::NoPlace(_) => EngineError::NoPlace(cause),
        RemoteError::Failed {
            code: FailureCode::GenerationFailed | FailureCode::GenerationTimeout,
            ..
        }
        | RemoteError::NoResult(_)
        | RemoteError::Silent { .. }
        | RemoteError::Forgotten(_) => EngineError::JobFailed { code, cause },
        _ => EngineError::CodedFailure { code, cause },
    }
}

/// The ticket of an earlier attempt, unless another kind of engine made it.
fn read(text: &str) -> Option<RemoteTicket> {
    let ticket = serde_json::from_str(text);
    if let Err(error) = &ticket {
        tracing::warn!(%error, "unreadable ticket of an earlier attempt; submitting again");
    }
    ticket.ok()
}

/// Forwards a run's reports to the worker.
struct EventRelay<'a> {
    control: &'a JobControl,
    tickets: &'a dyn TicketStore,
}

#[async_trait]
impl JobWatcher for EventRelay<'_> {
    async fn submitting(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let ticket = serde_json::to_string(&RemoteTicket::in_flight())?;
        self.tickets.store(&ticket).await?;
        self.control.report_submit(true);
        Ok(())
    }

    async fn not_accepted(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let removed = self.tickets.store("").await;
        self.control.report_submit(false);
        removed
    }

    async fn submitted(
        &mut self,
        ticket: &RemoteTicket,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let upstream = &ticket.upstream;
        tracing::info!(upstream, id = ticket.id, "task submitted to upstream");
        let stored = self.tickets.store(&serde_json::to_string(ticket)?).await;
        self.control.report_submit(false);
        stored
    }

    fn placed(&mut self, places: &Arc<Places>, index: usize) {
        self.control.place.set_chosen(places, index);
    }

    fn alive(&mut self, fraction: f64) {
        // A cancel arrives through the job's token.
        let _ = self.control.report(WorkStage::Generating, fraction);
    }

    fn charged(&mut self, charged: Money) {
        tracing::info!(%charged, "upstream charged the task");
        self.control.report_cost(charged);
    }
}

/// A run ends after `silence_seconds`. Its last call may take this much longer.
const LAST_CALL_MAX: Duration = Duration::from_mins(3);

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
    #[serde(default = "poll_milliseconds")]
    poll_milliseconds: u32,
    #[serde(default = "poll_milliseconds_max")]
    poll_milliseconds_max: u32,
    #[serde(default = "silence_seconds")]
    silence_seconds: u32,
    #[serde(default = "run_seconds")]
    run_seconds: u32,
    #[serde(default)]
    retry_failed_jobs: bool,
    /// Read once, so that all parts of the service see the same dialect.
    #[serde(skip)]
    opened: OnceLock<Result<OpenedDialect, DialectError>>,
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

const fn poll_milliseconds() -> u32 {
    2_000
}

const fn poll_milliseconds_max() -> u32 {
    30_000
}

const fn silence_seconds() -> u32 {
    300
}

const fn run_seconds() -> u32 {
    7_200
}

impl EngineKind for RemoteKind {
    fn check(&self, _confined: bool) -> Result<(), KindError> {
        check_each_once(&self.base_urls).map_err(unusable)?;
        self.key()?;
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
        let opened = opened
            .as_ref()
            .map_err(|error| KindError(error.to_string()))?;
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

    fn check_model(&self, dialect: &ServerDialect) -> Result<(), DialectError> {
        let problem = match (dialect.names_model(), self.model.is_empty()) {
            ((_, true), true) => "name it: the dialect has it in its paths",
            ((false, _), false) => "remove it: the dialect never sends it",
            _ => return Ok(()),
        };
        Err(DialectError::Value {
            key: "model".to_owned(),
            problem: problem.to_owned(),
        })
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
        let options = RemoteOptions {
            watcher,
            ..self.options()?
        };
        let remote = RemoteServers::new(options, timer, clock);
        let remote = remote.map_err(|error| KindError(error.to_string()))?;
        let options = EngineOptions {
            name: name.to_owned(),
            model: self.model(),
            sound: self.sound,
            keeps_undecodable: self.undecodable == UnfitFilm::Keep,
            keeps_mismatched: self.mismatched.map(|one| one == UnfitFilm::Keep),
        };
        Ok(RemoteEngine::new(remote, options))
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
        let key = self.key()?;
        // The URL is the name: tickets contain it, and it stays the same when the list changes.
        let upstreams = base_urls
            .iter()
            .map(|url| UpstreamOptions {
                name: url.clone(),
                base_url: url.clone(),
                key: key.clone(),
            })
            .collect();
        Ok(RemoteOptions {
            result_origins: self.result_origins.clone(),
            poll_every: milliseconds(self.poll_milliseconds),
            poll_every_min: milliseconds(self.poll_milliseconds.min(200)),
            poll_every_max: milliseconds(self.poll_milliseconds_max),
            silence_max: seconds(self.silence_seconds),
            run_max: seconds(self.run_seconds),
            retry_failed_jobs: self.retry_failed_jobs,
            model: self.model(),
            ..RemoteOptions::new(dialect.clone(), upstreams)
        })
    }

    fn key(&self) -> Result<KeySource, KindError> {
        key_source(&self.key_file, &self.key_variable).map_err(unusable)
    }
}

fn unusable(error: SettingsError) -> KindError {
    KindError(error.to_string())
}

fn milliseconds(milliseconds: u32) -> Duration {
    Duration::from_millis(milliseconds.into())
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}
