//! The settings of an engine that other servers are. What a table leaves out has the defaults of this
//! file, which the commented example tells.

use std::path::PathBuf;
use std::time::Duration;

use kinora_remote::{Dialect, KeySource, Options, UpstreamOptions};
use serde::Deserialize;

use super::wrong;
use crate::failure::Failure;

/// One engine that is served by other servers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remote {
    pub(crate) name: String,
    pub(crate) dialect: String,
    pub(crate) base_urls: Vec<String>,
    /// Empty: none.
    #[serde(default)]
    pub(crate) key_file: PathBuf,
    /// Empty: none.
    #[serde(default)]
    pub(crate) key_variable: String,
    /// Empty: the upstreams choose.
    #[serde(default)]
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) sound: bool,
    #[serde(default)]
    pub(crate) undecodable: Undecodable,
    #[serde(default)]
    pub(crate) result_origins: Vec<String>,
    #[serde(default = "Remote::poll_milliseconds")]
    pub(crate) poll_milliseconds: u32,
    #[serde(default = "Remote::poll_milliseconds_max")]
    pub(crate) poll_milliseconds_max: u32,
    #[serde(default = "Remote::silence_seconds")]
    pub(crate) silence_seconds: u32,
    #[serde(default = "Remote::run_seconds")]
    pub(crate) run_seconds: u32,
}

/// What becomes of a film whose pictures cannot be decoded here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Undecodable {
    /// Its task fails.
    #[default]
    Refuse,
    /// It is served unseen.
    Keep,
}

impl Remote {
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

    /// What no type says.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let wrong = |what: &str| Err(wrong(&self.name, what));
        if !self.key_file.as_os_str().is_empty() && !self.key_variable.is_empty() {
            return wrong("key_file and key_variable exclude each other");
        }
        let mut seen = std::collections::BTreeSet::new();
        if !self.base_urls.iter().all(|url| seen.insert(url)) {
            return wrong("base_urls names a server twice");
        }
        self.options().map(drop)
    }

    /// The settings as the client of the servers takes them; it judges the rest.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let Some(dialect) = Dialect::named(&self.dialect) else {
            let known: Vec<&str> = Dialect::ALL.iter().map(|one| one.name).collect();
            return Err(Failure::new(format!(
                "The engine '{}': there is no dialect '{}'; there are: {}.",
                self.name,
                self.dialect,
                known.join(", ")
            )));
        };
        // The address is the name: it stands in kept tickets, and stays the same when the list changes.
        let upstream = |url: &String| UpstreamOptions {
            name: url.clone(),
            base_url: url.clone(),
            key: self.key(),
        };
        let upstreams = self.base_urls.iter().map(upstream).collect();
        Ok(Options {
            result_origins: self.result_origins.clone(),
            poll_every: milliseconds(self.poll_milliseconds),
            poll_every_min: milliseconds(self.poll_milliseconds.min(200)),
            poll_every_max: milliseconds(self.poll_milliseconds_max),
            silence_max: Duration::from_secs(self.silence_seconds.into()),
            run_max: Duration::from_secs(self.run_seconds.into()),
            ..Options::new(dialect, upstreams)
        })
    }

    fn key(&self) -> KeySource {
        if !self.key_file.as_os_str().is_empty() {
            KeySource::File(self.key_file.clone())
        } else if !self.key_variable.is_empty() {
            KeySource::Variable(self.key_variable.clone())
        } else {
            KeySource::None
        }
    }
}

fn milliseconds(milliseconds: u32) -> Duration {
    Duration::from_millis(milliseconds.into())
}
