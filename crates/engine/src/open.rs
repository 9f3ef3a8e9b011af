//! Finds an engine by its configured name. A new engine is one arm here.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::storyboard::{self, Storyboard};
use crate::{Engine, EngineError};

/// What the engines of this crate can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Threads that paint one storyboard; `None` takes one per core.
    pub storyboard_threads: Option<NonZeroUsize>,
}

/// Opens the engine called `name`.
///
/// # Errors
/// [`EngineError::Unsupported`] when there is none of that name.
pub fn open(name: &str, options: &OpenOptions) -> Result<Arc<dyn Engine>, EngineError> {
    match name {
        "storyboard" => {
            let options = storyboard::Options {
                threads: options.storyboard_threads,
            };
            Ok(Arc::new(Storyboard::new(options)))
        }
        other => Err(EngineError::Unsupported(format!(
            "there is no engine '{other}'"
        ))),
    }
}
