//! Postures off the ground: swimming, flying, floating without weight, falling and landing.

use std::f32::consts::TAU;

use super::build::Build;
use super::rest::{stand, wave};
use super::skeleton::{Limb, Mouth, Posture};
use crate::art::Moment;
use crate::subject::Act;

/// The crawl, at the water line of the feet's row.
pub(super) fn swim(build: &Build, m: &Moment) -> Posture {
    let turn = m.t * TAU * 0.62;
    let arm = |turn: f32| {
        let degrees = -turn.to_degrees().rem_euclid(360.0) + 180.0;
        // Bent while it moves forward above the water.
        Limb::Turn(degrees, 14.0 + 26.0 * (-turn.sin()).max(0.0))
    };
    let kick = |turn: f32| Limb::Turn(13.0 * (turn * 2.0).sin() - 3.0, 9.0);
    Posture {
        hip: (-8.0, 101.0 - build.pelvis_row() + wave(m.t, 0.62)),
        lean: -8.0 - build.stoop,
        nod: -46.0,
        arms: [arm(turn), arm(turn + TAU * 0.5)],
        legs: [kick(turn), kick(turn + TAU * 0.25)],
        feet: [-62.0; 2],
        tip: 82.0 + 3.0 * wave(m.t, 0.62),
        ..stand(build, m)
    }
}

pub(super) fn fly(build: &Build, m: &Moment) -> Posture {
    let drift = wave(m.t, 0.35);
    let upright = m.act == Act::Rise;
    Posture {
        hip: (-4.0, if upright { -2.0 } else { -8.0 }),
        lean: -4.0,
        nod: if upright { -14.0 } else { -34.0 },
        arms: [
            Limb::Turn(-62.0 + 7.0 * drift, -8.0),
            Limb::Turn(146.0 - 5.0 * drift, 6.0),
        ],
        legs: [
            Limb::Turn(-7.0 + 4.0 * drift, 12.0),
            Limb::Turn(5.0 - 4.0 * drift, 9.0),
        ],
        feet: [-50.0; 2],
        tip: if upright { 8.0 } else { 56.0 } + 3.0 * drift,
        mouth: Mouth::Open,
        ..stand(build, m)
    }
}

/// Weightless: limbs drift, the body slowly tumbles back and forth.
pub(super) fn float(build: &Build, m: &Moment) -> Posture {
    let drift = |rate: f32, phase: f32| (m.t * rate * TAU + phase).sin();
    Posture {
        hip: (1.5 * drift(0.07, 0.0), -6.0 + 1.5 * drift(0.09, 1.0)),
        lean: 5.0 + 4.0 * drift(0.1, 2.0),
        nod: -4.0 + 5.0 * drift(0.08, 0.5),
        arms: [
            Limb::Turn(
                -58.0 + 16.0 * drift(0.13, 0.0),
                34.0 + 12.0 * drift(0.11, 1.0),
            ),
            Limb::Turn(
                74.0 + 16.0 * drift(0.12, 2.2),
                30.0 + 14.0 * drift(0.1, 0.3),
            ),
        ],
        legs: [
            Limb::Turn(
                -4.0 + 10.0 * drift(0.11, 0.8),
                36.0 + 9.0 * drift(0.09, 2.0),
            ),
            Limb::Turn(36.0 + 9.0 * drift(0.1, 1.9), 46.0 + 10.0 * drift(0.12, 0.2)),
        ],
        feet: [-26.0, -12.0],
        tip: 10.0 + 12.0 * drift(0.06, 0.4),
        ..stand(build, m)
    }
}

pub(super) fn fall(build: &Build, m: &Moment) -> Posture {
    let flail = wave(m.t, 1.1);
    Posture {
        hip: (0.0, -4.0),
        arms: [
            Limb::Turn(-128.0 + 20.0 * flail, -20.0),
            Limb::Turn(132.0 + 20.0 * flail, 20.0),
        ],
        legs: [
            Limb::Turn(-16.0 - 12.0 * flail, 30.0),
            Limb::Turn(34.0 - 12.0 * flail, 36.0),
        ],
        feet: [-20.0; 2],
        tip: -8.0 + 6.0 * flail,
        mouth: Mouth::Oh,
        ..stand(build, m)
    }
}

pub(super) fn land(build: &Build, m: &Moment) -> Posture {
    let air = (1.0 - m.share * 1.25).clamp(0.0, 1.0);
    let still = stand(build, m);
    Posture {
        hip: (0.0, 0.5 + 4.0 * air * build.leg),
        arms: [
            Limb::Turn(-7.0 - 80.0 * air, 12.0),
            Limb::Turn(7.0 + 80.0 * air, 12.0),
        ],
        ..still
    }
}
