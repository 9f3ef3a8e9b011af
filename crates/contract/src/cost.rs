//! The size of a task by two measures: the estimated work for an engine, for fair turns and waiting
//! times, and the bytes that the task takes in a list. Both use the task alone: they compare tasks and
//! measure nothing. Pages are limited by bytes, since a hundred tasks may have a hundred words or several
//! megabytes.

use crate::size::{AspectRatio, Resolution, Size};
use crate::spec::{FrameSize, VideoInputs, VideoLength, VideoSpec};
use crate::task::{Task, TaskState};

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
            VideoLength::Fixed(seconds) => u64::from(seconds),
            VideoLength::Auto => AUTO_SECONDS,
        };
        let fps = if self.draft { DRAFT_FPS } else { FPS };
        let pixels = self.cost_size().pixels();
        // 5 s of 1280x720 at 24 fps: 921,600 x 5 x 24 / 1,000,000 = 110.
        let rendered = pixels.saturating_mul(seconds).saturating_mul(fps) / 1_000_000;
        let references = self.inputs.references().len() as u64;
        rendered
            .saturating_add(BASE)
            .saturating_add(references * PER_REFERENCE)
    }

    /// The rendered size; for an adaptive shape, the widescreen size of its resolution.
    fn cost_size(&self) -> Size {
        match (self.render_size(), self.frame) {
            (Some(size), _) | (None, FrameSize::Fixed(size)) => size,
            (None, FrameSize::Adaptive(_)) if self.draft => {
                Resolution::P480.size(AspectRatio::R16x9)
            }
            (None, FrameSize::Adaptive(resolution)) => resolution.size(AspectRatio::R16x9),
        }
    }
}

/// Numbers, identifiers, field names and five signed URLs.
const FIXED_BYTES: usize = 2816 + 96;

/// An upper estimate of the task object's JSON (with URLs of up to a few hundred characters), and
/// of the reference URLs held while it is written.
pub fn listed_bytes(task: &Task) -> usize {
    let spec = &task.spec;
    let metadata = task.metadata.iter();
    let failure = match &task.state {
        // Sent twice: as `error` and as `fail_reason`.
        TaskState::Failed(failure) => 2 * json_bytes(&failure.message),
        _ => 0,
    };
    let warnings = task.warnings.iter();
    let warnings = warnings.map(|one| json_bytes(&one.code) + json_bytes(&one.message) + 24);
    FIXED_BYTES
        + json_bytes(&spec.prompt)
        + spec.negative_prompt.as_ref().map_or(0, String::len)
        + metadata
            .map(|(key, value)| json_bytes(key) + json_bytes(value) + 6)
            .sum::<usize>()
        + failure
        + warnings.sum::<usize>()
        + input_bytes(&spec.inputs)
}

fn input_bytes(inputs: &VideoInputs) -> usize {
    match inputs {
        VideoInputs::Text => 0,
        VideoInputs::Frames { first, last } => first.len() + last.as_ref().map_or(0, String::len),
        VideoInputs::References { images, audios } => {
            images.iter().chain(audios).map(String::len).sum()
        }
    }
}

/// The length of `text` within the quotes of a JSON string.
fn json_bytes(text: &str) -> usize {
    // Most texts need no escapes; a loop without branches checks many bytes at a time.
    let mut has_escapes = false;
    for byte in text.as_bytes() {
        has_escapes |= (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\');
    }
    if !has_escapes {
        return text.len();
    }
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0..0x20 => 6,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{SPEC_VERSION, VideoInputs};

    fn spec(seconds: VideoLength, frame: FrameSize) -> VideoSpec {
        VideoSpec {
            version: SPEC_VERSION,
            model: "kinora-a1".to_owned(),
            prompt: "a boat".to_owned(),
            negative_prompt: None,
            seconds,
            frame,
            seed: 1,
            generate_audio: false,
            inputs: VideoInputs::Text,
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
        assert_eq!(spec(VideoLength::Fixed(5), hd).cost(), 120);
        assert_eq!(spec(VideoLength::Fixed(2), small).cost(), 29);
        assert_eq!(spec(VideoLength::Fixed(15), wide).cost(), 989);
        let mut with_images = spec(VideoLength::Fixed(5), hd);
        with_images.inputs = VideoInputs::References {
            images: vec!["https://example.org/i".to_owned(); 9],
            audios: vec!["https://example.org/a".to_owned(); 3],
        };
        assert_eq!(with_images.cost(), 120 + 60);
        let mut draft = spec(VideoLength::Fixed(5), hd);
        draft.draft = true;
        assert!(draft.cost() < 50, "{}", draft.cost());
        let adaptive = FrameSize::Adaptive(Resolution::P720);
        assert_eq!(spec(VideoLength::Auto, adaptive).cost(), 186);
    }

    #[test]
    fn escapes_count_as_they_are_written() {
        for text in [
            "",
            "plain",
            "\"\\\n\r\t\u{8}\u{c}",
            "\0\u{1}\u{1f}\u{7f}",
            "é夜🌊",
        ] {
            let written = serde_json::to_string(text).unwrap();
            assert_eq!(json_bytes(text), written.len() - 2, "{written}");
        }
    }
}
