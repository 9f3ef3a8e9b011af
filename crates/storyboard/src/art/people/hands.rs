//! Postures of standing people with busy hands: eat, wave, play, read, open.

use std::f32::consts::TAU;

use super::build::Build;
use super::rest::{stand, wave};
use super::skeleton::{Limb, Mouth, Posture};
use crate::art::Moment;

/// From 0.0 to 1.0 and back, smoothly.
fn pulse(t: f32, hz: f32) -> f32 {
    0.5 - 0.5 * (t * hz * TAU).cos()
}

pub(super) fn eat(build: &Build, m: &Moment) -> Posture {
    let cycle = (m.t * 0.42).fract();
    let near = pulse(cycle, 1.0).powf(0.6);
    let (low, high) = (build.chest(64.0, 48.0), build.chest(62.5, 30.0));
    let to = (
        low.0 + (high.0 - low.0) * near,
        low.1 + (high.1 - low.1) * near,
    );
    let chews = cycle > 0.55 && wave(m.t, 2.6) > 0.0;
    Posture {
        arms: [stand(build, m).arms[0], Limb::To(to.0, to.1)],
        nod: 4.0 * near,
        mouth: match (near > 0.8, chews) {
            (true, _) => Mouth::Open,
            (_, true) => Mouth::Oh,
            _ => Mouth::Smile,
        },
        ..stand(build, m)
    }
}

pub(super) fn greet(build: &Build, m: &Moment) -> Posture {
    Posture {
        arms: [
            stand(build, m).arms[0],
            Limb::Turn(116.0 + 4.0 * wave(m.t, 1.3), 38.0 + 20.0 * wave(m.t, 1.3)),
        ],
        nod: -2.0 + 2.0 * wave(m.t, 0.65),
        mouth: Mouth::Open,
        ..stand(build, m)
    }
}

pub(super) fn play(build: &Build, m: &Moment) -> Posture {
    let beat = wave(m.t, 0.9);
    let strum = build.chest(48.0, 54.0 + 3.6 * wave(m.t, 1.8));
    let fret = build.chest(72.0 + 2.4 * wave(m.t, 0.3), 40.6);
    let still = stand(build, m);
    let row = build.ankle_row();
    Posture {
        hip: (1.2 * beat, 0.6),
        lean: 1.6 * beat,
        nod: 5.0 * wave(m.t, 0.9) + 4.0,
        arms: [
            Limb::To(strum.0 + 1.2 * beat, strum.1),
            Limb::To(fret.0 + 1.2 * beat, fret.1),
        ],
        legs: [still.legs[0], Limb::To(50.0 + build.hips() + 3.0, row)],
        feet: [0.0, 9.0 * wave(m.t, 1.8).max(0.0)],
        ..still
    }
}

pub(super) fn read(build: &Build, m: &Moment) -> Posture {
    let near = build.chest(61.0, 46.0);
    let far = build.chest(67.5, 44.6);
    Posture {
        arms: [Limb::To(near.0, near.1), Limb::To(far.0, far.1)],
        nod: 9.0 + 1.2 * wave(m.t, 0.2),
        ..stand(build, m)
    }
}

pub(super) fn open(build: &Build, m: &Moment) -> Posture {
    let share = (m.share * 2.2).clamp(0.0, 1.0);
    let wide = share * share * (3.0 - 2.0 * share);
    Posture {
        lean: 4.0 - 5.0 * wide,
        arms: [
            Limb::Turn(64.0 - 128.0 * wide, 16.0),
            Limb::Turn(80.0 + 12.0 * wide + 2.0 * wave(m.t, 0.4), 14.0),
        ],
        mouth: if wide > 0.6 {
            Mouth::Open
        } else {
            Mouth::Smile
        },
        ..stand(build, m)
    }
}
