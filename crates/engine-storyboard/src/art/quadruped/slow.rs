//! Animals without legs: the snake, whose body follows the track of its head, and the snail.

use crate::art::ActMoment;
use crate::art::rig::PartPose;
use crate::subject::Act;

/// Distance between two rings of a snake's drawing, in its square of 100.
const RING: f32 = 2.3;
/// Length of a bend of its track, and its amplitude.
const BEND: f32 = 26.0;
const SIDE: f32 = 4.2;

/// The pose of the part `name`.
pub(super) fn pose(name: &str, m: &ActMoment) -> PartPose {
    let asleep = m.act == Act::Sleep;
    let t = m.t + f32::from(m.nth) * 1.37;
    if let Some(ring) = name.strip_prefix("ring-") {
        return PartPose::shifted(0.0, bend(ring.parse().unwrap_or(0.0), m.gone));
    }
    let slow = (t * 0.9).sin();
    match name {
        "figure" if matches!(m.act, Act::Jump | Act::Dance) => {
            PartPose::turned(3.0 * (t * 6.0).sin())
        }
        // The neck begins where the last ring is.
        "neck" => {
            PartPose::turned(if asleep { 58.0 } else { 2.5 * slow }).shift(0.0, bend(RINGS, m.gone))
        }
        "head" if asleep => PartPose::turned(-56.0),
        "head" => PartPose::turned(3.0 * (t * 0.7).sin()),
        "tongue" => {
            let out = (t * 0.8).fract() < 0.3 && !asleep;
            let flicker = 0.6 + 0.4 * (t * 24.0).sin();
            PartPose::scaled(if out { flicker } else { 0.02 }, 1.0)
        }
        // A snail stretches and contracts as it moves; asleep it is in its shell.
        "foot" if asleep => PartPose::scaled(0.62, 0.8),
        "foot" => PartPose::scaled(1.0 + 0.05 * (m.gone * 90.0 + t * 0.6).sin(), 1.0),
        "horns" if asleep => PartPose::HIDDEN,
        "horn-near" => PartPose::turned(8.0 * (t * 1.1).sin()),
        "horn-far" => PartPose::turned(8.0 * (t * 1.1 - 1.2).sin()),
        "eye" if asleep => PartPose::HIDDEN,
        "lid" if !asleep => PartPose::HIDDEN,
        _ => PartPose::REST,
    }
}

/// Rings of the drawing.
const RINGS: f32 = 24.0;

/// Sideways offset of ring `nth`. The track does not move on the ground.
fn bend(nth: f32, gone: f32) -> f32 {
    let along = nth * RING + gone * 100.0;
    // The tail's end and the neck move less.
    let calm = (nth / 5.0)
        .min(1.0)
        .min(0.35 + (RINGS - nth) / 10.0)
        .clamp(0.0, 1.0);
    SIDE * calm * (along / BEND * std::f32::consts::TAU).sin()
}
