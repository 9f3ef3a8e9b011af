//! Whatever the prompt: frames, never a panic.

use kinora_contract::Size;
use proptest::prelude::*;

use super::support::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_prompt_gives_frames(prompt in "\\PC{1,400}", avoid in "\\PC{0,60}", seed: u32) {
        let mut spec = spec(&prompt, Size::new(96, 54), 2, seed);
        spec.negative_prompt = Some(avoid);
        tape(&spec, 1, 2);
    }

    #[test]
    fn any_mixture_of_known_words_gives_frames(
        words in prop::collection::vec(prop::sample::select(WORDS), 1..40),
        seconds in 2_u32..16,
        upright: bool,
        seed: u32,
    ) {
        let size = if upright { Size::new(54, 96) } else { Size::new(128, 54) };
        tape(&spec(&words.join(" "), size, seconds, seed), 1, 2);
    }

    #[test]
    fn five_thousand_characters_give_frames(c in any::<char>(), seed: u32) {
        let prompt: String = std::iter::repeat_n(c, 5_000).collect();
        tape(&spec(&prompt, Size::new(96, 54), 15, seed), 1, 1);
    }
}

pub(crate) const WORDS: &[&str] = &[
    "remove the",
    "add",
    "instead of",
    "three",
    "huge",
    "winter",
    "sea",
    "city",
    "forest",
    "desert",
    "room",
    "space",
    "underwater",
    "mountains",
    "lake",
    "hills",
    "clouds",
    "abstract",
    "night",
    "dawn",
    "dusk",
    "noon",
    "rain",
    "snow",
    "storm",
    "fog",
    "wind",
    "balloon",
    "boat",
    "birds",
    "tree",
    "house",
    "car",
    "train",
    "cat",
    "dog",
    "horse",
    "camel",
    "woman",
    "fish",
    "whale",
    "rocket",
    "ufo",
    "lighthouse",
    "flower",
    "kite",
    "butterfly",
    "plane",
    "umbrella",
    "planet",
    "red",
    "teal",
    "and",
    "orange",
    "close-up",
    "aerial",
    "timelapse",
    "fast",
    "slowly",
    "rises",
    "falls",
    "pan left",
    "zoom in",
    "orbiting",
    "neon",
    "no",
    ".",
    ",",
    "then",
    "cut to",
    "Shot 1:",
    "Shot 2:",
    "猫",
    "雨",
    "红色",
    "。",
    "🦊",
    "\u{202e}",
    "sad",
    "dreamy",
];
