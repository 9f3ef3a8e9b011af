//! A colour word paints the thing that it stands beside, and nothing else: a patch of the colour
//! is there with the word and not without it, and the rest of the picture does not take it on.

use super::blobs::{BLUE, GREEN, Hues, RED, YELLOW, blobs, largest, share};
use super::support::*;

/// What a frame in the middle of the clip shows.
fn frame(prompt: &str, seed: u32) -> Vec<u8> {
    tape(&spec(prompt, SMALL, 2, seed), 2, 25).frames.remove(24)
}

/// The part of the frame that has the colour, patch and rest apart.
fn parts(prompt: &str, seed: u32, hues: Hues) -> (f64, f64) {
    let frame = frame(prompt, seed);
    let patch = largest(&frame, SMALL, hues);
    (patch, share(&frame, hues) - patch)
}

/// A prompt with a colour word, the same with another, the first colour, and its least patch.
const ROWS: [(&str, &str, Hues, f64); 8] = [
    (
        "a blue cat on a meadow at noon",
        "a brown cat on a meadow at noon",
        BLUE,
        0.006,
    ),
    (
        "a yellow dog on a meadow at noon",
        "a grey dog on a meadow at noon",
        YELLOW,
        0.006,
    ),
    (
        "a red car in a city street at noon",
        "a green car in a city street at noon",
        RED,
        0.006,
    ),
    (
        "a green boat on the sea at noon",
        "a red boat on the sea at noon",
        GREEN,
        0.006,
    ),
    (
        "un perro amarillo en un prado al mediodía",
        "un perro gris en un prado al mediodía",
        YELLOW,
        0.006,
    ),
    (
        "une voiture rouge dans une rue à midi",
        "une voiture bleue dans une rue à midi",
        RED,
        0.006,
    ),
    (
        "ein grünes Boot auf dem Meer am Mittag",
        "ein rotes Boot auf dem Meer am Mittag",
        GREEN,
        0.006,
    ),
    (
        "中午海上的一艘绿色小船",
        "中午海上的一艘红色小船",
        GREEN,
        0.006,
    ),
];

#[test]
fn a_colour_word_paints_its_thing() {
    let mut wrong = Vec::new();
    for (with, other, hues, least) in ROWS {
        for seed in [3, 4] {
            let ((patch, _), (strange, _)) = (parts(with, seed, hues), parts(other, seed, hues));
            if patch < least || patch < strange * 3.0 {
                wrong.push(format!(
                    "{with} (seed {seed}): {patch:.4} of the frame, {strange:.4} with another word"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_rest_of_the_picture_does_not_take_the_colour_on() {
    let mut wrong = Vec::new();
    let room = (
        "a blue cat in a room at noon",
        "a brown cat in a room at noon",
        BLUE,
        0.0,
    );
    for (with, other, hues, _) in ROWS.into_iter().chain([room]) {
        let ((_, rest), (_, plain)) = (parts(with, 3, hues), parts(other, 3, hues));
        if rest > plain + 0.08 {
            wrong.push(format!(
                "{with}: {rest:.3} of the frame, {plain:.3} with another word"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A colour whose thing is not known must not be poured over the picture instead.
#[test]
fn the_colour_of_an_unknown_thing_paints_nothing() {
    let mut wrong = Vec::new();
    for (with, without, hues) in [
        (
            "a purple glimworfle on a meadow at noon",
            "a glimworfle on a meadow at noon",
            (265.0, 320.0),
        ),
        (
            "a red quibblestick by the sea at noon",
            "a quibblestick by the sea at noon",
            RED,
        ),
    ] {
        let of = |prompt: &str| share(&frame(prompt, 3), hues);
        let (tinted, plain) = (of(with), of(without));
        if tinted > plain + 0.05 {
            wrong.push(format!(
                "{with}: {tinted:.3} of the frame, {plain:.3} before"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// How far the largest patch of the colour moves in the picture from the first second to the last
/// frame before the fade, the larger of the shares of width and height.
fn drift(prompt: &str, hues: Hues, seed: u32) -> f64 {
    let tape = tape(&spec(prompt, SMALL, 5, seed), 2, 113);
    let at = |nth: usize| blobs(&tape.frames[nth], SMALL, hues).first().copied();
    let (Some(first), Some(last)) = (at(8), at(112)) else {
        return 0.0;
    };
    let (x, y) = (first.at.0 - last.at.0, first.at.1 - last.at.1);
    x.abs().max(y.abs())
}

#[test]
fn the_balloon_of_the_readme_drifts() {
    for seed in [1, 2, 42] {
        let far = drift("A red balloon drifts over a calm sea at dawn", RED, seed);
        assert!(far >= 0.05, "seed {seed}: {far:.3} of the frame");
    }
}
