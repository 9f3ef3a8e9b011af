//! `[engines.describe]`: what the operator promises of the command.

use kinora_contract::Features;
use kinora_engine::{Grid, KindError, Promises};
use serde::Deserialize;

/// No model has a coarser grid, and products with it stay far below overflow.
const STEP_MAX: u32 = 1_024;
/// No common screen is faster.
pub(crate) const FPS_MAX: u32 = 120;

/// The table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Describe {
    features: Features,
    #[serde(default = "one")]
    size_multiple: u32,
    #[serde(default)]
    frames: Frames,
    /// Frames per second; 0: any.
    #[serde(default)]
    fps: u32,
    /// Whether its pictures come from a trained model.
    #[serde(default = "yes")]
    pub is_trained: bool,
    /// Version of the engine and its model, for tasks and files.
    #[serde(default = "first_version")]
    pub version: String,
}

/// `{ step = 4, offset = 1 }`: clips have 4 n + 1 frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frames {
    step: u32,
    #[serde(default)]
    offset: u32,
}

impl Default for Frames {
    fn default() -> Self {
        Self { step: 1, offset: 0 }
    }
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

fn first_version() -> String {
    "1".to_owned()
}

impl Describe {
    pub(crate) fn promises(&self) -> Promises {
        Promises {
            features: self.features,
            grid: Grid {
                size_multiple: self.size_multiple,
                frame_step: self.frames.step,
                frame_offset: self.frames.offset,
            },
            fps: self.fps,
        }
    }

    /// Refuses numbers that no engine has.
    pub(crate) fn check(&self) -> Result<(), KindError> {
        if !(1..=STEP_MAX).contains(&self.size_multiple) {
            return wrong("size_multiple must be between 1 and 1024");
        }
        if !(1..=STEP_MAX).contains(&self.frames.step) || self.frames.offset > STEP_MAX {
            return wrong("frames.step must be between 1 and 1024, and frames.offset at most 1024");
        }
        if self.fps > FPS_MAX {
            return wrong("fps must be at most 120, or 0 for an engine that takes any");
        }
        Ok(())
    }
}

fn wrong(what: &str) -> Result<(), KindError> {
    Err(KindError(format!("describe.{what}")))
}
