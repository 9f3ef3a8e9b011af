//! `[engines.host]`: how to run the processes of an engine of any kind.

use std::time::Duration;

use serde::Deserialize;

/// Settings for an engine in separate processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Host {
    /// Whether to sandbox its processes.
    pub(crate) sandbox: bool,
    /// Maximum number of concurrent jobs.
    pub(crate) processes: u32,
    /// Maximum resident memory of a process. 0: no limit.
    memory_megabytes: u32,
    /// Time limit for loading weights.
    open_seconds: u32,
    /// Time limit without progress.
    silence_seconds: u32,
    /// Time limit of a run in total.
    run_seconds: u32,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            sandbox: true,
            processes: 1,
            memory_megabytes: 0,
            open_seconds: 600,
            silence_seconds: 600,
            run_seconds: 86_400,
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

    pub(crate) fn silence_max(self) -> Duration {
        Duration::from_secs(self.silence_seconds.into())
    }

    pub(crate) fn run_limit(self) -> Duration {
        Duration::from_secs(self.run_seconds.into())
    }

    /// The setting that is 0 but must not be.
    pub(super) fn zero(self) -> Option<&'static str> {
        let positive = [
            ("processes", self.processes),
            ("open_seconds", self.open_seconds),
            ("silence_seconds", self.silence_seconds),
            ("run_seconds", self.run_seconds),
        ];
        let zero = positive.into_iter().find(|(_, value)| *value == 0);
        zero.map(|(field, _)| field)
    }
}
