//! Common parts of planners: refusals that follow from the features alone, the length of an edit,
//! and the grid of sizes and lengths that a model renders, of which a clip is a part.

use kinora_contract::{Features, Size, VideoInputs, VideoLength, VideoSpec};

use crate::{EngineError, SourceVideo};

/// Refuses a spec that needs a feature beyond `can`. Needs no material.
///
/// # Errors
/// [`EngineError::Unsupported`], with the feature.
pub fn refuse_unsupported(can: Features, spec: &VideoSpec) -> Result<(), EngineError> {
    // An edit has the length of its source.
    let is_auto = spec.seconds == VideoLength::Auto && spec.edit.is_none();
    let is_staged = spec.draft || spec.final_of.is_some();
    let lacking = [
        (
            spec.negative_prompt.is_some() && !can.negative_prompt,
            "a negative prompt",
        ),
        (spec.generate_audio && !can.audio_output, "sound"),
        (is_auto && !can.auto_duration, "a length of its own choice"),
        (is_staged && !can.draft, "drafts"),
        (spec.edit.is_some() && !can.edit, "edits"),
    ];
    if let Some((_, what)) = lacking.into_iter().find(|(is_lacking, _)| *is_lacking) {
        return unsupported(what);
    }
    match &spec.inputs {
        VideoInputs::Frames { .. } if !can.first_frame => unsupported("a first frame"),
        VideoInputs::Frames { last: Some(_), .. } if !can.last_frame => unsupported("a last frame"),
        VideoInputs::References { images, .. }
            if images.len() > can.reference_images_max as usize =>
        {
            unsupported("so many reference images")
        }
        VideoInputs::References { audios, .. }
            if audios.len() > can.reference_audios_max as usize =>
        {
            unsupported("so many reference sounds")
        }
        VideoInputs::Text if !can.text_to_video && spec.edit.is_none() => {
            unsupported("text without a picture")
        }
        _ => Ok(()),
    }
}

fn unsupported(what: &str) -> Result<(), EngineError> {
    Err(EngineError::Unsupported(what.to_owned()))
}

/// The number of frames at `fps` that last as long as `source`; at least 1. `None` for a source without frames.
pub fn frames_of_edit(source: &dyn SourceVideo, fps: u32) -> Option<u32> {
    let from_fps = u64::from(source.fps());
    if from_fps == 0 || source.frames() == 0 {
        return None;
    }
    let frames = u64::from(source.frames()) * u64::from(fps);
    // Rounded to nearest: 60 frames at 30 frames/s are 48 at 24.
    let frames = ((frames + from_fps / 2) / from_fps).max(1);
    Some(u32::try_from(frames).unwrap_or(u32::MAX))
}

/// Bytes of a pixel: red, green, blue.
const CHANNELS: usize = 3;

/// The sizes and lengths that a model renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderGrid {
    /// Width and height are multiples of this; at least 1.
    pub size_multiple: u32,
    /// Clips have `frame_step * n + frame_offset` frames; at least 1.
    pub frame_step: u32,
    /// See [`RenderGrid::frame_step`].
    pub frame_offset: u32,
}

impl RenderGrid {
    /// Every size and every length.
    pub const ANY: Self = Self {
        size_multiple: 1,
        frame_step: 1,
        frame_offset: 0,
    };

    /// The smallest size on the grid that holds `size`.
    pub fn size(self, size: Size) -> Size {
        Size::new(
            size.width.next_multiple_of(self.size_multiple),
            size.height.next_multiple_of(self.size_multiple),
        )
    }

    /// The smallest number of frames on the grid that is not below `frames`.
    pub fn frames(self, frames: u32) -> u32 {
        frames
            .saturating_sub(self.frame_offset)
            .div_ceil(self.frame_step)
            .saturating_mul(self.frame_step)
            .saturating_add(self.frame_offset)
    }
}

/// The delivered part of a rendered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCrop {
    /// Pixels cut off at the left.
    pub left: u32,
    /// Rows cut off at the top.
    pub top: u32,
    /// The size of the remaining part.
    pub size: Size,
}

impl FrameCrop {
    /// The centre of `rendered`, which is no smaller than `size`.
    pub fn middle(size: Size, rendered: Size) -> Self {
        Self {
            left: rendered.width.saturating_sub(size.width) / 2,
            top: rendered.height.saturating_sub(size.height) / 2,
            size,
        }
    }

    /// Cuts this part out of a frame of `rendered`: `[height][width][3] u8`. `None` if `rgb` is no such frame.
    pub fn cut(self, rgb: &[u8], rendered: Size) -> Option<Vec<u8>> {
        let row_bytes = rendered.width as usize * CHANNELS;
        let kept = self.size.width as usize * CHANNELS;
        let left = self.left as usize * CHANNELS;
        if rgb.len() != row_bytes * rendered.height as usize {
            return None;
        }
        let mut frame = Vec::with_capacity(kept * self.size.height as usize);
        for y in self.top..self.top + self.size.height {
            let start = y as usize * row_bytes + left;
            frame.extend_from_slice(rgb.get(start..start + kept)?);
        }
        Some(frame)
    }
}

/// The rendered frames to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSelection {
    /// The first ones.
    First(u32),
    /// This many, spread evenly from the first to the last, so the last one stays the last.
    Spread(u32),
}

impl FrameSelection {
    /// The number of delivered frames.
    pub const fn count(self) -> u32 {
        match self {
            Self::First(count) | Self::Spread(count) => count,
        }
    }

    /// Limits the selection to `rendered` frames.
    pub fn at_most(self, rendered: u32) -> Self {
        match self {
            Self::First(count) => Self::First(count.min(rendered)),
            Self::Spread(count) => Self::Spread(count.min(rendered)),
        }
    }

    /// The index among `rendered` frames of delivered frame number `index`.
    pub fn source(self, index: u32, rendered: u32) -> u32 {
        match self {
            Self::First(_) => index,
            Self::Spread(count) if count < 2 => rendered.saturating_sub(1),
            Self::Spread(count) => {
                // Nearest index of `index / gaps * (rendered - 1)`, in integers. Example: 5
                // rendered frames, 3 delivered: 0, 2, 4.
                let gaps = u64::from(count - 1);
                let place = u64::from(index) * u64::from(rendered.saturating_sub(1));
                ((place + gaps / 2) / gaps) as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clip_is_rendered_on_the_next_point_of_the_grid() {
        let grid = RenderGrid {
            size_multiple: 16,
            frame_step: 4,
            frame_offset: 1,
        };
        assert_eq!(grid.size(Size::new(854, 480)), Size::new(864, 480));
        assert_eq!(
            [1, 2, 80, 81].map(|frames| grid.frames(frames)),
            [1, 5, 81, 81]
        );
        assert_eq!(RenderGrid::ANY.frames(80), 80);
        // MiniMax-H3: 17 n + 5.
        let grid = RenderGrid {
            frame_step: 17,
            frame_offset: 5,
            ..grid
        };
        assert_eq!(
            [1, 5, 6, 120].map(|frames| grid.frames(frames)),
            [5, 5, 22, 124]
        );
    }

    #[test]
    fn a_frame_of_another_size_is_not_cut() {
        let size = Size::new(16, 16);
        assert!(FrameCrop::middle(size, size).cut(&[0; 5], size).is_none());
    }
}
