//! The posture of people at rest, from which other postures start. It draws nothing.

use std::f32::consts::TAU;

use super::build::Build;
use super::skeleton::{Limb, Mouth, Posture};
use crate::art::Moment;

pub(super) fn wave(t: f32, hz: f32) -> f32 {
    (t * hz * TAU).sin()
}

/// Breathes, shifts its weight and looks around.
pub(super) fn stand(build: &Build, m: &Moment) -> Posture {
    let sway = wave(m.t, 0.13);
    let row = build.ankle_row();
    let breath = wave(m.t, 0.3);
    Posture {
        hip: (sway * 0.7, 0.12),
        lean: 0.6 * wave(m.t, 0.11),
        nod: 2.6 * wave(m.t, 0.17),
        arms: [
            Limb::Turn(-7.0 + 1.6 * breath, 13.0 + 2.0 * sway),
            Limb::Turn(7.0 - 1.6 * breath, 12.0 - 2.0 * sway),
        ],
        legs: [
            Limb::To(50.0 - build.hips() - 0.6, row),
            Limb::To(50.0 + build.hips() + 0.8, row),
        ],
        feet: [0.0; 2],
        tip: 0.0,
        turn: 1.0,
        asleep: false,
        mouth: Mouth::Smile,
        breath,
    }
}
