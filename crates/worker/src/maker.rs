//! An engine, whichever way it works.

use std::sync::Arc;

use kinora_engine::{Description, Engine, FilmEngine};

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
