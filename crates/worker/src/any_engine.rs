//! An engine of either kind: one that makes frames, or one that delivers finished films.

use std::sync::Arc;

use kinora_engine::places::Places;
use kinora_engine::{Engine, EngineDescription, FilmEngine};

/// An engine of either kind.
#[derive(Clone)]
pub enum AnyEngine {
    /// Makes frames, which this worker records.
    Frames(Arc<dyn Engine>),
    /// Delivers finished films.
    Film(Arc<dyn FilmEngine>),
}

impl AnyEngine {
    /// Its description: name, version and features.
    pub fn describe(&self) -> &EngineDescription {
        match self {
            Self::Frames(engine) => engine.describe(),
            Self::Film(engine) => engine.describe(),
        }
    }

    /// Its places, if they can fail independently of this process.
    pub(crate) fn places(&self) -> Option<&Arc<Places>> {
        match self {
            Self::Frames(engine) => engine.places(),
            Self::Film(engine) => engine.places(),
        }
    }

    /// Whether a job that failed at one place may be repeated at another.
    pub(crate) fn repeats_failed_jobs(&self) -> bool {
        match self {
            Self::Frames(_) => true,
            Self::Film(engine) => engine.repeats_failed_jobs(),
        }
    }

    /// Whether it has no places, or one of them is not in quarantine.
    pub(crate) fn is_usable(&self) -> bool {
        self.places().is_none_or(|places| places.are_usable())
    }
}
