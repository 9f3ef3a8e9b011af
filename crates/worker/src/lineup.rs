//! Which engine serves which model. Made once at start; a model without an engine is not served.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kinora_engine::{Description, Engine, FilmEngine};

/// An engine of either kind.
#[derive(Clone)]
pub enum Maker {
    /// Makes frames, which are recorded here.
    Frames(Arc<dyn Engine>),
    /// Hands over finished films.
    Film(Arc<dyn FilmEngine>),
}

impl Maker {
    /// Who it is and what it can take.
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
    /// Makes the videos.
    pub engine: Maker,
    /// A run whose engine reports nothing for so long is given up.
    pub progress_timeout: Duration,
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
        let description = self.engine.describe();
        format!("{}/{}", description.name, description.version)
    }
}

/// The served models by canonical identifier.
#[derive(Clone, Debug, Default)]
pub struct Lineup(BTreeMap<String, Served>);

impl Lineup {
    /// A lineup of models by canonical identifier.
    pub fn new(models: impl IntoIterator<Item = (String, Served)>) -> Self {
        Self(models.into_iter().collect())
    }

    pub(crate) fn of(&self, model: &str) -> Option<&Served> {
        self.0.get(model)
    }

    pub(crate) fn models(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
