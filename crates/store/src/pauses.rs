//! Pauses: models of which workers claim nothing until an operator resumes them. Running tasks end,
//! and submits are accepted. A pause outlives every process. It is a rule for workers, which read it
//! once a second, and not for claims: a store grants what a worker asks for.

use std::sync::Arc;

use async_trait::async_trait;
use kinora_contract::UnixMs;

use crate::StoreError;

/// The store of pauses.
#[async_trait]
pub trait PauseStore: Send + Sync + std::fmt::Debug {
    /// The pauses that there are now.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn pauses(&self) -> Result<Pauses, StoreError>;

    /// Begins a pause. If there is one already, it keeps its beginning, and its reason unless the
    /// new one has another.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn pause(&self, pause: Pause) -> Result<(), StoreError>;

    /// Ends the pause of this model, or (`None`) that of all models, which leaves the pauses of
    /// single models. Returns whether there was one. Tasks that waited through it count as waiting
    /// from `now_ms` on ([`crate::SweepRequest::waiting_ms_max`]).
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written now.
    async fn resume(&self, model: Option<&str>, now_ms: UnixMs) -> Result<bool, StoreError>;
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Canonical identifier of the model; `None`: all models.
    pub model: Option<String>,
    /// Its beginning, by the clock of the operator's process.
    pub since_ms: UnixMs,
    /// The operator's reason, if any was given.
    pub reason: Option<String>,
}

/// The pauses at one moment. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pauses(Arc<[Pause]>);

impl Pauses {
    /// The pause that holds this model back: its own, or else that of all models.
    pub fn find(&self, model: &str) -> Option<&Pause> {
        let own = self
            .0
            .iter()
            .find(|one| one.model.as_deref() == Some(model));
        own.or_else(|| self.of_all())
    }

    /// Whether nothing of this model is claimed.
    pub fn contains(&self, model: &str) -> bool {
        self.find(model).is_some()
    }

    /// The pause of all models, if there is one.
    pub fn of_all(&self) -> Option<&Pause> {
        self.0.iter().find(|one| one.model.is_none())
    }

    /// All of them, sorted by model; the one of all models comes first.
    pub fn iter(&self) -> impl Iterator<Item = &Pause> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Pause> for Pauses {
    fn from_iter<I: IntoIterator<Item = Pause>>(pauses: I) -> Self {
        Self(pauses.into_iter().collect())
    }
}
