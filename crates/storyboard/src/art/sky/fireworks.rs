//! Fireworks: rockets rise and burst into coloured sparks, which fall and fade. Every burst depends only on its
//! number.

use std::f32::consts::TAU;

use super::light::is_named;
use crate::art::effects::chance;
use crate::art::{Look, Moment};
use crate::colour::Rgb;
use crate::pen::{Ink, Pen};
use crate::subject::Subject;

/// Time between two launches of a mortar, seconds.
const PERIOD_S: f32 = 2.7;
/// Time from a launch to its burst, seconds.
const RISE_S: f32 = 0.75;
const MORTARS: u32 = 6;
const SPARKS: u32 = 30;
const COLOURS: [u32; 6] = [
    0xff_5a5a, 0xff_d24a, 0x6a_e08a, 0x6a_b4ff, 0xe0_7aff, 0xff_9a4a,
];

pub(super) fn draw(pen: &mut Pen, look: &Look, m: &Moment) {
    for mortar in 0..MORTARS {
        let turn = m.t / PERIOD_S + mortar as f32 / MORTARS as f32 + f32::from(m.nth) * 0.31;
        let shot = (turn.floor() as i32 as u32)
            .wrapping_mul(MORTARS)
            .wrapping_add(mortar)
            .wrapping_add(u32::from(m.nth) * 1000);
        let seconds = turn.rem_euclid(1.0) * PERIOD_S;
        // Side by side, so that bursts fill the sky evenly.
        let lane = (mortar * 5 % MORTARS) as f32 / (MORTARS as f32 - 1.0) - 0.5;
        let top = (
            50.0 + lane * 150.0 + (chance(shot * 7) - 0.5) * 24.0,
            58.0 - 62.0 * chance(shot * 7 + 1),
        );
        if seconds < RISE_S {
            rise(pen, top, seconds / RISE_S);
        } else {
            burst(
                pen,
                top,
                colour(look, shot),
                shot,
                (seconds - RISE_S) / (PERIOD_S - RISE_S),
            );
        }
    }
}

/// The colour of a burst: shades of the colour that the words name, otherwise any colour.
fn colour(look: &Look, shot: u32) -> Rgb {
    if is_named(look, Subject::Fireworks) {
        // Fire emits light: the scene's light does not dim it.
        return look.main.lift(0.06 + 0.12 * chance(shot * 7 + 3));
    }
    Rgb::hex(COLOURS[shot as usize % COLOURS.len()])
}

/// A rising rocket, which slows down.
fn rise(pen: &mut Pen, top: (f32, f32), share: f32) {
    let at = |share: f32| {
        let left = (1.0 - share).max(0.0);
        (top.0 + 4.0 * left, top.1 + (150.0 - top.1) * left * left)
    };
    let glow = Rgb::hex(0xff_e0a0);
    for step in 0..5_u8 {
        let back = f32::from(step) * 0.035;
        let trail = [at(share - back), at(share - back - 0.035)];
        pen.stroke(
            &trail,
            1.5 - 0.2 * f32::from(step),
            Ink::Flat(glow, 0.9 - 0.18 * f32::from(step)),
        );
    }
}

/// Sparks at `age`, 0.0 to 1.0, after the burst.
fn burst(pen: &mut Pen, top: (f32, f32), colour: Rgb, shot: u32, age: f32) {
    let size = 30.0 + 18.0 * chance(shot * 7 + 2);
    let bright = (1.0 - age * age).max(0.0);
    let flash = (1.0 - age * 4.0).max(0.0);
    if flash > 0.0 {
        pen.glow(top.0, top.1, size * 0.8, colour, 0.8 * flash);
    }
    // Air slows the sparks down, then they sink.
    let at = |angle: f32, reach: f32, age: f32| {
        let out = size * reach * (1.0 - (-3.4 * age).exp());
        (
            top.0 + out * angle.cos(),
            top.1 + out * angle.sin() + 22.0 * age * age,
        )
    };
    let hue = colour.mix(Rgb::WHITE, (0.7 - 2.4 * age).max(0.0));
    for spark in 0..SPARKS {
        let inner = spark.is_multiple_of(3);
        let angle = (spark as f32 + 0.5 * chance(shot ^ spark)) / SPARKS as f32 * TAU;
        let reach = if inner {
            0.55
        } else {
            0.92 + 0.12 * chance(shot + spark * 11)
        };
        let tail = [
            at(angle, reach, (age - 0.1 - 0.1 * age).max(0.0)),
            at(angle, reach, age),
        ];
        // Sparks twinkle before they go out.
        let twinkle = if age > 0.5 && (spark + (age * 40.0) as u32).is_multiple_of(3) {
            0.35
        } else {
            1.0
        };
        let colour = if inner { Rgb::hex(0xff_f0c0) } else { hue };
        streak(
            pen,
            tail,
            1.5 - 0.7 * age,
            Ink::Flat(colour, bright * twinkle),
        );
    }
}

/// A streak of light: a point behind, `half` as wide on each side ahead.
fn streak(pen: &mut Pen, [tail, head]: [(f32, f32); 2], half: f32, ink: Ink) {
    let (x, y) = (head.0 - tail.0, head.1 - tail.1);
    let long = x.hypot(y).max(0.01);
    let (ahead, aside) = (
        (x / long * half, y / long * half),
        (y / long * half, -x / long * half),
    );
    let shape = [
        tail,
        (head.0 + aside.0, head.1 + aside.1),
        (head.0 + ahead.0, head.1 + ahead.1),
        (head.0 - aside.0, head.1 - aside.1),
    ];
    pen.shape(&shape, ink);
}
