//! What the model knows of one task.

use kinora_contract::Phase;

use super::RETENTION_MS;

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) project: &'static str,
    pub(super) model: usize,
    pub(super) phase: Phase,
    pub(super) attempt: u32,
    pub(super) deaths: u32,
    pub(super) progress: u8,
    pub(super) token: Option<u64>,
    pub(super) until_ms: u64,
    pub(super) created_at_ms: u64,
    pub(super) started_at_ms: Option<u64>,
    pub(super) expires_at_ms: u64,
    pub(super) key: Option<(u8, usize, u64)>,
    pub(super) ticket: Option<String>,
    /// Reference images.
    pub(super) images: usize,
    /// Token of the run whose result it has.
    pub(super) result: Option<u64>,
    pub(super) fetch: Fetching,
}

/// How far a task's references are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetching {
    AtHand,
    Wanted,
    /// Somebody fetches them until then.
    Taken(u64),
}

impl Known {
    /// A waiting task that was just inserted.
    pub(super) const fn new(
        project: &'static str,
        model: usize,
        images: usize,
        created_at_ms: u64,
    ) -> Self {
        Self {
            project,
            model,
            phase: Phase::Waiting,
            attempt: 0,
            deaths: 0,
            progress: 0,
            token: None,
            until_ms: 0,
            created_at_ms,
            started_at_ms: None,
            expires_at_ms: u64::MAX,
            key: None,
            ticket: None,
            images,
            result: None,
            fetch: match images {
                0 => Fetching::AtHand,
                _ => Fetching::Wanted,
            },
        }
    }

    /// Whether its next attempt is the last one after a death.
    pub(super) const fn is_suspect(&self) -> bool {
        self.deaths > 0 && self.attempt >= 2
    }

    /// A worker has it, for the first time or again.
    pub(super) fn start(&mut self, now_ms: u64) {
        let at_ms = now_ms.max(self.created_at_ms);
        self.started_at_ms.get_or_insert(at_ms);
    }

    /// It has ended. Its time of retention begins no earlier than the task itself did, whatever the clock says.
    pub(super) fn end(&mut self, phase: Phase, now_ms: u64) {
        let begun_ms = self.started_at_ms.unwrap_or(0).max(self.created_at_ms);
        self.phase = phase;
        self.expires_at_ms = now_ms.max(begun_ms) + RETENTION_MS;
    }
}
