//! How long a clip is when the request leaves it to the engine. It counts; it judges nothing.

use kinora_contract::limits::{SECONDS_MAX, SECONDS_MIN};

use super::lexicon::is_cjk;
use super::script::beats;

/// Frames per second of every clip but an edit, which keeps its source's.
pub(crate) const FPS: u32 = 24;
/// A beat lasts as long as its words take to read, within these bounds, seconds.
const BEAT_S_MIN: f32 = 2.0;
const BEAT_S_MAX: f32 = 5.0;
/// Time to take in the picture before the words are read, seconds.
const GLANCE_S: f32 = 1.0;
/// What a reader takes in per second: characters, and those of Chinese, Japanese or Korean.
const CHARACTERS_PER_S: f32 = 17.0;
const IDEOGRAPHS_PER_S: f32 = 7.0;
/// The least time for each reference image, seconds.
const IMAGE_S: f32 = 1.5;

/// The length in whole seconds of a clip of `prompt` and so many reference images.
pub(crate) fn seconds(prompt: &str, images: usize) -> u32 {
    let told: f32 = beats(prompt)
        .iter()
        .map(|beat| {
            let wide = beat.text.chars().filter(|c| is_cjk(*c)).count() as f32;
            let all = beat.text.chars().count() as f32;
            let read = (all - wide) / CHARACTERS_PER_S + wide / IDEOGRAPHS_PER_S;
            (GLANCE_S + read).clamp(BEAT_S_MIN, BEAT_S_MAX)
        })
        .sum();
    let shown = images as f32 * IMAGE_S;
    (told.max(shown).ceil() as u32).clamp(SECONDS_MIN, SECONDS_MAX)
}
