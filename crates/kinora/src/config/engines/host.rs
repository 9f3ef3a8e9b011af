//! `[engines.host]`: how the processes of an engine are run, whatever its kind.

use std::time::Duration;

use serde::Deserialize;

/// How an engine in processes of its own is hosted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Host {
    /// Whether its processes are sandboxed.
    pub(crate) sandbox: bool,
    /// Jobs at a time.
    pub(crate) processes: u32,
    /// Most resident memory of a process. 0: no bound.
    memory_megabytes: u32,
    /// For loading weights.
    open_seconds: u32,
    /// Without any progress.
    silence_seconds: u32,
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

    pub(crate) fn silence_max(self) -> Duration {
        Duration::from_secs(self.silence_seconds.into())
    }

    /// The setting that must not be 0 and is.
    pub(super) fn zero(self) -> Option<&'static str> {
        let positive = [
            ("processes", self.processes),
            ("open_seconds", self.open_seconds),
            ("silence_seconds", self.silence_seconds),
        ];
        let zero = positive.into_iter().find(|(_, value)| *value == 0);
        zero.map(|(field, _)| field)
    }
}
