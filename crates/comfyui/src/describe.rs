//! `[engines.describe]`: what a workflow does not say of itself.

use kinora_contract::Size;
use kinora_engine::Grid;
use serde::Deserialize;

/// No model has a coarser grid, and products with it stay far below overflow.
const STEP_MAX: u32 = 1_024;
/// A film may differ from the request by less than this, in pixels; see `docs/models.md`.
const SIZE_MULTIPLE_MAX: u32 = 62;
/// As fast as any screen that shows the result.
const FPS_MAX: u32 = 120;

/// The table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Describe {
    /// Frames per second of the films.
    pub fps: u32,
    /// Sides are multiples of this.
    #[serde(default = "one")]
    pub size_multiple: u32,
    /// The lengths that the model makes.
    #[serde(default)]
    pub frames: Frames,
    /// Whether the pictures come from a trained model.
    #[serde(default = "yes")]
    pub is_trained: bool,
    /// Version of the workflow and its models, for tasks and files.
    #[serde(default = "first_version")]
    pub version: String,
}

/// `{ step = 4, offset = 1 }`: films have 4 n + 1 frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// See above; at least 1.
    pub step: u32,
    /// See above.
    #[serde(default)]
    pub offset: u32,
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
    /// Refuses numbers that no model has.
    ///
    /// # Errors
    /// A sentence for an operator.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("describe.{what}"));
        if !(1..=SIZE_MULTIPLE_MAX).contains(&self.size_multiple) {
            return wrong(
                "size_multiple must be between 1 and 62: results are off by half of it, and may be by 31 pixels",
            );
        }
        if !(1..=STEP_MAX).contains(&self.frames.step) || self.frames.offset > STEP_MAX {
            return wrong("frames.step must be between 1 and 1024, and frames.offset at most 1024");
        }
        if !(1..=FPS_MAX).contains(&self.fps) {
            return wrong("fps must be between 1 and 120");
        }
        Ok(())
    }

    /// The size on the grid that is nearest to `size`. Nobody crops the film, so it is not rounded up.
    pub fn size(&self, size: Size) -> Size {
        let nearest = |side: u32| {
            let multiple = self.size_multiple.max(1);
            let rounded = (side + multiple / 2) / multiple * multiple;
            rounded.max(multiple)
        };
        Size::new(nearest(size.width), nearest(size.height))
    }

    /// The smallest number of frames on the grid that lasts `seconds`.
    pub fn frames(&self, seconds: u32) -> u32 {
        let grid = Grid {
            size_multiple: self.size_multiple,
            frame_step: self.frames.step,
            frame_offset: self.frames.offset,
        };
        grid.frames(seconds.saturating_mul(self.fps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_film_is_made_at_the_nearest_size_and_the_next_length() {
        let text = "fps = 16\nsize_multiple = 16\nframes = { step = 4, offset = 1 }";
        let describe: Describe = toml::from_str(text).unwrap();
        describe.check().unwrap();
        assert_eq!(describe.size(Size::new(854, 480)), Size::new(848, 480));
        assert_eq!(describe.size(Size::new(5, 25)), Size::new(16, 32));
        assert_eq!(describe.frames(5), 81);
        for wrong in [
            "fps = 0",
            "fps = 16\nsize_multiple = 64",
            "fps = 16\nframes = { step = 0 }",
        ] {
            assert!(toml::from_str::<Describe>(wrong).unwrap().check().is_err());
        }
    }
}
