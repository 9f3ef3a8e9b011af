//! Nothing unasked: no fade, no sound where silence is wanted; and what moves, moves visibly.

use super::support::*;

/// Prompts that lead to abstract pictures.
const ABSTRACT: [&str; 8] = [
    "an abstract dream of teal and orange",
    "a sad idea",
    "the feeling of a monday",
    "geometric memory, joyful",
    "abstract, grey",
    "a dreamy idea of white",
    "abstract black on black",
    "ein abstraktes gefühl, abstrakt",
];

#[test]
fn abstract_pictures_move_visibly() {
    for (seed, prompt) in (1..).zip(ABSTRACT) {
        let frames = whole(&spec(prompt, SMALL, 4, seed)).frames;
        let steps = frames.iter().zip(&frames[24..]).step_by(8);
        let apart: Vec<f64> = steps.map(|(a, b)| change(a, b)).collect();
        let least = apart.iter().copied().fold(f64::MAX, f64::min);
        assert!(least >= 3.0, "{prompt}: {least:.1} of {apart:.1?}");
    }
}

/// Brightness of the first, the middle and the last frame.
fn ends(prompt: &str, seed: u32) -> [f64; 3] {
    let frames = whole(&spec(prompt, SMALL, 3, seed)).frames;
    [0, frames.len() / 2, frames.len() - 1].map(|at| picture_light(&frames[at]))
}

/// Mean light of the upper part of a frame, where no caption stands.
fn picture_light(rgb: &[u8]) -> f64 {
    let [r, g, b] = mean(rgb, SMALL, (0.0, 1.0), (0.1, 0.7));
    0.299 * r + 0.587 * g + 0.114 * b
}

#[test]
fn ends_are_as_bright_as_the_rest_unless_a_fade_is_asked_for() {
    for prompt in [
        "static shot of a mountain at noon",
        "static shot of a city at night",
        "the light fades over a still sea",
    ] {
        let [first, middle, last] = ends(prompt, 2);
        for (end, which) in [(first, "first"), (last, "last")] {
            assert!(
                (end / middle - 1.0).abs() < 0.05,
                "{prompt}: {which} {end:.1} of {middle:.1}"
            );
        }
    }
    for (prompt, comes, goes) in [
        ("static shot, fade in on a mountain at noon", true, false),
        ("a mountain at noon fades to black", false, true),
        (
            "fade from black. A mountain at noon, fade to black",
            true,
            true,
        ),
        ("una montaña al mediodía, fundido a negro", false, true),
        ("une montagne à midi, fondu au noir", false, true),
        ("ein Berg am Mittag, Abblende", false, true),
        ("淡入，中午的高山", true, false),
    ] {
        let [first, middle, last] = ends(prompt, 2);
        assert_eq!(
            first < 0.1 * middle,
            comes,
            "{prompt}: {first:.1} of {middle:.1}"
        );
        assert_eq!(
            last < 0.1 * middle,
            goes,
            "{prompt}: {last:.1} of {middle:.1}"
        );
    }
}
