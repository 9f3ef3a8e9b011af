//! A recorder of a clip whose length the engine may decide while it works.

use std::path::Path;

use kinora_engine::EngineError;
use kinora_media::{
    ClipFormat, MediaError, Provenance, Recorder, RecorderOptions, Recording, Written,
};

use crate::error::RecordError;

/// Everything that a recorder needs.
pub(crate) struct Plan<'a> {
    pub(crate) path: &'a Path,
    /// The length is the longest allowed one until it is decided.
    pub(crate) format: ClipFormat,
    pub(crate) options: RecorderOptions,
    pub(crate) provenance: Provenance,
}

impl Plan<'_> {
    pub(crate) fn begin(self) -> Result<Recorder, MediaError> {
        let recorder = Recorder::create(self.path, self.format, self.options)?;
        Ok(recorder.with_provenance(self.provenance))
    }
}

/// The recorder, once the clip's length is known.
pub(crate) enum LateRecorder<'a> {
    Decided(Box<Recorder>),
    /// `None` after a decision that could not be followed.
    Undecided(Option<Box<Plan<'a>>>),
}

impl LateRecorder<'_> {
    /// Follows the engine's decision.
    ///
    /// # Errors
    /// The length is known, longer than planned, or zero; or there is no room for the file.
    pub(crate) fn decide(&mut self, frames: u32) -> Result<(), EngineError> {
        let Self::Undecided(plan) = self else {
            return Err(broken(
                "it decided the length of a clip whose length is known",
            ));
        };
        let mut plan = plan
            .take_if(|plan| (1..=plan.format.frames).contains(&frames))
            .ok_or_else(|| broken("it decided for a length that is not allowed"))?;
        plan.format.frames = frames;
        let recorder = plan.begin();
        let recorder = recorder.map_err(|error| EngineError::Sink(error.into()))?;
        *self = Self::Decided(Box::new(recorder));
        Ok(())
    }

    /// The recorder for frames and sound.
    ///
    /// # Errors
    /// The length is not known.
    pub(crate) fn decided(&mut self) -> Result<&mut Recorder, EngineError> {
        match self {
            Self::Decided(recorder) => Ok(recorder),
            Self::Undecided(_) => Err(broken("it began before it had decided the length")),
        }
    }

    /// Finishes the file.
    pub(crate) fn finish(self) -> Result<(Recording, Written), RecordError> {
        match self {
            Self::Decided(recorder) => Ok(recorder.finish()?),
            Self::Undecided(_) => Err(broken("it ended without a decision on the length").into()),
        }
    }
}

fn broken(what: &str) -> EngineError {
    EngineError::Failed(format!("the engine broke a rule: {what}"))
}
