//! The acts of people on the ground: the posture of a body at an instant. It draws nothing.

use std::f32::consts::TAU;

use super::build::Build;
use super::gait::{self, Gait};
use super::rest::{stand, wave};
use super::skeleton::{Limb, Mouth, Posture};
use super::{afloat, hands};
use crate::art::{HOPS_HZ, Moment};
use crate::subject::Act;

/// The posture of a body of that build.
pub(super) fn posture(build: &Build, m: &Moment) -> Posture {
    let moment = Moment {
        t: m.t + f32::from(m.nth) * 1.7,
        ..*m
    };
    // All figures of a kind hop together.
    let hopped = (m.t * HOPS_HZ).rem_euclid(1.0);
    let m = &moment;
    // A walker that does not move stands.
    let moved = m.gone > 0.0 || m.share == 0.0;
    match m.act {
        Act::Walk | Act::Move if moved => walk(build, m),
        Act::Run if moved => run(build, m),
        Act::Sit => sit(build, m),
        Act::Sleep => sleep(build, m),
        Act::Jump => jump(build, m, hopped),
        Act::Dance => dance(build, m),
        Act::Eat => hands::eat(build, m),
        Act::Wave => hands::greet(build, m),
        Act::Play => hands::play(build, m),
        Act::Read => hands::read(build, m),
        Act::Swim => afloat::swim(build, m),
        Act::Open => hands::open(build, m),
        Act::Fly | Act::Rise => afloat::fly(build, m),
        Act::Fall => afloat::fall(build, m),
        Act::Land => afloat::land(build, m),
        Act::Turn => Posture {
            turn: (m.t * 2.2).cos(),
            ..stand(build, m)
        },
        _ => stand(build, m),
    }
}

fn steps(build: &Build, m: &Moment, gait: Gait, drop: f32, bounce: f32) -> (Posture, f32) {
    let gait = gait.of(build);
    let phase = gait.phase(m.gone * 100.0 / build.whole);
    let turn = phase * TAU;
    let (near, near_pitch) = gait.foot(build, 50.0 - build.hips() * 0.5, phase);
    let (far, far_pitch) = gait.foot(build, 50.0 + build.hips() * 0.5, phase + 0.5);
    let still = stand(build, m);
    let posture = Posture {
        hip: (
            0.0,
            (drop + 0.4 - bounce * (2.0 * turn - 1.2).cos()) * build.leg,
        ),
        legs: [near, far],
        feet: [near_pitch, far_pitch],
        ..still
    };
    (posture, turn)
}

fn walk(build: &Build, m: &Moment) -> Posture {
    let (posture, turn) = steps(build, m, gait::WALK, 1.6, 0.7);
    // The arm swings with the opposite leg.
    let swing = (turn - 0.4).cos();
    Posture {
        lean: 2.5,
        nod: 1.5 * (2.0 * turn).sin(),
        arms: [
            Limb::Turn(-24.0 * swing - 2.0, 16.0 - 10.0 * swing),
            Limb::Turn(24.0 * swing + 2.0, 16.0 + 10.0 * swing),
        ],
        ..posture
    }
}

fn run(build: &Build, m: &Moment) -> Posture {
    let (posture, turn) = steps(build, m, gait::RUN, 1.8, 1.9);
    let swing = (turn - 0.4).cos();
    Posture {
        lean: 11.0,
        nod: -4.0,
        arms: [
            Limb::Turn(-52.0 * swing - 8.0, 82.0 - 10.0 * swing),
            Limb::Turn(52.0 * swing - 8.0, 82.0 + 10.0 * swing),
        ],
        mouth: Mouth::Open,
        ..posture
    }
}

fn sit(build: &Build, m: &Moment) -> Posture {
    let still = stand(build, m);
    let seat = 98.0 - 5.4 * build.thickness();
    let down = seat - build.pelvis_row();
    let x = 50.0 - 9.0 * build.leg;
    let row = build.ankle_row();
    let knee = (x + 15.0 * build.leg, seat - 13.0 * build.leg);
    Posture {
        hip: (x - 50.0, down),
        lean: 4.0 + 1.2 * wave(m.t, 0.12),
        arms: [
            Limb::To(knee.0, knee.1),
            Limb::To(knee.0 + 3.0, knee.1 - 1.0),
        ],
        legs: [
            Limb::To(x + 21.0 * build.leg, row),
            Limb::To(x + 26.0 * build.leg, row),
        ],
        ..still
    }
}

fn sleep(build: &Build, m: &Moment) -> Posture {
    let breath = wave(m.t, 0.22);
    Posture {
        hip: (5.0, 98.0 - 8.4 * build.thickness() - build.pelvis_row()),
        lean: -build.stoop - 3.0,
        nod: 8.0,
        arms: [Limb::Turn(3.0 - 1.5 * breath, 24.0), Limb::Turn(4.0, 12.0)],
        legs: [Limb::Turn(38.0, 62.0), Limb::Turn(6.0, 8.0)],
        feet: [6.0, -4.0],
        tip: -88.0,
        asleep: true,
        breath: 2.0 * breath,
        ..stand(build, m)
    }
}

fn jump(build: &Build, m: &Moment, turn: f32) -> Posture {
    let still = stand(build, m);
    if turn > 0.7 {
        let low = ((turn - 0.7) / 0.3 * std::f32::consts::PI).sin();
        return Posture {
            hip: (-2.0 * low, 0.5 + 9.0 * low * build.leg),
            lean: 18.0 * low,
            arms: [Limb::Turn(-40.0 * low, 20.0), Limb::Turn(-28.0 * low, 20.0)],
            ..still
        };
    }
    let air = (turn / 0.7 * std::f32::consts::PI).sin();
    Posture {
        hip: (0.0, 0.5),
        lean: 2.0,
        nod: -6.0 * air,
        arms: [
            Limb::Turn(-150.0 * air, -16.0 * air),
            Limb::Turn(150.0 * air, 16.0 * air),
        ],
        legs: [
            Limb::Turn(6.0 - 16.0 * air, 4.0 + 62.0 * air),
            Limb::Turn(4.0 + 34.0 * air, 4.0 + 58.0 * air),
        ],
        feet: [-24.0 * air, -10.0 * air],
        mouth: Mouth::Open,
        ..still
    }
}

fn dance(build: &Build, m: &Moment) -> Posture {
    let beat = m.t * TAU * 0.95;
    let (side, half) = (beat.sin(), (beat * 0.5).sin());
    let row = build.ankle_row();
    let wide = build.hips() + 3.0;
    let lift = |sign: f32| (sign * (beat + 0.4).sin()).max(0.0) * 5.0 * build.leg;
    let spin = ((m.t + 1.0) / 4.6).fract();
    Posture {
        hip: (3.4 * side, 2.0 + 1.6 * (2.0 * beat).cos()),
        lean: -5.0 * side,
        nod: 7.0 * (beat - 0.5).sin(),
        arms: [
            Limb::Turn(-112.0 - 34.0 * side, -34.0 + 30.0 * half),
            Limb::Turn(112.0 - 34.0 * side, 34.0 + 30.0 * half),
        ],
        legs: [
            Limb::To(50.0 - wide, row - lift(-1.0)),
            Limb::To(50.0 + wide, row - lift(1.0)),
        ],
        feet: [-5.0 * lift(-1.0), -5.0 * lift(1.0)],
        turn: if spin < 0.2 {
            (spin * 5.0 * TAU).cos()
        } else {
            1.0
        },
        mouth: Mouth::Open,
        ..stand(build, m)
    }
}
