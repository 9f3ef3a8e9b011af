//! A process's part of a key's rate limit when several processes serve one store. It takes a
//! second's worth of requests from the shared allowance at a time, and spends them without asking.
//! While the store does not answer, each process falls back to its own limit.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::UnixMs;
use kinora_store::{Allowances, Taken};
use tokio::time::timeout;

/// A batch is a minute's worth of requests divided by this. It bounds how many a process holds
/// unspent.
const BATCHES_PER_MINUTE: u32 = 60;
/// How long requests wait for the store: a rate limit must not delay them for long.
const ASK_MAX: Duration = Duration::from_millis(500);
/// How long to wait before asking the store again after it did not answer.
const AWAY_MS: u64 = 1_000;

/// The decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// Admitted; about `left` more requests are available.
    Admitted { left: u32 },
    /// Refused: the allowance is used up, with room again after this time.
    Refused { retry_ms: u64 },
    /// The store did not answer.
    Away,
}

/// One key's share.
#[derive(Debug, Default)]
pub(super) struct Share {
    held: Mutex<Held>,
    /// Only one request at a time asks the store; the others use its result.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Held {
    /// Requests that may be spent without asking the store.
    requests: u32,
    /// Requests that remain in the shared allowance.
    left: u32,
    pause: Option<Pause>,
}

/// A period in which the store is not asked.
#[derive(Clone, Copy, Debug)]
struct Pause {
    since_ms: UnixMs,
    for_ms: u64,
    away: bool,
}

impl Share {
    /// Spends one request of the key `id`, whose limit is `limit` per minute.
    pub(super) async fn spend(
        &self,
        allowances: &dyn Allowances,
        id: &str,
        limit: u32,
        now_ms: UnixMs,
    ) -> Spent {
        if let Some(spent) = self.lock().spend(now_ms) {
            return spent;
        }
        let _asking = self.asking.lock().await;
        if let Some(spent) = self.lock().spend(now_ms) {
            return spent;
        }
        let wanted = limit.div_ceil(BATCHES_PER_MINUTE);
        let answer = timeout(ASK_MAX, allowances.take(id, limit, wanted)).await;
        let taken = match answer {
            Ok(Ok(taken)) => Some(taken),
            Ok(Err(error)) => {
                tracing::debug!(%error, "shared rate limit not read; limiting by this process alone");
                None
            }
            Err(_) => {
                tracing::debug!(
                    "shared rate limit not read in time; limiting by this process alone"
                );
                None
            }
        };
        let mut held = self.lock();
        held.keep(taken, now_ms);
        held.spend(now_ms).unwrap_or(Spent::Away)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// `None` if the store must be asked.
    fn spend(&mut self, now_ms: UnixMs) -> Option<Spent> {
        if let Some(requests) = self.requests.checked_sub(1) {
            self.requests = requests;
            let left = self.left.saturating_add(requests);
            return Some(Spent::Admitted { left });
        }
        let pause = self.pause?;
        // If the clock was set back, the pause ends.
        let passed_ms = now_ms.checked_sub(pause.since_ms)?;
        let retry_ms = pause
            .for_ms
            .checked_sub(passed_ms)
            .filter(|left| *left > 0)?;
        Some(if pause.away {
            Spent::Away
        } else {
            Spent::Refused { retry_ms }
        })
    }

    /// Records the store's answer; `None` if there was none.
    fn keep(&mut self, taken: Option<Taken>, now_ms: UnixMs) {
        let pause = |for_ms, away| {
            Some(Pause {
                since_ms: now_ms,
                for_ms,
                away,
            })
        };
        match taken {
            None => self.pause = pause(AWAY_MS, true),
            Some(taken) => {
                self.requests = taken.granted;
                self.left = taken.left;
                // Only refusals are remembered.
                self.pause = match taken.granted {
                    0 => pause(taken.next_ms.max(1), false),
                    _ => None,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests;
