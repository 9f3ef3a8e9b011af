//! The machine's clock and randomness: the only place that reads them.

use std::time::{SystemTime, UNIX_EPOCH};

use kinora_contract::{Clock, Entropy, NoEntropy, UnixMs};

/// The machine's wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where wall time comes in"
    )]
    fn now_ms(&self) -> UnixMs {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The machine's random generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        getrandom::fill(bytes).map_err(|error| NoEntropy(error.to_string()))
    }
}
