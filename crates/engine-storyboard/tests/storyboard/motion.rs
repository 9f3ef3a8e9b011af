//! The camera goes where the words send it, in four languages, measured in the picture: what a
//! camera that turns left sees moves to the right.

use super::field::{Moved, moved};
use super::support::*;

/// How the picture moves in the middle of the clip that `prompt` makes.
fn seen(prompt: &str, seed: u32) -> Moved {
    let tape = tape(&spec(prompt, SMALL, 2, seed), 2, 41);
    let frames: Vec<&[u8]> = (8..=40)
        .step_by(8)
        .map(|at| tape.frames[at].as_slice())
        .collect();
    moved(&frames, SMALL)
}

/// Asserts about every prompt of `prompts`.
fn all(prompts: &[&str], holds: fn(&Moved) -> bool) {
    let mut wrong = Vec::new();
    for (seed, prompt) in (1..).zip(prompts) {
        let moved = seen(prompt, seed);
        if !holds(&moved) {
            wrong.push(format!("{prompt} (seed {seed}): {moved:.2?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn sideways(moved: &Moved) -> bool {
    moved.down.abs() < moved.right.abs() * 0.35 && (moved.scale - 1.0).abs() < 0.03
}

fn upright(moved: &Moved) -> bool {
    moved.right.abs() < moved.down.abs() * 0.35 && (moved.scale - 1.0).abs() < 0.03
}

#[test]
fn a_pan_to_the_left_moves_the_picture_to_the_right() {
    let prompts = [
        "the camera pans left over a city at noon",
        "panning slowly to the left, a forest at noon",
        "the camera pans from right to left across a city at noon",
        "la cámara gira hacia la izquierda sobre la ciudad al mediodía",
        "la caméra fait un panoramique vers la gauche sur la ville à midi",
        "die Kamera schwenkt am Mittag nach links über die Stadt",
    ];
    all(&prompts, |moved| moved.right > 3.0 && sideways(moved));
}

#[test]
fn a_pan_to_the_right_moves_the_picture_to_the_left() {
    let prompts = [
        "the camera pans right over a city at noon",
        "a city at noon, the camera pans from left to right",
        "paneo lento hacia la derecha sobre la ciudad al mediodía",
        "panoramique lent vers la droite sur la forêt à midi",
        "langsamer Schwenk nach rechts über die Stadt am Mittag",
    ];
    all(&prompts, |moved| moved.right < -3.0 && sideways(moved));
}

#[test]
fn a_tilt_up_moves_the_picture_down() {
    let prompts = [
        "the camera tilts up, a city at noon",
        "slow tilt up along the trees of a forest at noon",
        "la cámara se inclina hacia arriba, una ciudad al mediodía",
        "la caméra monte vers le haut, une ville à midi",
        "die Kamera schwenkt nach oben, eine Stadt am Mittag",
    ];
    all(&prompts, |moved| moved.down > 2.0 && upright(moved));
}

#[test]
fn a_tilt_down_moves_the_picture_up() {
    let prompts = [
        "the camera tilts down, a city at noon",
        "la cámara se inclina hacia abajo, una ciudad al mediodía",
        "panoramique vers le bas, une ville à midi",
        "die Kamera schwenkt nach unten, eine Stadt am Mittag",
    ];
    all(&prompts, |moved| moved.down < -2.0 && upright(moved));
}

#[test]
fn a_zoom_in_enlarges_the_picture() {
    let prompts = [
        "the camera zooms in on a city at noon",
        "a slow push in, a forest at noon",
        "zoom lento sobre la ciudad al mediodía",
        "zoom avant sur la ville à midi",
        "die Kamera zoomt auf die Stadt am Mittag heran",
    ];
    all(&prompts, |moved| moved.scale > 1.02);
}

#[test]
fn a_zoom_out_reduces_the_picture() {
    let prompts = [
        "the camera zooms out of a city at noon",
        "the camera pulls back from a city at noon",
        "la cámara se aleja de la ciudad al mediodía",
        "zoom arrière, une ville à midi",
        "die Kamera zoomt aus der Stadt heraus, Mittag",
    ];
    all(&prompts, |moved| moved.scale < 0.98);
}

#[test]
fn a_static_camera_stands_still() {
    let prompts = [
        "static shot of a city at noon",
        "the camera does not move, a city at noon",
        "plano fijo de la ciudad al mediodía",
        "plan fixe de la ville à midi",
        "feststehende Kamera, eine Stadt am Mittag",
    ];
    all(&prompts, |moved| {
        moved.right.hypot(moved.down) < 1.0 && (moved.scale - 1.0).abs() < 0.006
    });
}
