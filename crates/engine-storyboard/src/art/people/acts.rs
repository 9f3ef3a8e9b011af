//! The acts of people: each as the posture of a body at an instant. Steps follow the distance covered, so that a standing
//! foot does not slide. It draws nothing.

use std::f32::consts::{PI, TAU};

use super::skeleton::LimbPose::{self, To, Turn};
use super::skeleton::{BodyBuild, Mouth, Posture};
use crate::art::{ActMoment, HOPS_HZ};
use crate::raster::colour::smooth;
use crate::subject::Act;

/// The posture of a body of that build.
pub(super) fn posture(build: &BodyBuild, m: &ActMoment) -> Posture {
    let moment = ActMoment {
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
        Act::Eat => eat(build, m),
        Act::Wave => greet(build, m),
        Act::Play => play(build, m),
        Act::Read => read(build, m),
        Act::Swim => swim(build, m),
        Act::Open => open(build, m),
        Act::Fly | Act::Rise => fly(build, m),
        Act::Fall => fall(build, m),
        Act::Land => land(build, m),
        Act::Turn => Posture {
            turn: (m.t * 2.2).cos(),
            ..stand(build, m)
        },
        _ => stand(build, m),
    }
}

/// The legs of a walker whose hip sinks by `drop` and moves by `bounce`, and the angle of its stride, radians.
fn steps(
    build: &BodyBuild,
    m: &ActMoment,
    gait: HumanGait,
    (drop, bounce): (f32, f32),
) -> (Posture, f32) {
    let gait = gait.scaled_to(build);
    // `gone` is in sides of the square, a stride in the units of an unscaled body.
    let phase = gait.phase(m.gone * 100.0 / build.whole);
    let turn = phase * TAU;
    let (near, near_pitch) = gait.foot(build, 50.0 - build.hips() * 0.5, phase);
    let (far, far_pitch) = gait.foot(build, 50.0 + build.hips() * 0.5, phase + 0.5);
    let down = (drop + 0.4 - bounce * (2.0 * turn - 1.2).cos()) * build.leg;
    let posture = Posture {
        hip: (0.0, down),
        legs: [near, far],
        feet: [near_pitch, far_pitch],
        ..stand(build, m)
    };
    (posture, turn)
}

fn walk(build: &BodyBuild, m: &ActMoment) -> Posture {
    let (posture, turn) = steps(build, m, WALK, (1.6, 0.7));
    // The arm swings with the opposite leg.
    let swing = (turn - 0.4).cos();
    Posture {
        lean: 2.5,
        nod: 1.5 * (2.0 * turn).sin(),
        arms: [
            Turn(-24.0 * swing - 2.0, 16.0 - 10.0 * swing),
            Turn(24.0 * swing + 2.0, 16.0 + 10.0 * swing),
        ],
        ..posture
    }
}

fn run(build: &BodyBuild, m: &ActMoment) -> Posture {
    let (posture, turn) = steps(build, m, RUN, (1.8, 1.9));
    let swing = (turn - 0.4).cos();
    Posture {
        lean: 11.0,
        nod: -4.0,
        arms: [
            Turn(-52.0 * swing - 8.0, 82.0 - 10.0 * swing),
            Turn(52.0 * swing - 8.0, 82.0 + 10.0 * swing),
        ],
        mouth: Mouth::Open,
        ..posture
    }
}

fn sit(build: &BodyBuild, m: &ActMoment) -> Posture {
    let seat = 98.0 - 5.4 * build.thickness();
    let down = seat - build.pelvis_row();
    let x = 50.0 - 9.0 * build.leg;
    let row = build.ankle_row();
    let knee = (x + 15.0 * build.leg, seat - 13.0 * build.leg);
    Posture {
        hip: (x - 50.0, down),
        lean: 4.0 + 1.2 * wave(m.t, 0.12),
        arms: [To(knee.0, knee.1), To(knee.0 + 3.0, knee.1 - 1.0)],
        legs: [To(x + 21.0 * build.leg, row), To(x + 26.0 * build.leg, row)],
        ..stand(build, m)
    }
}

fn sleep(build: &BodyBuild, m: &ActMoment) -> Posture {
    let breath = wave(m.t, 0.22);
    Posture {
        hip: (5.0, 98.0 - 8.4 * build.thickness() - build.pelvis_row()),
        lean: -build.stoop - 3.0,
        nod: 8.0,
        arms: [Turn(3.0 - 1.5 * breath, 24.0), Turn(4.0, 12.0)],
        legs: [Turn(38.0, 62.0), Turn(6.0, 8.0)],
        feet: [6.0, -4.0],
        tip: -88.0,
        asleep: true,
        breath: 2.0 * breath,
        ..stand(build, m)
    }
}

fn jump(build: &BodyBuild, m: &ActMoment, turn: f32) -> Posture {
    let still = stand(build, m);
    if turn > 0.7 {
        let low = ((turn - 0.7) / 0.3 * PI).sin();
        return Posture {
            hip: (-2.0 * low, 0.5 + 9.0 * low * build.leg),
            lean: 18.0 * low,
            arms: [Turn(-40.0 * low, 20.0), Turn(-28.0 * low, 20.0)],
            ..still
        };
    }
    let air = (turn / 0.7 * PI).sin();
    Posture {
        hip: (0.0, 0.5),
        lean: 2.0,
        nod: -6.0 * air,
        arms: [
            Turn(-150.0 * air, -16.0 * air),
            Turn(150.0 * air, 16.0 * air),
        ],
        legs: [
            Turn(6.0 - 16.0 * air, 4.0 + 62.0 * air),
            Turn(4.0 + 34.0 * air, 4.0 + 58.0 * air),
        ],
        feet: [-24.0 * air, -10.0 * air],
        mouth: Mouth::Open,
        ..still
    }
}

fn dance(build: &BodyBuild, m: &ActMoment) -> Posture {
    let beat = m.t * TAU * 0.95;
    let (side, half) = (beat.sin(), (beat * 0.5).sin());
    let row = build.ankle_row();
    let wide = build.hips() + 3.0;
    let lift = [-1.0, 1.0].map(|sign: f32| (sign * (beat + 0.4).sin()).max(0.0) * 5.0 * build.leg);
    // A turn around once in 4.6 seconds, for a fifth of that time.
    let spin = ((m.t + 1.0) / 4.6).fract();
    Posture {
        hip: (3.4 * side, 2.0 + 1.6 * (2.0 * beat).cos()),
        lean: -5.0 * side,
        nod: 7.0 * (beat - 0.5).sin(),
        arms: [
            Turn(-112.0 - 34.0 * side, -34.0 + 30.0 * half),
            Turn(112.0 - 34.0 * side, 34.0 + 30.0 * half),
        ],
        legs: [
            To(50.0 - wide, row - lift[0]),
            To(50.0 + wide, row - lift[1]),
        ],
        feet: lift.map(|lift| -5.0 * lift),
        turn: if spin < 0.2 {
            (spin * 5.0 * TAU).cos()
        } else {
            1.0
        },
        mouth: Mouth::Open,
        ..stand(build, m)
    }
}

// Postures of standing people with busy hands: eat, wave, play, read, open.

/// Rises from 0.0 to 1.0 and falls back, smoothly.
fn pulse(t: f32, hz: f32) -> f32 {
    0.5 - 0.5 * (t * hz * TAU).cos()
}

fn eat(build: &BodyBuild, m: &ActMoment) -> Posture {
    let cycle = (m.t * 0.42).fract();
    let near = pulse(cycle, 1.0).powf(0.6);
    let (low, high) = (build.chest(64.0, 48.0), build.chest(62.5, 30.0));
    let to = (
        low.0 + (high.0 - low.0) * near,
        low.1 + (high.1 - low.1) * near,
    );
    let chews = cycle > 0.55 && wave(m.t, 2.6) > 0.0;
    Posture {
        arms: [stand(build, m).arms[0], To(to.0, to.1)],
        nod: 4.0 * near,
        mouth: match (near > 0.8, chews) {
            (true, _) => Mouth::Open,
            (_, true) => Mouth::Oh,
            _ => Mouth::Smile,
        },
        ..stand(build, m)
    }
}

fn greet(build: &BodyBuild, m: &ActMoment) -> Posture {
    Posture {
        arms: [
            stand(build, m).arms[0],
            Turn(116.0 + 4.0 * wave(m.t, 1.3), 38.0 + 20.0 * wave(m.t, 1.3)),
        ],
        nod: -2.0 + 2.0 * wave(m.t, 0.65),
        mouth: Mouth::Open,
        ..stand(build, m)
    }
}

fn play(build: &BodyBuild, m: &ActMoment) -> Posture {
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
            To(strum.0 + 1.2 * beat, strum.1),
            To(fret.0 + 1.2 * beat, fret.1),
        ],
        legs: [still.legs[0], To(50.0 + build.hips() + 3.0, row)],
        feet: [0.0, 9.0 * wave(m.t, 1.8).max(0.0)],
        ..still
    }
}

fn read(build: &BodyBuild, m: &ActMoment) -> Posture {
    let near = build.chest(61.0, 46.0);
    let far = build.chest(67.5, 44.6);
    Posture {
        arms: [To(near.0, near.1), To(far.0, far.1)],
        nod: 9.0 + 1.2 * wave(m.t, 0.2),
        ..stand(build, m)
    }
}

fn open(build: &BodyBuild, m: &ActMoment) -> Posture {
    let wide = smooth(0.0, 1.0, m.share * 2.2);
    Posture {
        lean: 4.0 - 5.0 * wide,
        arms: [
            Turn(64.0 - 128.0 * wide, 16.0),
            Turn(80.0 + 12.0 * wide + 2.0 * wave(m.t, 0.4), 14.0),
        ],
        mouth: if wide > 0.6 {
            Mouth::Open
        } else {
            Mouth::Smile
        },
        ..stand(build, m)
    }
}

// The posture of people at rest, from which other postures start.

fn wave(t: f32, hz: f32) -> f32 {
    (t * hz * TAU).sin()
}

/// Breathes, shifts its weight and looks around.
pub(super) fn stand(build: &BodyBuild, m: &ActMoment) -> Posture {
    let sway = wave(m.t, 0.13);
    let row = build.ankle_row();
    let breath = wave(m.t, 0.3);
    Posture {
        hip: (sway * 0.7, 0.12),
        lean: 0.6 * wave(m.t, 0.11),
        nod: 2.6 * wave(m.t, 0.17),
        arms: [
            Turn(-7.0 + 1.6 * breath, 13.0 + 2.0 * sway),
            Turn(7.0 - 1.6 * breath, 12.0 - 2.0 * sway),
        ],
        legs: [
            To(50.0 - build.hips() - 0.6, row),
            To(50.0 + build.hips() + 0.8, row),
        ],
        feet: [0.0; 2],
        tip: 0.0,
        turn: 1.0,
        asleep: false,
        mouth: Mouth::Smile,
        breath,
    }
}

// Postures off the ground: swimming, flying, floating without weight, falling and landing.

/// The crawl, at the water line of the feet's row.
fn swim(build: &BodyBuild, m: &ActMoment) -> Posture {
    let turn = m.t * TAU * 0.62;
    Posture {
        hip: (-8.0, 101.0 - build.pelvis_row() + wave(m.t, 0.62)),
        lean: -8.0 - build.stoop,
        nod: -46.0,
        arms: [swimming_arm(turn), swimming_arm(turn + TAU * 0.5)],
        legs: [swimming_leg(turn), swimming_leg(turn + TAU * 0.25)],
        feet: [-62.0; 2],
        tip: 82.0 + 3.0 * wave(m.t, 0.62),
        ..stand(build, m)
    }
}

/// A kicking leg of the crawl at `turn`, radians.
fn swimming_leg(turn: f32) -> LimbPose {
    Turn(13.0 * (turn * 2.0).sin() - 3.0, 9.0)
}

/// An arm of the crawl at `turn`, radians.
fn swimming_arm(turn: f32) -> LimbPose {
    let degrees = -turn.to_degrees().rem_euclid(360.0) + 180.0;
    // Bent while it moves forward above the water.
    Turn(degrees, 14.0 + 26.0 * (-turn.sin()).max(0.0))
}

fn fly(build: &BodyBuild, m: &ActMoment) -> Posture {
    let drift = wave(m.t, 0.35);
    let upright = m.act == Act::Rise;
    Posture {
        hip: (-4.0, if upright { -2.0 } else { -8.0 }),
        lean: -4.0,
        nod: if upright { -14.0 } else { -34.0 },
        arms: [
            Turn(-62.0 + 7.0 * drift, -8.0),
            Turn(146.0 - 5.0 * drift, 6.0),
        ],
        legs: [Turn(-7.0 + 4.0 * drift, 12.0), Turn(5.0 - 4.0 * drift, 9.0)],
        feet: [-50.0; 2],
        tip: if upright { 8.0 } else { 56.0 } + 3.0 * drift,
        mouth: Mouth::Open,
        ..stand(build, m)
    }
}

/// Weightless: limbs drift, the body slowly tumbles back and forth.
pub(super) fn float(build: &BodyBuild, m: &ActMoment) -> Posture {
    let drift = |rate: f32, phase: f32| (m.t * rate * TAU + phase).sin();
    Posture {
        hip: (1.5 * drift(0.07, 0.0), -6.0 + 1.5 * drift(0.09, 1.0)),
        lean: 5.0 + 4.0 * drift(0.1, 2.0),
        nod: -4.0 + 5.0 * drift(0.08, 0.5),
        arms: [
            Turn(
                -58.0 + 16.0 * drift(0.13, 0.0),
                34.0 + 12.0 * drift(0.11, 1.0),
            ),
            Turn(
                74.0 + 16.0 * drift(0.12, 2.2),
                30.0 + 14.0 * drift(0.1, 0.3),
            ),
        ],
        legs: [
            Turn(
                -4.0 + 10.0 * drift(0.11, 0.8),
                36.0 + 9.0 * drift(0.09, 2.0),
            ),
            Turn(36.0 + 9.0 * drift(0.1, 1.9), 46.0 + 10.0 * drift(0.12, 0.2)),
        ],
        feet: [-26.0, -12.0],
        tip: 10.0 + 12.0 * drift(0.06, 0.4),
        ..stand(build, m)
    }
}

fn fall(build: &BodyBuild, m: &ActMoment) -> Posture {
    let flail = wave(m.t, 1.1);
    Posture {
        hip: (0.0, -4.0),
        arms: [
            Turn(-128.0 + 20.0 * flail, -20.0),
            Turn(132.0 + 20.0 * flail, 20.0),
        ],
        legs: [
            Turn(-16.0 - 12.0 * flail, 30.0),
            Turn(34.0 - 12.0 * flail, 36.0),
        ],
        feet: [-20.0; 2],
        tip: -8.0 + 6.0 * flail,
        mouth: Mouth::Oh,
        ..stand(build, m)
    }
}

fn land(build: &BodyBuild, m: &ActMoment) -> Posture {
    let air = (1.0 - m.share * 1.25).clamp(0.0, 1.0);
    Posture {
        hip: (0.0, 0.5 + 4.0 * air * build.leg),
        arms: [Turn(-7.0 - 80.0 * air, 12.0), Turn(7.0 + 80.0 * air, 12.0)],
        ..stand(build, m)
    }
}

/// A gait.
#[derive(Clone, Copy, Debug)]
pub(super) struct HumanGait {
    /// Length of a stride of both feet, in the square's units.
    stride: f32,
    /// Share of the stride in which a foot stands.
    stands: f32,
    /// How high a foot is lifted.
    lift: f32,
    /// Distance that a foot swings beyond its standing range.
    swing: f32,
}

const WALK: HumanGait = HumanGait {
    stride: 27.0,
    stands: 0.58,
    lift: 2.8,
    swing: 0.8,
};
const RUN: HumanGait = HumanGait {
    stride: 40.0,
    stands: 0.34,
    lift: 11.0,
    swing: 7.0,
};

/// A horse's gaits. It bends its knees instead of lifting feet.
pub(super) const HORSE_WALK: HumanGait = HumanGait {
    stride: 38.0,
    stands: 0.6,
    lift: 0.0,
    swing: 1.0,
};
pub(super) const GALLOP: HumanGait = HumanGait {
    stride: 52.0,
    stands: 0.42,
    lift: 0.0,
    swing: 9.0,
};

impl HumanGait {
    /// The gait for legs of another length.
    fn scaled_to(self, build: &BodyBuild) -> Self {
        Self {
            stride: self.stride * build.leg,
            lift: self.lift * build.leg,
            swing: self.swing * build.leg,
            ..self
        }
    }

    /// The share of a stride that is over, after `gone` units.
    pub(super) fn phase(&self, gone: f32) -> f32 {
        (gone / self.stride).rem_euclid(1.0)
    }

    /// Distance of a foot in front of its hip at its own phase, and the share of its swing that is over; `None`
    /// while it stands.
    pub(super) fn step(&self, phase: f32) -> (f32, Option<f32>) {
        let phase = phase.rem_euclid(1.0);
        let half = self.stride * self.stands * 0.5;
        if phase < self.stands {
            return (half - phase * self.stride, None);
        }
        let share = (phase - self.stands) / (1.0 - self.stands);
        let eased = smooth(0.0, 1.0, share);
        // It trails at first and reaches out at the end.
        let beyond = -self.swing * (share * TAU).sin();
        (2.0 * half * eased - half + beyond, Some(share))
    }

    /// Ankle and pitch of a person's foot at its own phase, under a body at `x`.
    fn foot(&self, build: &BodyBuild, x: f32, phase: f32) -> (LimbPose, f32) {
        let (before, swing) = self.step(phase);
        let (lift, pitch) = swing.map_or((0.0, 0.0), |share| {
            let high = (share * PI).sin();
            (
                self.lift * high * (1.35 - 0.7 * share),
                high * (52.0 * share - 34.0),
            )
        });
        (To(x + before, build.ankle_row() - lift), pitch)
    }
}
