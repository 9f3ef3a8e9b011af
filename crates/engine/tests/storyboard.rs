//! What the storyboard engine promises, seen from outside: outline, sameness, colour, light,
//! legible captions, calm pictures, clean sound, flat memory.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::num::NonZeroUsize;

use kinora_contract::size::listed_sizes;
use kinora_contract::{FrameSize, Inputs, Seconds, Size, VideoSpec};
use kinora_engine::storyboard::{Options, Storyboard};
use kinora_engine::{Control, Engine, EngineError, Job, Sink, conformance};
use proptest::prelude::*;

const SMALL: Size = Size::new(320, 180);

fn spec(prompt: &str, size: Size, seconds: u32, seed: u32) -> VideoSpec {
    VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: prompt.to_owned(),
        negative_prompt: None,
        seconds: Seconds::Fixed(seconds),
        frame: FrameSize::Fixed(size),
        seed,
        generate_audio: true,
        inputs: Inputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

/// Keeps frames (up to `limit`, then stops the engine) and all sound.
struct Tape {
    frames: Vec<Vec<u8>>,
    pcm: Vec<f32>,
    limit: usize,
}

impl Sink for Tape {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        if self.frames.len() == self.limit {
            return Err(EngineError::Cancelled);
        }
        self.frames.push(rgb.to_vec());
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.pcm.extend_from_slice(pcm);
        Ok(())
    }
}

fn engine(threads: usize) -> Storyboard {
    Storyboard::new(Options {
        threads: NonZeroUsize::new(threads),
    })
}

fn tape(spec: &VideoSpec, threads: usize, limit: usize) -> Tape {
    let engine = engine(threads);
    let clip = engine.plan(spec).unwrap();
    let mut tape = Tape {
        frames: Vec::new(),
        pcm: Vec::new(),
        limit,
    };
    match engine.generate(&Job { spec, clip }, &mut tape, &Control::default()) {
        Ok(()) => assert_eq!(tape.frames.len(), clip.frames as usize),
        Err(EngineError::Cancelled) if tape.frames.len() == limit => {}
        Err(error) => panic!("{error}"),
    }
    tape
}

fn whole(spec: &VideoSpec) -> Tape {
    tape(spec, 2, usize::MAX)
}

/// Mean of each component over the part of a frame that lies within the given shares.
fn mean(rgb: &[u8], size: Size, across: (f64, f64), down: (f64, f64)) -> [f64; 3] {
    let (width, height) = (size.width as usize, size.height as usize);
    let part = |share: (f64, f64), length: usize| {
        (share.0 * length as f64) as usize..(share.1 * length as f64) as usize
    };
    let mut sum = [0.0; 3];
    let mut count = 0.0;
    for y in part(down, height) {
        for x in part(across, width) {
            for (sum, byte) in sum.iter_mut().zip(&rgb[(y * width + x) * 3..]) {
                *sum += f64::from(*byte);
            }
            count += 1.0;
        }
    }
    sum.map(|sum| sum / count)
}

fn change(a: &[u8], b: &[u8]) -> f64 {
    let sum: u64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| u64::from(a.abs_diff(*b)))
        .sum();
    sum as f64 / a.len() as f64
}

#[test]
fn the_engine_conforms() {
    let prompt = "A boat at sea. Then a fox in the forest at night.";
    conformance::check(&engine(2), &spec(prompt, SMALL, 4, 7)).unwrap();
    let silent = VideoSpec {
        generate_audio: false,
        ..spec("a red kite", SMALL, 2, 1)
    };
    conformance::check(&engine(3), &silent).unwrap();
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let spec = spec(
        "snow falls on a village at dusk. Then a train in the rain.",
        SMALL,
        5,
        99,
    );
    let one = tape(&spec, 1, usize::MAX);
    for threads in [2, 5] {
        let many = tape(&spec, threads, usize::MAX);
        assert!(
            one.frames == many.frames,
            "{threads} threads paint other frames"
        );
        assert!(one.pcm == many.pcm, "{threads} threads make other sound");
    }
}

#[test]
fn another_seed_is_another_composition() {
    let frame = |seed| {
        tape(&spec("mountains by a lake", SMALL, 2, seed), 2, 10)
            .frames
            .remove(9)
    };
    let apart = change(&frame(1), &frame(2));
    assert!(
        apart > 6.0,
        "seeds 1 and 2 differ by only {apart:.1} of 255"
    );
}

#[test]
fn every_listed_size_is_planned_and_painted_exactly() {
    for size in listed_sizes() {
        let spec = spec("a lighthouse on a cliff", size, 2, 3);
        let clip = engine(2).plan(&spec).unwrap();
        assert_eq!((clip.size, clip.fps, clip.frames), (size, 24, 48));
        let tape = tape(&spec, 2, 1);
        assert_eq!(tape.frames[0].len() as u64, size.pixels() * 3, "{size}");
    }
}

#[test]
fn what_is_not_offered_is_refused() {
    let plain = spec("a cat", SMALL, 2, 1);
    let frames = Inputs::Frames {
        first: "https://example.com/a.png".to_owned(),
        last: None,
    };
    let refused = [
        VideoSpec {
            inputs: frames,
            ..plain.clone()
        },
        VideoSpec {
            draft: true,
            ..plain.clone()
        },
        VideoSpec {
            seconds: Seconds::Auto,
            ..plain.clone()
        },
    ];
    for spec in refused {
        let plan = engine(1).plan(&spec);
        assert!(matches!(plan, Err(EngineError::Unsupported(_))), "{plan:?}");
    }
}

#[test]
fn colours_follow_the_prompt() {
    let count = |prompt: &str, like: fn(i32, i32, i32) -> bool| {
        let frame = tape(&spec(prompt, SMALL, 2, 5), 2, 25).frames.remove(24);
        let pixels = frame.chunks_exact(3);
        pixels
            .filter(|p| like(i32::from(p[0]), i32::from(p[1]), i32::from(p[2])))
            .count()
    };
    let red: fn(i32, i32, i32) -> bool = |r, g, b| r > 90 && r > g + 60 && r > b + 60;
    let green: fn(i32, i32, i32) -> bool = |r, g, b| g > 60 && g > r + 25 && g > b + 15;
    let (with, without) = (
        "a red balloon over a meadow on a clear day",
        "a yellow balloon over a meadow on a clear day",
    );
    assert!(count(with, red) > count(without, red) + 400);
    let (with, without) = (
        "a green balloon in the desert at golden hour",
        "a red balloon in the desert at golden hour",
    );
    assert!(count(with, green) > count(without, green) + 400);
    let (with, without) = (
        "a red sky above the sea at dusk",
        "a green sky above the sea at dusk",
    );
    assert!(count(with, red) > count(without, red) + 4_000);
    assert!(count(without, green) > count(with, green) + 4_000);
}

#[test]
fn night_is_darker_than_noon() {
    for place in [
        "the sea",
        "a city street",
        "mountains",
        "a forest",
        "a desert",
        "a meadow",
    ] {
        let light = |hour: &str| {
            let spec = spec(&format!("{place} at {hour}"), SMALL, 2, 11);
            let frame = tape(&spec, 2, 25).frames.remove(24);
            mean(&frame, SMALL, (0.0, 1.0), (0.0, 0.8))
                .iter()
                .sum::<f64>()
        };
        assert!(light("night") < 0.6 * light("noon"), "{place}");
    }
}

/// Relative luminance (WCAG 2.2) of an sRGB byte triple.
fn luminance(pixel: &[u8]) -> f64 {
    let linear = |byte: u8| {
        let value = f64::from(byte) / 255.0;
        if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * linear(pixel[0]) + 0.7152 * linear(pixel[1]) + 0.0722 * linear(pixel[2])
}

#[test]
fn the_caption_is_legible_and_inside_the_title_safe_area() {
    let size = Size::new(854, 480);
    let prompts = [
        "a white desert at noon, white sky",
        "an orange sunset at the beach",
        "夜晚的城市",
    ];
    for prompt in prompts {
        let frame = tape(&spec(prompt, size, 3, 8), 2, 37).frames.remove(36);
        let width = size.width as usize;
        let letter = |p: &[u8]| p.iter().all(|byte| *byte > 200);
        let mut around = Vec::new();
        let mut letters = 0;
        for y in (size.height as usize * 4 / 5)..size.height as usize {
            for x in 0..width {
                let at = (y * width + x) * 3;
                if !letter(&frame[at..at + 3]) {
                    continue;
                }
                letters += 1;
                assert!(
                    x > width / 20 && x < width * 19 / 20,
                    "{prompt}: letter at column {x}"
                );
                assert!(
                    y < size.height as usize * 95 / 100,
                    "{prompt}: letter at row {y}"
                );
                // Four pixels away sideways the outline has ended and the band is left.
                let beside = at + 3 * 4;
                if !letter(&frame[beside..beside + 3]) {
                    around.push(luminance(&frame[beside..beside + 3]));
                }
            }
        }
        assert!(letters > 120, "{prompt}: {letters} letter pixels");
        around.sort_by(f64::total_cmp);
        let behind = around[around.len() / 2];
        let contrast = (luminance(&[200, 200, 200]) + 0.05) / (behind + 0.05);
        assert!(contrast >= 4.5, "{prompt}: contrast {contrast:.1}");
    }
}

#[test]
fn nothing_flickers() {
    for prompt in [
        "the sea at golden hour",
        "a neon city in the rain",
        "a forest in fog",
        "a whale",
    ] {
        let tape = whole(&spec(prompt, SMALL, 4, 21));
        // Past the fade from black and before the fade out.
        let steps: Vec<f64> = tape.frames[10..86]
            .windows(2)
            .map(|pair| change(&pair[0], &pair[1]))
            .collect();
        let mut sorted = steps.clone();
        sorted.sort_by(f64::total_cmp);
        let (middle, most) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
        assert!(
            most < middle * 1.8 + 0.4,
            "{prompt}: usually {middle:.2}, once {most:.2}"
        );
        let light: Vec<f64> = tape.frames[10..86]
            .iter()
            .map(|frame| {
                mean(frame, SMALL, (0.0, 1.0), (0.0, 1.0))
                    .iter()
                    .sum::<f64>()
                    / 3.0
            })
            .collect();
        let jump = light
            .windows(2)
            .map(|two| (two[1] - two[0]).abs())
            .fold(0.0, f64::max);
        assert!(jump < 0.6, "{prompt}: the light jumps by {jump:.2}");
    }
}

#[test]
fn sound_is_whole_quiet_at_the_ends_and_never_harsh() {
    for prompt in [
        "a storm at sea, then a quiet forest at night",
        "a meadow in the morning",
    ] {
        let pcm = whole(&spec(prompt, Size::new(64, 64), 6, 4)).pcm;
        assert_eq!(pcm.len(), 6 * 48_000 * 2);
        assert!(pcm.iter().all(|sample| sample.abs() <= 0.7), "{prompt}");
        assert!(pcm[..2].iter().all(|sample| sample.abs() < 1e-3));
        assert!(
            pcm[pcm.len() - 2..]
                .iter()
                .all(|sample| sample.abs() < 1e-3)
        );
        let loudness = |part: &[f32]| {
            (part.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / part.len() as f64).sqrt()
        };
        for (second, part) in pcm[48_000..pcm.len() - 3 * 48_000]
            .chunks(48_000)
            .enumerate()
        {
            let level = 20.0 * loudness(part).log10();
            assert!(
                (-38.0..-12.0).contains(&level),
                "{prompt}: {level:.0} dB in half-second {second}"
            );
        }
        let step = pcm.chunks_exact(2).zip(pcm.chunks_exact(2).skip(1));
        let most = step
            .map(|(a, b)| (a[0] - b[0]).abs())
            .fold(0.0_f32, f32::max);
        assert!(most < 0.2, "{prompt}: a step of {most}");
    }
}

#[test]
fn a_negative_prompt_takes_things_away() {
    let sky = |avoid: Option<&str>| {
        let mut spec = spec("a red balloon over a meadow at noon", SMALL, 2, 5);
        spec.negative_prompt = avoid.map(str::to_owned);
        tape(&spec, 2, 25).frames.remove(24)
    };
    let red = |frame: &[u8]| {
        let deep = |p: &&[u8]| p[0] > 110 && u16::from(p[0]) > u16::from(p[1]) + 70;
        frame.chunks_exact(3).filter(deep).count()
    };
    let (with, without) = (red(&sky(None)), red(&sky(Some("balloons, rain"))));
    assert!(
        with > without + 400,
        "{with} red pixels with, {without} without"
    );
}

#[test]
fn frames_come_out_before_the_clip_is_painted() {
    // A clip of 15 s at this size is 8.4 GB; a sink that stops after three frames must not
    // have waited for it, nor have more painted than the threads' own few frames.
    let spec = spec("a red kite on the beach", Size::new(2520, 1080), 15, 2);
    let tape = tape(&spec, 2, 3);
    assert_eq!(tape.frames.len(), 3);
    assert!(tape.pcm.len() <= 3 * 4_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

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

const WORDS: &[&str] = &[
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
