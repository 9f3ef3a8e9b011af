//! Birds and the bat: in flight, on a branch, on their feet, on water. A flock is the same drawing several times.

use std::f32::consts::TAU;

use tiny_skia::Transform;

use super::gait::{FootGait, LegBend, TwoBoneLeg};
use super::rig::{PartPose, Rig};
use super::{ActMoment, SubjectColours, drawing};
use crate::raster::colour::smooth;
use crate::raster::pen::Pen;
use crate::subject::{Act, Stance, Subject};

/// The stance of a bird.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BirdStance {
    Air,
    /// On a branch, which is a part of the drawing.
    Branch,
    Feet,
    Water,
}

/// The pose of the whole bird at an instant.
#[derive(Clone, Copy, Debug)]
struct BirdPose {
    keeps: BirdStance,
    /// Height of the open wings, from 1.0 (up) to -1.0; nothing when folded.
    beat: Option<f32>,
    /// Offset of the whole bird and of its trunk, down, and pitch of the trunk, degrees nose down.
    down: f32,
    sunk: f32,
    pitch: f32,
    neck: f32,
    head: f32,
    tail: f32,
    /// How far a folded wing or an arm is lifted, degrees.
    fold: f32,
    breath: f32,
    eye: f32,
    asleep: bool,
    legs: Option<[LegBend; 2]>,
    /// How far legs are tucked back in flight, degrees.
    tuck: f32,
    upside_down: bool,
}

/// Two legs: strides from one foot to the other.
const STRUT: FootGait = FootGait {
    turns: [0.0, 0.5, 0.0, 0.5],
    duty: 0.6,
    reach: 0.62,
    lift: 0.24,
    bob: (0.04, 2.0),
    pitch: 1.5,
};

/// Positions and sizes of the birds in a flock.
const FLOCK: [(f32, f32, f32); 7] = [
    (60.0, 42.0, 0.32),
    (32.0, 34.0, 0.26),
    (36.0, 57.0, 0.27),
    (86.0, 58.0, 0.25),
    (8.0, 47.0, 0.22),
    (62.0, 72.0, 0.24),
    (88.0, 29.0, 0.21),
];

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    if subject == Subject::Flock {
        return flock(pen, look, m);
    }
    let Some(rig) = drawing(subject) else {
        return;
    };
    let figure = figure(subject, rig, m);
    rig.draw(pen, look, &|name| part_pose(&figure, name));
}

/// Several flying birds, each with its own wingbeat.
fn flock(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let Some(rig) = drawing(Subject::Birds) else {
        return;
    };
    for (nth, (x, y, size)) in FLOCK.into_iter().enumerate() {
        // Each bird has its own pace and phase, so that the flock does not beat as one.
        let own = ActMoment {
            t: m.t * (1.0 + 0.05 * nth as f32) + nth as f32 * 1.7,
            ..*m
        };
        let figure = figure(Subject::Birds, rig, &own);
        let (dx, dy) = ((own.t * 0.8).sin() * 1.6, (own.t * 1.1).sin() * 1.4);
        let onto = Transform::from_translate(x + dx, y + dy)
            .pre_scale(size, size)
            .pre_translate(-50.0, -50.0);
        pen.within(onto, |pen| {
            rig.draw(pen, look, &|name| part_pose(&figure, name));
        });
    }
}

/// The stance of `subject` during `act`.
fn bird_stance(subject: Subject, act: Act) -> BirdStance {
    let stance = subject.facts().stance;
    let earthbound = matches!(subject, Subject::Penguin | Subject::Chicken);
    match (act, stance) {
        (Act::Fly | Act::Rise | Act::Fall | Act::Land, _) if !earthbound => BirdStance::Air,
        (Act::Swim, Stance::Floats) => BirdStance::Water,
        (Act::Walk | Act::Run | Act::Dance | Act::Jump, Stance::Floats) => BirdStance::Feet,
        (_, Stance::Floats) => BirdStance::Water,
        (Act::Stand | Act::Sit | Act::Sleep | Act::Eat, Stance::Flies) => BirdStance::Branch,
        (_, Stance::Flies) => BirdStance::Air,
        _ => BirdStance::Feet,
    }
}

fn figure(subject: Subject, rig: &Rig, m: &ActMoment) -> BirdPose {
    let t = m.t + f32::from(m.nth) * 1.37;
    let keeps = bird_stance(subject, m.act);
    let mut figure = BirdPose {
        keeps,
        beat: None,
        down: 0.0,
        sunk: 0.0,
        pitch: 0.0,
        neck: 1.5 * (t * 0.8).sin(),
        head: glance(t),
        tail: 3.0 * (t * 1.1).sin(),
        fold: 1.2 * (t * 1.7).sin(),
        breath: 1.0 + 0.014 * (t * 2.0).sin(),
        eye: if (t * 0.31).fract() < 0.03 { 0.1 } else { 1.0 },
        asleep: m.act == Act::Sleep,
        legs: None,
        tuck: 58.0,
        upside_down: false,
    };
    match keeps {
        BirdStance::Air => fly(&mut figure, subject, m, t),
        BirdStance::Branch => {
            figure.pitch = if subject == Subject::Bat { 0.0 } else { -26.0 };
            figure.neck += 20.0;
            figure.upside_down = subject == Subject::Bat;
            figure.down = 1.0;
        }
        BirdStance::Feet => {
            on_feet(&mut figure, rig, m, t);
            if subject.facts().stance == Stance::Floats {
                // Its feet are below its waterline: on land it stands higher.
                figure.down -= 7.0;
            }
        }
        BirdStance::Water => {
            figure.down = 0.6 * (t * 1.5).sin();
            figure.tail += 5.0 * (t * 3.1).sin();
        }
    }
    match m.act {
        Act::Sleep => {
            (figure.head, figure.breath) = (12.0, 1.0 + 0.03 * (t * 1.3).sin());
            figure.neck = if keeps == BirdStance::Branch {
                24.0
            } else {
                6.0
            };
        }
        Act::Eat => peck(&mut figure, subject, t),
        Act::Wave => figure.fold = -52.0 - 26.0 * (t * 7.0).sin(),
        _ => {}
    }
    figure
}

/// Angle of the head, degrees: quick turns with pauses.
fn glance(t: f32) -> f32 {
    let turn = (t * 0.55).rem_euclid(1.0);
    7.0 * (smooth(0.3, 0.36, turn) - smooth(0.62, 0.68, turn))
}

/// Beats the wings and glides in turn. Landing flares the wings, then folds them.
fn fly(figure: &mut BirdPose, subject: Subject, m: &ActMoment, t: f32) {
    let rate = match subject {
        Subject::Eagle => 4.2,
        Subject::Swan | Subject::Flamingo => 5.0,
        Subject::Bat => 11.0,
        Subject::Owl => 5.4,
        _ => 8.0,
    };
    let rests = match subject {
        Subject::Eagle => 0.62,
        Subject::Bat | Subject::Duck => 0.0,
        _ => 0.35,
    };
    let effort = match m.act {
        Act::Rise => 1.0,
        Act::Fall => 0.0,
        // Beats for a while, then glides.
        _ => 1.0 - rests * smooth(0.2, 0.6, (t * 0.9).sin()),
    };
    let beat = (t * rate).sin();
    // A raised wing glides; a beating one passes the trunk fast.
    let open = 0.6 * (1.0 - effort) + effort * (0.12 + 0.84 * beat);
    figure.beat = Some(open);
    figure.down = -2.4 * effort * (t * rate + 1.2).sin();
    figure.pitch = match m.act {
        Act::Rise => -20.0,
        Act::Fall => 24.0,
        Act::Land => -24.0,
        _ => 2.0 * (t * 0.9).sin(),
    };
    if subject == Subject::Owl {
        // It faces the viewer.
        figure.pitch = 0.0;
    }
    figure.neck -= figure.pitch * 0.5;
    if matches!(subject, Subject::Swan | Subject::Flamingo) {
        // In flight it stretches its neck.
        figure.neck += 30.0;
        figure.head -= 20.0;
    }
    if m.act == Act::Land {
        let down = smooth(0.72, 0.97, m.share);
        figure.beat = (down < 0.98).then_some((0.84 + 0.16 * beat) * (1.0 - down) + 0.1 * down);
        figure.down *= 1.0 - down;
        // Feet first.
        figure.tuck = 58.0 - 64.0 * smooth(0.2, 0.6, m.share) + 30.0 * down;
    }
}

/// Walks, runs, hops or dances on two legs.
fn on_feet(figure: &mut BirdPose, rig: &Rig, m: &ActMoment, t: f32) {
    let (Some(near), Some(far)) = (
        TwoBoneLeg::from_rig(rig, "near"),
        TwoBoneLeg::from_rig(rig, "far"),
    ) else {
        return;
    };
    let legs = [near, far];
    let length = near.length();
    let lift = if m.act == Act::Sleep { 0.35 } else { 0.0 };
    let mut steps = [(0.0, 0.0), (0.0, -lift * length)];
    match m.act {
        Act::Walk | Act::Run | Act::Move => {
            let cycles = m.gone * 100.0 / (STRUT.stride() * length) + f32::from(m.nth) * 0.31;
            let (rise, _) = STRUT.sway(cycles);
            figure.sunk = length * (0.06 - rise);
            figure.pitch = if m.act == Act::Run { 7.0 } else { 0.0 };
            figure.pitch += 2.6 * (cycles * TAU).sin();
            // The head moves forward at each step.
            figure.neck += 5.0 * (cycles * TAU * 2.0).sin();
            for (nth, step) in steps.iter_mut().enumerate() {
                let own = STRUT.step(nth, cycles);
                *step = (own.ahead * length, -own.up * length);
            }
        }
        Act::Dance | Act::Play | Act::Jump => {
            let beat = t * TAU;
            figure.pitch = 8.0 * beat.sin();
            figure.sunk = length * 0.1 * (beat * 2.0).sin().abs();
            figure.fold = -24.0 - 20.0 * (beat * 2.0).sin();
            figure.neck -= 6.0 * (beat + 0.7).sin();
            for (nth, step) in steps.iter_mut().enumerate() {
                step.1 = -length * 0.3 * (beat + nth as f32 * 0.5 * TAU).sin().max(0.0);
            }
        }
        _ => {}
    }
    figure.legs = Some([0, 1].map(|nth| {
        let (leg, step) = (&legs[nth], steps[nth]);
        leg.reach(
            (leg.hip.0, leg.hip.1 + figure.sunk),
            (leg.foot.0 + step.0, leg.foot.1 + step.1),
            false,
        )
    }));
}

/// Head down to the ground or into the water and up again.
fn peck(figure: &mut BirdPose, subject: Subject, t: f32) {
    let turn = (t * 0.45).rem_euclid(1.0);
    let low = smooth(0.1, 0.2, turn) - smooth(0.72, 0.86, turn);
    let tap = 5.0 * (t * 11.0).sin() * low;
    let (pitch, neck, head) = match subject {
        Subject::Chicken => (26.0, 78.0, -20.0),
        Subject::Flamingo => (16.0, 118.0, 20.0),
        Subject::Swan => (5.0, 66.0, 26.0),
        Subject::Duck => (10.0, 62.0, 0.0),
        Subject::Penguin => (22.0, 20.0, 16.0),
        Subject::Owl => (0.0, 0.0, 14.0),
        _ => (20.0, 26.0, 14.0),
    };
    figure.pitch += pitch * low;
    figure.neck += neck * low + tap;
    figure.head += head * low;
}

/// The pose of the part `name`.
fn part_pose(figure: &BirdPose, name: &str) -> PartPose {
    let bend = figure
        .legs
        .map(|[near, far]| if name.ends_with("-far") { far } else { near });
    match name {
        "figure" => {
            PartPose::turned(if figure.upside_down { 180.0 } else { 0.0 }).shift(0.0, figure.down)
        }
        "body" => PartPose::turned(figure.pitch).shift(0.0, figure.sunk),
        "perch" => PartPose::shown_if(matches!(
            figure.keeps,
            BirdStance::Branch | BirdStance::Feet
        )),
        "trunk" => PartPose::scaled(1.0, figure.breath),
        "neck" => PartPose::turned(figure.neck),
        "head" => PartPose::turned(figure.head),
        "tail" => PartPose::turned(figure.tail),
        "fold" => match figure.beat {
            Some(_) => PartPose::HIDDEN,
            None => PartPose::turned(figure.fold.abs() * 0.5),
        },
        "arm-near" => PartPose::turned(-figure.fold),
        "arm-far" => PartPose::turned(figure.fold),
        "wing-near" | "wing-far" => figure.beat.map_or(PartPose::HIDDEN, |open| {
            PartPose::turned(figure.pitch * 0.7 + (open - 0.4) * 12.0).scale(1.0, open)
        }),
        "wing-left" | "wing-right" => {
            let side = if name == "wing-left" { 1.0 } else { -1.0 };
            match figure.beat {
                Some(open) => PartPose::turned(side * (open * 44.0 - 14.0)),
                None => PartPose::turned(side * -52.0).scale(0.5, 0.8),
            }
        }
        "leg-near" | "leg-far" => match figure.keeps {
            BirdStance::Air => PartPose::turned(figure.tuck),
            BirdStance::Feet => bend.map_or(PartPose::REST, |bend| {
                PartPose::turned(bend.leg).shift(0.0, figure.sunk)
            }),
            // The trunk turns and the legs stay upright.
            BirdStance::Branch => PartPose::turned(-figure.pitch),
            BirdStance::Water => PartPose::HIDDEN,
        },
        "shin-near" | "shin-far" => bend.map_or(PartPose::REST, |bend| PartPose::turned(bend.shin)),
        "foot-near" | "foot-far" => bend.map_or(PartPose::REST, |bend| PartPose::turned(bend.foot)),
        "eye" if figure.asleep => PartPose::HIDDEN,
        "eye" => PartPose::scaled(1.0, figure.eye),
        "lid" => PartPose::shown_if(figure.asleep),
        _ => PartPose::REST,
    }
}
