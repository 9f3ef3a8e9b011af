//! The operator's settings of an engine that consists of other servers. The commented example in
//! `config.default.toml` shows their defaults.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kinora_contract::Clock;
use kinora_engine::{EngineKind, FilmEngine, FilmKind, KindError, Output};
use kinora_upstream::{KeySource, SettingsError, SystemTimer, check_each_once, key_source};
use serde::Deserialize;

use crate::dialect::Dialect;
use crate::engine::{EngineOptions, RemoteEngine};
use crate::options::{Options, UpstreamOptions};
use crate::remote::{DISK_THREADS, Remote};

/// A run ends after `silence_seconds`. Its last call may take this much longer.
const LAST_CALL_MAX: Duration = Duration::from_mins(3);

/// An engine that other servers provide.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteKind {
    dialect: String,
    base_urls: Vec<String>,
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
    undecodable: Undecodable,
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
}

/// What to do with a film that cannot be decoded here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Undecodable {
    /// Fail its task.
    #[default]
    Refuse,
    /// Serve it unchecked.
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
        self.options().map(drop)
    }

    fn output(&self) -> Output<'_> {
        Output::Films(self)
    }

    fn device(&self) -> Option<String> {
        Some("upstream".to_owned())
    }
}

impl FilmKind for RemoteKind {
    fn engine(&self, name: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn FilmEngine>, KindError> {
        let timer = Arc::new(SystemTimer::new(clock.clone()));
        let remote = Remote::new(self.options()?, timer, clock)
            .map_err(|error| KindError(error.to_string()))?;
        let options = EngineOptions {
            name: name.to_owned(),
            model: Some(self.model.clone()).filter(|model| !model.is_empty()),
            sound: self.sound,
            keeps_undecodable: self.undecodable == Undecodable::Keep,
        };
        Ok(Arc::new(RemoteEngine::new(remote, options)))
    }

    fn servers(&self) -> &[String] {
        &self.base_urls
    }

    fn silence_max(&self) -> Duration {
        seconds(self.silence_seconds) + LAST_CALL_MAX
    }

    fn blocking_threads(&self) -> usize {
        DISK_THREADS
    }
}

impl RemoteKind {
    /// The settings as options of [`Remote`].
    fn options(&self) -> Result<Options, KindError> {
        let Some(dialect) = Dialect::named(&self.dialect) else {
            let known: Vec<&str> = Dialect::ALL.iter().map(|one| one.name).collect();
            return Err(KindError(format!(
                "unknown dialect '{}'; use one of: {}",
                self.dialect,
                known.join(", ")
            )));
        };
        let key = self.key()?;
        // The URL is the name: tickets contain it, and it stays the same when the list changes.
        let upstreams = self
            .base_urls
            .iter()
            .map(|url| UpstreamOptions {
                name: url.clone(),
                base_url: url.clone(),
                key: key.clone(),
            })
            .collect();
        Ok(Options {
            result_origins: self.result_origins.clone(),
            poll_every: milliseconds(self.poll_milliseconds),
            poll_every_min: milliseconds(self.poll_milliseconds.min(200)),
            poll_every_max: milliseconds(self.poll_milliseconds_max),
            silence_max: seconds(self.silence_seconds),
            run_max: seconds(self.run_seconds),
            retry_failed_jobs: self.retry_failed_jobs,
            ..Options::new(dialect, upstreams)
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
