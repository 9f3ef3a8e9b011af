//! Actions of lease holders (runs and fetches) on their tasks.

use kinora_contract::lifecycle::Event;

use crate::present::Present;
use crate::{Attempt, Fetched, Outcome, Renewal};

/// An event without its time: the time of the transaction applies.
#[derive(Debug)]
pub(crate) enum Act {
    Renew {
        token: u64,
        lease_ms: u64,
        renewal: Renewal,
    },
    Finish {
        token: u64,
        outcome: Outcome,
        retention_ms: u64,
    },
    Release {
        token: u64,
        attempt: Attempt,
    },
    SettleFetch {
        token: u64,
        fetched: Fetched,
    },
}

impl Act {
    /// The event at this time of the store's clock.
    pub(crate) fn at(&self, now: &Present) -> Event {
        let now_ms = now.wall_ms;
        match self {
            Self::Renew {
                token,
                lease_ms,
                renewal,
            } => Event::Renewed {
                token: *token,
                until_ms: now_ms.saturating_add(*lease_ms),
                ends_ms: now.lease_ms.saturating_add(*lease_ms),
                renewal: renewal.clone(),
            },
            Self::Finish {
                token,
                outcome,
                retention_ms,
            } => Event::Finished {
                token: *token,
                outcome: outcome.clone(),
                now_ms,
                retention_ms: *retention_ms,
            },
            Self::Release { token, attempt } => Event::Released {
                token: *token,
                attempt: *attempt,
            },
            Self::SettleFetch { token, fetched } => Event::FetchEnded {
                token: *token,
                outcome: fetched.at(now),
            },
        }
    }
}
