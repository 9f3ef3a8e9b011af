//! What a process holds of a key's rate limit where several processes serve one store. It takes a second's worth of
//! requests from the shared allowance at a time and spends them without asking. While the store does not answer, each
//! process falls back to a limit of its own.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::UnixMs;
use kinora_store::{Allowances, Taken};
use tokio::time::timeout;

/// Requests are taken in batches of this part of a minute's worth: the bound on what a process may hold unspent.
const BATCHES_PER_MINUTE: u32 = 60;
/// How long requests wait for the store: a limit is no reason to keep them waiting.
const ASK_MAX: Duration = Duration::from_millis(500);
/// How long the store is left alone after it did not answer.
const AWAY_MS: u64 = 1_000;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// It is admitted; so many more are left, as far as this process knows.
    Admitted { left: u32 },
    /// The allowance is used up; there will be room after this time.
    Refused { retry_ms: u64 },
    /// The store does not say.
    Away,
}

/// One key's share.
#[derive(Debug, Default)]
pub(super) struct Share {
    held: Mutex<Held>,
    /// One request asks the store; those behind it find what it brought.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Held {
    /// Requests that may be spent without asking.
    requests: u32,
    /// Requests that the other processes can still take.
    left: u32,
    pause: Option<Pause>,
}

/// A time in which the store need not be asked.
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
    /// `None` where the store must be asked.
    fn spend(&mut self, now_ms: UnixMs) -> Option<Spent> {
        if let Some(requests) = self.requests.checked_sub(1) {
            self.requests = requests;
            let left = self.left.saturating_add(requests);
            return Some(Spent::Admitted { left });
        }
        let pause = self.pause?;
        // A clock that was set back ends the pause.
        let passed_ms = now_ms.checked_sub(pause.since_ms)?;
        let retry_ms = pause
            .for_ms
            .checked_sub(passed_ms)
            .filter(|left| *left > 0)?;
        Some(match pause.away {
            true => Spent::Away,
            false => Spent::Refused { retry_ms },
        })
    }

    /// Keeps the store's answer; `None`: it gave none.
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
                // Only a refusal is remembered.
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
