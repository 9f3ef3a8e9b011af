//! What the server is asked for one clip, derived from settings, spec and materials before any work. It opens no files and calls
//! no server.

use kinora_contract::Size;
use kinora_engine::{ClipPlan, FrameCrop, FrameSelection, RgbPicture, SourceVideo};

/// A clip to generate. The rest, such as its sampling, stands in the model's settings.
#[derive(Clone, Debug)]
pub(crate) struct Generation<'a> {
    /// The positive prompt, escaped so that the library takes every word literally.
    pub prompt: String,
    /// The negative prompt, escaped likewise; empty for none.
    pub negative_prompt: String,
    /// The rendered size: the requested one, rounded up to the model's multiple.
    pub rendered: Size,
    /// The delivered part of a rendered frame.
    pub crop: FrameCrop,
    /// The number of rendered frames, on the model's grid.
    pub frames: u32,
    /// The delivered ones among them.
    pub keep: FrameSelection,
    /// Frames per second.
    pub fps: u32,
    /// Denoising steps of both experts together.
    pub steps: u32,
    /// Seed of all noise, never negative: for a negative one the library would choose its own.
    pub seed: u32,
    /// The clip's first frame, or VACE's reference image.
    pub initial: Option<&'a RgbPicture>,
    /// The clip's last frame.
    pub end: Option<&'a RgbPicture>,
    /// The video that controls the clip (VACE).
    pub control: Option<&'a dyn SourceVideo>,
    /// How closely it does: 1.0 as in training, 0.0 not at all.
    pub control_strength: f32,
    /// Whether to generate sound.
    pub audio: bool,
}

impl Generation<'_> {
    /// The delivered clip.
    pub(crate) fn clip(&self) -> ClipPlan {
        ClipPlan {
            size: self.crop.size,
            fps: self.fps,
            frames: self.keep.count(),
            audio: self.audio,
        }
    }

    /// The frame of a source (`source_frames` frames at `source_fps`) that controls rendered frame
    /// `index`: the one shown at that time; after the end, the last one.
    pub(crate) fn control_frame(&self, index: u32, source_fps: u32, source_frames: u32) -> u32 {
        let time = u64::from(index) * u64::from(source_fps);
        let fps = u64::from(self.fps.max(1));
        // Nearest source frame in time. Example: 16 frames/s from a source of 24: frame 1 shows
        // source frame 2 (1.5 rounded up).
        let nearest = (time + fps / 2) / fps;
        nearest.min(u64::from(source_frames.saturating_sub(1))) as u32
    }
}

/// Escapes `prompt` so that the library's prompt parser (`parse_prompt_attention`), which all
/// families use, returns its words unweighted.
///
/// In the parser's grammar, `(word)` and `[word]` change weights, `(word:1.3)` sets one, `BREAK`
/// weighs minus one, and `\(` is the only escape that is removed again. An invalid weight, as in
/// `(well :.)`, throws an exception that nobody catches. So this escapes opening brackets, which
/// makes closing ones literal, and respells the other commands: `[` as `(`, `\` as `/`, `16:9)` as
/// `16:9 )`.
pub(crate) fn literal(prompt: &str) -> String {
    let mut text = String::with_capacity(prompt.len() + 16);
    let mut after_colon = false;
    for c in prompt.chars() {
        match c {
            // It would end a C string.
            '\0' => text.push(' '),
            '(' | '[' => text.push_str("\\("),
            ')' | ']' if after_colon => text.push_str(" )"),
            ']' => text.push(')'),
            '\\' => text.push('/'),
            _ => text.push(c),
        }
        // A number may stand between the colon and the bracket: `16:9)`.
        after_colon = match c {
            ':' => true,
            '+' | '-' | '.' | '0'..='9' => after_colon,
            _ => false,
        };
    }
    text.replace("BREAK", "break")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_words_stay_as_they_are() {
        for words in [
            "A fox in the snow, at dawn: quiet.",
            "雪の中の狐",
            "at 16:9, really) yes",
        ] {
            assert_eq!(literal(words), words);
        }
    }

    #[test]
    fn what_the_parser_would_obey_is_respelt() {
        assert_eq!(literal("a (red) hat"), "a \\(red) hat");
        assert_eq!(literal("a [red] hat"), "a \\(red) hat");
        assert_eq!(literal("(16:9)"), "\\(16:9 )");
        assert_eq!(literal("(well :.)"), "\\(well :. )");
        assert_eq!(literal("BREAK BREAK"), "break break");
        assert_eq!(literal("a\\(b\0c"), "a/\\(b c");
    }

    proptest::proptest! {
        /// The parser's grammar, as far as a literal text can contain it.
        #[test]
        fn no_command_is_left(prompt in "[ a():\\[\\]\\\\.0-9BREAK-]{0,40}") {
            let text = literal(&prompt);
            let unescaped = text.replace("\\(", "");
            proptest::prop_assert!(!unescaped.contains(['(', '[', ']', '\\']));
            proptest::prop_assert!(!text.contains("BREAK"));
            for (colon, _) in text.match_indices(':') {
                let number = text[colon + 1..].trim_start_matches(
                    |c: char| "+-.".contains(c) || c.is_ascii_digit(),
                );
                let length = text.len() - colon - 1 - number.len();
                proptest::prop_assert!(length == 0 || !number.starts_with(')'));
            }
        }
    }
}
