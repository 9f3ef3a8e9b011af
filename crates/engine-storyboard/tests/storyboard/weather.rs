//! Weather is seen, and heard when it is seen.

use super::support::*;

const RATE: usize = 48_000;

/// Frames at which the light of the upper part jumps up by more than a tenth of what it is.
fn flashes(frames: &[Vec<u8>]) -> Vec<usize> {
    let light: Vec<f64> = frames.iter().map(|one| sky(one)).collect();
    let usual = middle(&light);
    (1..light.len())
        .filter(|at| light[*at] > usual + 12.0 && light[*at] > light[at - 1] + 8.0)
        .collect()
}

fn sky(rgb: &[u8]) -> f64 {
    mean(rgb, SMALL, (0.0, 1.0), (0.05, 0.6))
        .iter()
        .sum::<f64>()
        / 3.0
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[test]
fn lightning_flashes_and_thunder_follows() {
    for (seed, prompt) in [
        (1, "lightning over the mountains at night, no music"),
        (2, "a thunderstorm over the sea, no music"),
        (3, "ein Gewitter über der Stadt, ohne Musik"),
    ] {
        let tape = whole(&spec(prompt, SMALL, 7, seed));
        let found = flashes(&tape.frames);
        assert!(found.len() >= 2, "{prompt}: {found:?}");
        let level = |from_s: f64, to_s: f64| {
            let at = |s: f64| ((s * RATE as f64) as usize * 2).min(tape.pcm.len());
            loudness(&tape.pcm[at(from_s)..at(to_s)])
        };
        let first = found[0] as f64 / 24.0;
        let (before, after) = (level(0.0, first), level(first + 0.1, first + 1.1));
        assert!(
            after > 1.7 * before,
            "{prompt}: {before:.4} to {after:.4} after {first:.2} s"
        );
        // Neither end is a flash, and a second has three at most.
        let frames = &tape.frames;
        let usual = middle(&frames.iter().map(|one| sky(one)).collect::<Vec<_>>());
        for end in [&frames[0], &frames[frames.len() - 1]] {
            assert!((sky(end) / usual - 1.0).abs() < 0.15, "{prompt}");
        }
        assert!(
            found.windows(4).all(|four| four[3] - four[0] > 24),
            "{found:?}"
        );
    }
}

#[test]
fn nothing_flashes_without_a_storm() {
    for prompt in [
        "rain over the mountains at night",
        "a blizzard in the mountains",
        "an aurora over a lake",
    ] {
        let frames = whole(&spec(prompt, SMALL, 4, 5)).frames;
        assert!(flashes(&frames).is_empty(), "{prompt}");
    }
}

/// One frame of `prompt`.
fn still(prompt: &str, seed: u32) -> Vec<u8> {
    tape(&spec(prompt, SMALL, 3, seed), 2, 1).frames.remove(0)
}

#[test]
fn a_rainbow_has_all_its_colours_and_an_aurora_is_green() {
    let strong = |rgb: &[u8], part: usize, wanted: fn(&[u8]) -> bool| {
        let above = &rgb[..rgb.len() * part / 10];
        above.chunks_exact(3).filter(|pixel| wanted(pixel)).count()
    };
    let red: fn(&[u8]) -> bool =
        |p| p[0] > p[2].saturating_add(28) && p[0] > p[1].saturating_add(12);
    let green: fn(&[u8]) -> bool =
        |p| p[1] > p[0].saturating_add(20) && p[1] > p[2].saturating_add(12);
    let leaf: fn(&[u8]) -> bool =
        |p| p[1] > p[2].saturating_add(10) && p[1] > p[0].saturating_add(10);
    for seed in 1..4 {
        let [with, without] = ["a rainbow over the mountains", "the mountains"]
            .map(|words| still(&format!("{words} at noon"), seed));
        for (hue, name) in [(red, "red"), (leaf, "green")] {
            let (with, without) = (strong(&with, 4, hue), strong(&without, 4, hue));
            assert!(
                with > without + 60,
                "{name}, seed {seed}: {with}, not {without}"
            );
        }
        let lights = strong(&still("northern lights over a lake", seed), 6, green);
        assert!(lights > 1_200, "seed {seed}: {lights}");
        assert!(strong(&still("a lake at night", seed), 6, green) < 200);
    }
}

#[test]
fn heavier_weather_falls_denser() {
    let busy = |prompt: &str| {
        let frames = tape(&spec(prompt, SMALL, 3, 2), 2, 14).frames;
        change(&frames[12], &frames[13])
    };
    let rain = [
        "a forest at noon",
        "drizzle in a forest at noon",
        "rain in a forest at noon",
        "heavy rain in a forest at noon",
    ];
    let rain = rain.map(busy);
    assert!(rain.is_sorted_by(|a, b| b > &(a * 1.15)), "{rain:.2?}");
    let snow = [
        "snow falls on a forest at noon",
        "a blizzard in a forest at noon",
    ]
    .map(busy);
    assert!(snow[1] > 1.5 * snow[0], "{snow:.2?}");
}

#[test]
fn there_is_one_sun_and_a_crescent_is_no_full_moon() {
    let bright = |rgb: &[u8]| {
        let above = &rgb[..rgb.len() / 2];
        above
            .chunks_exact(3)
            .filter(|p| p.iter().all(|part| *part > 190))
            .count()
    };
    let of = |words: &str| {
        let counts = (1..7).map(|seed| bright(&still(words, seed)));
        counts.sum::<usize>()
    };
    let (full, sickle) = (
        of("a full moon over the desert"),
        of("a crescent moon over the desert"),
    );
    assert!(sickle > 60 && sickle * 2 < full, "{sickle} of {full}");
}
