//! The settings of engines that run in processes of their own.

use std::time::Duration;

use serde::Deserialize;

use super::wrong;
use crate::failure::Failure;

/// How any such engine is hosted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Host {
    /// Whether its processes are locked in.
    pub(crate) sandbox: bool,
    /// Jobs at a time.
    pub(crate) processes: u32,
    /// Most resident memory of a process. 0: no bound.
    pub(crate) memory_megabytes: u32,
    /// For loading weights.
    pub(crate) open_seconds: u32,
    /// Without any progress.
    pub(crate) silence_seconds: u32,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            sandbox: true,
            processes: 1,
            memory_megabytes: 0,
            open_seconds: 600,
            silence_seconds: 600,
        }
    }
}

impl Host {
    pub(crate) const fn memory_bytes_max(self) -> Option<u64> {
        match self.memory_megabytes {
            0 => None,
            megabytes => Some(megabytes as u64 * 1_000_000),
        }
    }

    pub(crate) fn open_limit(self) -> Duration {
        Duration::from_secs(self.open_seconds.into())
    }
}

/// The embedded engine, in a process of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Storyboard {
    pub(crate) name: String,
    /// 0: one per core.
    #[serde(default)]
    pub(crate) threads: u32,
    #[serde(default)]
    pub(crate) caption: Option<bool>,
    #[serde(default)]
    pub(crate) mark: Option<bool>,
    #[serde(default)]
    pub(crate) mark_text: Option<String>,
    #[serde(default)]
    pub(crate) host: Host,
}

impl Storyboard {
    /// What its process is told. A process that is locked in reads no fonts of the system; so that warnings hold
    /// however it is hosted, none does.
    pub(crate) fn settings(&self) -> crate::config::Storyboard {
        let defaults = crate::config::Storyboard::default();
        crate::config::Storyboard {
            threads: self.threads,
            caption: self.caption.unwrap_or(defaults.caption),
            mark: self.mark.unwrap_or(defaults.mark),
            mark_text: self.mark_text.clone().unwrap_or(defaults.mark_text),
            system_fonts: false,
        }
    }
}

/// Open weights, run by stable-diffusion.cpp.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diffusion {
    pub(crate) name: String,
    pub(crate) model: kinora_diffusion::Settings,
    #[serde(default)]
    pub(crate) host: Host,
}

impl Diffusion {
    /// The model, planned with but not loaded.
    pub(crate) fn model(&self) -> Result<kinora_diffusion::Model, Failure> {
        kinora_diffusion::Model::new(&self.name, self.model.clone())
            .map_err(|error| wrong(&self.name, &error.to_string()))
    }
}
