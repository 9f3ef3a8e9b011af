//! What is to be heard, and what is not.

use kinora_contract::{Size, VideoSpec};
use kinora_engine::ClipPlanner;

use super::support::*;

const RATE: usize = 48_000;

fn pcm(prompt: &str, seconds: u32, seed: u32) -> Vec<f32> {
    whole(&spec(prompt, Size::new(64, 64), seconds, seed)).pcm
}

#[test]
fn sound_is_whole_free_of_clicks_and_never_harsh() {
    for prompt in [
        "a storm at sea, then a quiet forest at night",
        "a meadow in the morning",
        "thunder and lightning over a street, a woman walks",
        "fireworks over a city, bells ring, a campfire",
        "a train in a blizzard. Then a car in heavy rain",
    ] {
        let pcm = pcm(prompt, 6, 4);
        assert_eq!(pcm.len(), 6 * RATE * 2);
        assert!(pcm.iter().all(|sample| sample.abs() <= 0.7), "{prompt}");
        let ends = [&pcm[..2], &pcm[pcm.len() - 2..]].concat();
        assert!(ends.iter().all(|sample| sample.abs() < 1e-3));
        for (half, part) in pcm.chunks(RATE).enumerate() {
            let level = 20.0 * loudness(part).log10();
            assert!(
                (-38.0..-10.0).contains(&level),
                "{prompt}: {level:.0} dB in half-second {half}"
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
fn both_ends_are_as_loud_as_the_rest() {
    for prompt in [
        "a meadow in the morning",
        "waves on a beach",
        "a city at noon",
    ] {
        let pcm = pcm(prompt, 8, 3);
        let all = loudness(&pcm);
        for (part, which) in [(&pcm[..RATE], "first"), (&pcm[pcm.len() - RATE..], "last")] {
            let ratio = loudness(part) / all;
            assert!(
                ratio > 0.5,
                "{prompt}: the {which} half-second at {ratio:.2}"
            );
        }
    }
}

#[test]
fn silence_is_silent_where_it_is_asked_for() {
    for prompt in [
        "a storm at sea, no sound",
        "a silent film: a train in the rain",
        "the waves of the sea in silence",
        "a lake, silent.",
        "Mute. A city at noon. Then thunder over a forest.",
        "olas del mar sin sonido",
        "la pluie sur la ville, sans son",
        "ein Gewitter über dem See, ohne Ton",
        "城市里的雨，静音",
    ] {
        let silent = VideoSpec {
            generate_audio: true,
            ..spec(prompt, Size::new(64, 64), 2, 4)
        };
        assert!(engine(1).plan(&silent, &NONE).unwrap().audio);
        let pcm = whole(&silent).pcm;
        assert_eq!(pcm.len(), 2 * RATE * 2, "{prompt}");
        assert!(pcm.iter().all(|sample| sample.to_bits() == 0), "{prompt}");
    }
}

#[test]
fn a_silent_place_is_calm_but_heard() {
    for prompt in [
        "a silent lake at dawn",
        "a quiet forest",
        "a meadow, no rain",
    ] {
        assert!(loudness(&pcm(prompt, 2, 4)) > 0.01, "{prompt}");
    }
}

#[test]
fn without_music_the_place_is_still_heard() {
    let with = pcm("waves on a beach at noon", 4, 3);
    for prompt in [
        "waves on a beach at noon, no music",
        "waves on a beach at noon without music",
    ] {
        let without = loudness(&pcm(prompt, 4, 3));
        assert!(without > 0.004, "{prompt}: {without:.4}");
        assert!(without < 0.9 * loudness(&with), "{prompt}: {without:.4}");
    }
    let spoken = VideoSpec {
        negative_prompt: Some("people, music".to_owned()),
        ..spec("waves on a beach at noon", Size::new(64, 64), 4, 3)
    };
    assert!(loudness(&whole(&spoken).pcm) < 0.9 * loudness(&with));
    let hushed = VideoSpec {
        negative_prompt: Some("sound".to_owned()),
        ..spoken
    };
    assert!(whole(&hushed).pcm.iter().all(|sample| *sample == 0.0));
}

/// Loudness of what hisses (the steps between samples), without music.
fn hiss(words: &str) -> f64 {
    let pcm = pcm(&format!("{words}, no music"), 3, 6);
    let steps = pcm.windows(3).map(|three| three[2] - three[0]);
    loudness(&steps.collect::<Vec<f32>>())
}

#[test]
fn rain_is_as_loud_as_it_is_heavy() {
    let city = [
        "a city",
        "drizzle over a city",
        "rain over a city",
        "heavy rain over a city",
    ];
    let levels = city.map(|words| hiss(&format!("{words} at noon")));
    assert!(
        levels.windows(2).all(|two| two[1] > 1.3 * two[0]),
        "{levels:.4?}"
    );
}

#[test]
fn what_is_shown_is_heard() {
    let level = |words: &str| loudness(&pcm(&format!("{words}, no music"), 3, 6));
    let meadow = level("a meadow at noon");
    for words in [
        "a car on a meadow at noon",
        "a train on a meadow at noon",
        "a campfire on a meadow at noon",
    ] {
        assert!(level(words) > 1.2 * meadow, "{words}");
    }
    // Birds by day and crickets by night sing high; a storm silences both.
    assert!(hiss("a meadow at night") > 3.0 * hiss("a room at night"));
}

#[test]
fn walkers_are_heard_at_their_pace() {
    let pcm = pcm("a woman walks in a room, no music", 6, 2);
    let mono: Vec<f32> = pcm.chunks_exact(2).map(|pair| pair[0]).collect();
    let levels: Vec<f64> = mono.chunks(RATE / 50).map(loudness).collect();
    let quiet = {
        let mut sorted = levels.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    // Each step rises out of the quiet once.
    let above: Vec<bool> = levels.iter().map(|level| *level > 2.0 * quiet).collect();
    let steps = above.windows(2).filter(|two| !two[0] && two[1]).count();
    assert!((9..=13).contains(&steps), "{steps} steps in 6 s");
}
