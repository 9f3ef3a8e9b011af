//! The estimated work of a task, for fair turns and for estimated waiting times. The estimate uses
//! the spec alone: it compares tasks and measures nothing.

use crate::size::{AspectRatio, Resolution, Size};
use crate::spec::{FrameSize, Seconds, VideoSpec};

/// Work common to every task: opening, muxing, publishing.
const BASE: u64 = 10;
/// Work for one reference: fetching and decoding it.
const PER_REFERENCE: u64 = 5;
/// Length assumed when the engine chooses: between the shortest and the longest.
const AUTO_SECONDS: u64 = 8;
/// Frames per second of a finished video.
const FPS: u64 = 24;
/// Frames per second that a draft renders; the others are interpolated.
const DRAFT_FPS: u64 = 12;

impl VideoSpec {
    /// Estimated work in cost units. A unit is a million pixels of rendered frames: 5 s of 1280x720 at
    /// 24 frames per second are 110. Each task adds 10, and each reference 5. Never 0.
    pub fn cost(&self) -> u64 {
        let seconds = match self.seconds {
            Seconds::Fixed(seconds) => u64::from(seconds),
            Seconds::Auto => AUTO_SECONDS,
        };
        let fps = if self.draft { DRAFT_FPS } else { FPS };
        let pixels = self.cost_size().pixels();
        let rendered = pixels.saturating_mul(seconds).saturating_mul(fps) / 1_000_000;
        let references = self.inputs.references().len() as u64;
        rendered
            .saturating_add(BASE)
            .saturating_add(references * PER_REFERENCE)
    }

    /// The rendered size; for an adaptive shape, the widescreen size of its resolution.
    fn cost_size(&self) -> Size {
        let widescreen = |resolution: Resolution| resolution.size(AspectRatio::R16x9);
        match (self.render_size(), self.frame) {
            (Some(size), _) | (None, FrameSize::Fixed(size)) => size,
            (None, FrameSize::Adaptive(_)) if self.draft => widescreen(Resolution::P480),
            (None, FrameSize::Adaptive(resolution)) => widescreen(resolution),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::{Inputs, SPEC_VERSION};

    use super::*;

    fn spec(seconds: Seconds, frame: FrameSize) -> VideoSpec {
        VideoSpec {
            version: SPEC_VERSION,
            model: "kinora-a1".to_owned(),
            prompt: "a boat".to_owned(),
            negative_prompt: None,
            seconds,
            frame,
            seed: 1,
            generate_audio: false,
            inputs: Inputs::Text,
            draft: false,
            final_of: None,
            edit: None,
        }
    }

    #[test]
    fn cost_grows_with_pixels_seconds_and_references() {
        let hd = FrameSize::Fixed(Size::new(1280, 720));
        let small = FrameSize::Fixed(Size::new(854, 480));
        let wide = FrameSize::Fixed(Size::new(2520, 1080));
        assert_eq!(spec(Seconds::Fixed(5), hd).cost(), 120);
        assert_eq!(spec(Seconds::Fixed(2), small).cost(), 29);
        assert_eq!(spec(Seconds::Fixed(15), wide).cost(), 989);
        let mut with_images = spec(Seconds::Fixed(5), hd);
        with_images.inputs = Inputs::References {
            images: vec!["https://example.org/i".to_owned(); 9],
            audios: vec!["https://example.org/a".to_owned(); 3],
        };
        assert_eq!(with_images.cost(), 120 + 60);
        let mut draft = spec(Seconds::Fixed(5), hd);
        draft.draft = true;
        assert!(draft.cost() < 50, "{}", draft.cost());
        let adaptive = FrameSize::Adaptive(Resolution::P720);
        assert_eq!(spec(Seconds::Auto, adaptive).cost(), 186);
    }
}
