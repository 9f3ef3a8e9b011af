//! The engine of each served model. Built once at the start; a model without an engine is not
//! served.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kinora_engine::{Description, Engine, FilmEngine};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// An engine of either kind.
#[derive(Clone)]
pub enum Maker {
    /// Makes frames, which this worker records.
    Frames(Arc<dyn Engine>),
    /// Delivers finished films.
    Film(Arc<dyn FilmEngine>),
}

impl Maker {
    /// Its description: name, version and features.
    pub fn describe(&self) -> &Description {
        match self {
            Self::Frames(engine) => engine.describe(),
            Self::Film(engine) => engine.describe(),
        }
    }
}

/// A served model's engine.
#[derive(Clone)]
pub struct Served {
    /// The engine itself.
    pub engine: Maker,
    /// A run whose engine reports nothing for this long is stopped.
    pub progress_timeout: Duration,
    /// Maximum number of tasks that the engine takes at a time, one permit each, if that is less
    /// than the slots. All models of the engine share it.
    pub seats: Option<Arc<Semaphore>>,
    /// Device that the engine computes on, as the engine names it; `None` if it chooses itself.
    pub device: Option<String>,
}

/// Models whose tasks are claimed together, because they share an engine's seats or need none.
pub(crate) struct Queue {
    pub(crate) models: Vec<String>,
    seats: Option<Arc<Semaphore>>,
}

/// A task's seat at its engine, if the engine has a limit.
pub(crate) type EngineSeat = Option<OwnedSemaphorePermit>;

impl Queue {
    /// Takes up to `count` free seats.
    pub(crate) fn free_seats(&self, count: usize) -> Vec<EngineSeat> {
        let seat = || match &self.seats {
            None => Some(None),
            Some(seats) => seats.clone().try_acquire_owned().ok().map(Some),
        };
        std::iter::from_fn(seat).take(count).collect()
    }

    fn shares(&self, seats: Option<&Arc<Semaphore>>) -> bool {
        match (&self.seats, seats) {
            (None, None) => true,
            (Some(own), Some(seats)) => Arc::ptr_eq(own, seats),
            _ => false,
        }
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (progress within {:?})",
            self.engine_name(),
            self.progress_timeout
        )
    }
}

impl Served {
    /// The engine as clients see it: `name/version`.
    pub fn engine_name(&self) -> String {
        self.engine.describe().full_name()
    }
}

/// The served models by canonical identifier.
#[derive(Clone, Debug, Default)]
pub struct Lineup(BTreeMap<String, Served>);

impl Lineup {
    /// Creates a lineup of models by canonical identifier.
    pub fn new(models: impl IntoIterator<Item = (String, Served)>) -> Self {
        Self(models.into_iter().collect())
    }

    /// All served models.
    pub(crate) fn models(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// The models whose engine delivers films, which other servers may have begun.
    pub(crate) fn film_models(&self) -> Vec<String> {
        let films = self
            .0
            .iter()
            .filter(|(_, served)| matches!(served.engine, Maker::Film(_)));
        films.map(|(model, _)| model.clone()).collect()
    }

    /// Every model with its engine.
    pub(crate) fn served(&self) -> impl Iterator<Item = (&String, &Served)> {
        self.0.iter()
    }

    pub(crate) fn of(&self, model: &str) -> Option<&Served> {
        self.0.get(model)
    }

    /// The models, grouped by the engine that they share.
    pub(crate) fn queues(&self) -> Vec<Queue> {
        let mut queues: Vec<Queue> = Vec::new();
        for (model, served) in &self.0 {
            let shares = |queue: &&mut Queue| queue.shares(served.seats.as_ref());
            match queues.iter_mut().find(shares) {
                Some(queue) => queue.models.push(model.clone()),
                None => queues.push(Queue {
                    models: vec![model.clone()],
                    seats: served.seats.clone(),
                }),
            }
        }
        queues
    }
}
