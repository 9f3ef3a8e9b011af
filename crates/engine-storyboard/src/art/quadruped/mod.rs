//! Animals on four legs, snakes and snails: their drawings, and how the parts move.

mod slow;
#[cfg(test)]
mod tests;

use std::f32::consts::{PI, TAU};

use super::gait::{BOUND, FootGait, GALLOP, HOP, LegBend, NAMES, Point, TROT, TwoBoneLeg, WALK};
use super::rig::{PartPose, Rig};
use super::{ActMoment, HOPS_HZ, SubjectColours, drawing};
use crate::raster::colour::smooth;
use crate::raster::pen::Pen;
use crate::subject::{Act, Subject};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    let Some(rig) = drawing(subject) else {
        return;
    };
    match RestJoints::from_rig(rig) {
        Some(frame) => {
            let figure = figure(subject, &frame, m);
            rig.draw(pen, look, &figure.poses(&frame));
        }
        None => rig.draw(pen, look, &|name| slow::pose(name, m)),
    }
}

// The pose of a figure at an instant: the positions of body and feet, and the angles of its parts. The acts below fill
// it in; `AnimalPose` turns it into poses of parts.

/// The joints of the drawing at rest, as far as acts need them.
#[derive(Clone, Copy, Debug)]
struct RestJoints {
    legs: [TwoBoneLeg; 4],
    /// The pivot of the trunk.
    seat: Point,
    /// The lowest point of the trunk.
    belly: Point,
    neck: Point,
    head: Point,
    mouth: Point,
    /// The head's joint in the curled sleeping pose.
    pillow: Option<Point>,
    /// The root of the near wing, which hangs beside the trunk.
    wing: Option<Point>,
    /// Whether the tail hangs down.
    hanging: bool,
    /// Whether it has a trunk.
    nosed: bool,
}

/// The row of the ground.
const GROUND: f32 = 98.0;

impl RestJoints {
    fn from_rig(rig: &Rig) -> Option<Self> {
        let [a, b, c, d] = NAMES.map(|name| TwoBoneLeg::from_rig(rig, name));
        Some(Self {
            legs: [a?, b?, c?, d?],
            seat: rig.joint("body")?,
            belly: rig.joint("belly")?,
            neck: rig.joint("neck")?,
            head: rig.joint("head")?,
            mouth: rig.joint("mouth")?,
            pillow: rig.joint("pillow"),
            wing: rig.joint("wing-near"),
            nosed: rig.joint("nose").is_some(),
            hanging: match (rig.joint("tail"), rig.joint("tail-tip")) {
                (Some(tail), Some(tip)) => tip.1 > tail.1 + 4.0,
                _ => false,
            },
        })
    }

    /// Length of the longer pair of legs.
    fn leg(&self) -> f32 {
        self.legs[0].length().max(self.legs[1].length())
    }
}

/// The position of a foot.
#[derive(Clone, Copy, Debug, PartialEq)]
enum FootPose {
    /// On the ground: offset from its place at rest, and angle of the toe, degrees down.
    At(f32, f32, f32),
    /// On the ground at this offset, with the knee bent to the other side.
    Squat(f32, f32),
    /// Folded on the ground.
    Folded,
    /// In the air: angles of thigh and shin, degrees.
    Free(f32, f32),
}

/// The pose of the whole figure.
#[derive(Clone, Copy, Debug)]
struct AnimalPose {
    /// Offset of the whole figure.
    shift: Point,
    /// Offset of the trunk and the parts on it.
    sunk: f32,
    ahead: f32,
    /// Nose down, degrees.
    pitch: f32,
    /// Breath: the trunk's height.
    breath: f32,
    feet: [FootPose; 4],
    neck: f32,
    /// Offset of the neck from its place at rest.
    laid: Point,
    head: f32,
    tail: f32,
    tip: f32,
    ears: f32,
    jaw: f32,
    trunk: f32,
    wings: f32,
    /// Height of the open eye, 0.0 to 1.0.
    eye: f32,
    asleep: bool,
    /// Whether the part `curl` replaces trunk and legs.
    curled: bool,
    /// Whether it shows the thing that it holds.
    holds: bool,
}

impl AnimalPose {
    const REST: Self = Self {
        shift: (0.0, 0.0),
        sunk: 0.0,
        ahead: 0.0,
        pitch: 0.0,
        breath: 1.0,
        feet: [FootPose::At(0.0, 0.0, 0.0); 4],
        neck: 0.0,
        laid: (0.0, 0.0),
        head: 0.0,
        tail: 0.0,
        tip: 0.0,
        ears: 0.0,
        jaw: 0.0,
        trunk: 0.0,
        wings: 0.0,
        eye: 1.0,
        asleep: false,
        curled: false,
        holds: false,
    };

    /// The position of `point` of the trunk.
    fn carried(&self, frame: &RestJoints, point: Point) -> Point {
        let at = turned(point, frame.seat, self.pitch);
        (at.0 + self.ahead, at.1 + self.sunk)
    }

    /// The position of the mouth if the neck turns by `neck` and the head by `head` degrees.
    fn mouth(&self, frame: &RestJoints, neck: f32, head: f32) -> Point {
        let mouth = turned(frame.mouth, frame.head, head);
        self.carried(frame, turned(mouth, frame.neck, neck))
    }

    /// The poses of leg `nth`: thigh, shin, foot.
    fn leg(&self, frame: &RestJoints, nth: usize) -> [PartPose; 3] {
        let leg = &frame.legs[nth];
        let hip = self.carried(frame, leg.hip);
        let (bend, tip) = match self.feet[nth] {
            FootPose::At(right, down, tip) => {
                let to = (leg.foot.0 + right, leg.foot.1 + down);
                (leg.reach(hip, to, false), tip)
            }
            FootPose::Squat(right, down) => {
                let to = (leg.foot.0 + right, leg.foot.1 + down);
                (leg.reach(hip, to, true), 0.0)
            }
            FootPose::Folded => (leg.fold(hip, leg.foot.1), 0.0),
            FootPose::Free(thigh, shin) => {
                let bend = LegBend {
                    leg: self.pitch + thigh,
                    shin,
                    foot: 0.0,
                };
                (bend, 0.0)
            }
        };
        let mut thigh = PartPose::turned(bend.leg).shift(hip.0 - leg.hip.0, hip.1 - leg.hip.1);
        thigh.hidden = self.curled;
        [
            thigh,
            PartPose::turned(bend.shin),
            PartPose::turned(bend.foot + tip),
        ]
    }

    /// The pose of each part.
    fn poses(&self, frame: &RestJoints) -> impl Fn(&str) -> PartPose + use<> {
        let legs = [0, 1, 2, 3].map(|nth| self.leg(frame, nth));
        let own = *self;
        let root = frame.wing.unwrap_or_default();
        let carried = self.carried(frame, root);
        let wing = PartPose::turned(self.pitch)
            .shift(carried.0 - root.0, carried.1 - root.1)
            .scale(1.0, self.wings.cos());
        move |name| {
            let (first, rest) = name.split_once('-').unwrap_or((name, ""));
            let nth = NAMES.iter().position(|one| *one == rest);
            match (first, nth) {
                ("leg", Some(nth)) => legs[nth][0],
                ("shin", Some(nth)) => legs[nth][1],
                ("foot", Some(nth)) => legs[nth][2],
                _ if name == "wing-near" => wing,
                _ => own.part_pose(name),
            }
        }
    }

    fn part_pose(&self, name: &str) -> PartPose {
        match name {
            "figure" => PartPose::shifted(self.shift.0, self.shift.1),
            "body" => PartPose::turned(self.pitch).shift(self.ahead, self.sunk),
            "trunk" if self.curled => PartPose::HIDDEN,
            "trunk" => PartPose::scaled(1.0, self.breath),
            "curl" if self.curled => PartPose::scaled(1.0, 2.0 * self.breath - 1.0),
            "curl" => PartPose::HIDDEN,
            "tail" | "mane-back" if self.curled => PartPose::HIDDEN,
            "tail" => PartPose::turned(self.tail),
            "tail-tip" => PartPose::turned(self.tip),
            "neck" => PartPose::turned(self.neck).shift(self.laid.0, self.laid.1),
            "head" => PartPose::turned(self.head),
            "ear-near" => PartPose::turned(self.ears),
            "ear-far" => PartPose::turned(self.ears * 0.7),
            "jaw" => PartPose::turned(self.jaw),
            "nose" => PartPose::turned(self.trunk),
            "nose-mid" => PartPose::turned(self.trunk * 1.2),
            "nose-tip" => PartPose::turned(self.trunk * 1.5),
            "wing-far" => PartPose::scaled(1.0, self.wings.cos()),

            "eye" if self.asleep => PartPose::HIDDEN,
            "eye" => PartPose::scaled(1.0, self.eye),
            "lid" => PartPose::shown_if(self.asleep),
            "held" => PartPose::shown_if(self.holds),
            _ => PartPose::REST,
        }
    }
}

/// `point` turned about `joint` by `degrees`.
fn turned(point: Point, joint: Point, degrees: f32) -> Point {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let (x, y) = (point.0 - joint.0, point.1 - joint.1);
    (joint.0 + x * cos - y * sin, joint.1 + x * sin + y * cos)
}

// The acts of four-legged figures: each as a pose at an instant. An animal that cannot do an act
// does its usual one.

/// The pose of `subject` at `m`.
fn figure(subject: Subject, frame: &RestJoints, m: &ActMoment) -> AnimalPose {
    let habit = habit(subject);
    let t = m.t + f32::from(m.nth) * 1.37;
    let mut figure = AnimalPose::REST;
    alive(&mut figure, t);
    let act = sensible(subject, m.act);
    match act {
        Act::Walk | Act::Move => pace(&mut figure, frame, &habit.walk, m),
        Act::Run => {
            pace(&mut figure, frame, &habit.run, m);
            figure.tail += 14.0;
        }
        Act::Jump => leap(&mut figure, frame, m.t),
        Act::Sit => sit(&mut figure, frame, &habit, t),
        Act::Wave => wave(&mut figure, frame, &habit, t),
        Act::Sleep => sleep(&mut figure, frame, &habit, t),
        Act::Eat => eat(&mut figure, frame, &habit, t),
        Act::Dance | Act::Play => dance(&mut figure, frame, t),
        Act::Swim => paddle(&mut figure, frame, t),
        Act::Fly | Act::Rise | Act::Fall | Act::Land => fly(&mut figure, m, act),
        _ => {}
    }
    figure
}

/// `act`, or the usual act of a subject that cannot do it.
fn sensible(subject: Subject, act: Act) -> Act {
    let winged = subject == Subject::Dragon;
    match act {
        Act::Fly | Act::Rise | Act::Fall | Act::Land if !winged => subject.facts().usual,
        Act::Open | Act::Read | Act::Turn | Act::Burn => subject.facts().usual,
        act => act,
    }
}

/// Breathes, looks around, blinks now and then and moves its tail.
fn alive(figure: &mut AnimalPose, t: f32) {
    figure.breath = 1.0 + 0.012 * (t * 1.9).sin();
    figure.neck = 1.3 * (t * 0.7).sin();
    figure.head = 1.6 * (t * 0.45 + 1.0).sin();
    figure.tail = 5.0 * (t * 1.3).sin();
    figure.tip = 9.0 * (t * 1.3 - 0.9).sin();
    figure.ears = 7.0 * pulse(t, 2.7, 0.25);
    figure.trunk = 5.0 * (t * 0.9).sin();
    figure.eye = 1.0 - 0.9 * pulse(t + 1.1, 3.4, 0.09);
    figure.wings = 0.12 * (t * 1.9).sin();
}

/// Rises and falls once in every `period` seconds, during a share of it.
fn pulse(t: f32, period: f32, share: f32) -> f32 {
    let turn = (t / period).rem_euclid(1.0) / share;
    if turn < 1.0 { (turn * PI).sin() } else { 0.0 }
}

/// Walks or runs: steps follow the distance covered.
fn pace(figure: &mut AnimalPose, frame: &RestJoints, gait: &FootGait, m: &ActMoment) {
    let leg = frame.leg();
    let cycles = m.gone * 100.0 / (gait.stride() * leg) + f32::from(m.nth) * 0.37;
    let (rise, pitch) = gait.sway(cycles);
    // Bent a little, so that straight legs reach both ends of a step.
    figure.sunk = leg * (gait.reach * gait.reach * 0.16 - rise);
    figure.pitch = pitch;
    for (nth, foot) in figure.feet.iter_mut().enumerate() {
        let step = gait.step(nth, cycles);
        *foot = FootPose::At(step.ahead * leg, -step.up * leg, step.tip * 42.0);
    }
    if *gait == HOP {
        for nth in [1, 3] {
            figure.feet[nth] = FootPose::Free(4.0 * (cycles * TAU).sin(), -6.0);
        }
    }
    figure.neck += -pitch * 0.7 + 1.6 * (cycles * TAU * 2.0).sin();
    figure.tail += pitch * 1.5;
}

/// The share of a hop in the air.
const AIR: f32 = 0.7;

/// Crouches, stretches through the air, lands softly.
fn leap(figure: &mut AnimalPose, frame: &RestJoints, t: f32) {
    let leg = frame.leg();
    let turn = (t * HOPS_HZ).rem_euclid(1.0);
    if turn >= AIR {
        let rest = (turn - AIR) / (1.0 - AIR);
        figure.sunk = leg * 0.22 * (rest * PI).sin();
        figure.pitch = 4.0 - 8.0 * rest;
        return;
    }
    let air = turn / AIR;
    figure.pitch = -13.0 * (air * PI).cos();
    figure.neck -= figure.pitch * 0.4;
    figure.tail += 18.0 * (1.0 - 2.0 * air);
    let stretch = (air * PI).sin().sqrt();
    let (fore, hind) = (0.34 * leg * stretch, -0.36 * leg * stretch);
    let tuck = -0.22 * leg * stretch;
    for (nth, foot) in figure.feet.iter_mut().enumerate() {
        let ahead = if nth % 2 == 0 { hind } else { fore };
        let far = if nth > 1 { 0.8 } else { 1.0 };
        let tip = if nth % 2 == 0 { 46.0 } else { -14.0 };
        *foot = FootPose::At(ahead * far, tuck, tip * stretch);
    }
}

/// Distance that a trunk sinks until its belly is on the ground.
fn depth(frame: &RestJoints) -> f32 {
    GROUND - frame.belly.1 - 0.5
}

fn sit(figure: &mut AnimalPose, frame: &RestJoints, habit: &AnimalHabit, t: f32) {
    match habit.sit {
        SitStyle::Always => {}
        SitStyle::Down => lie(figure, frame),
        SitStyle::Haunches | SitStyle::Upright => {
            let hind = &frame.legs[0];
            figure.pitch = -habit.raise;
            figure.sunk = (GROUND - hind.hip.1) - hind.upper() * 0.62;
            figure.ahead = -frame.leg() * 0.08;
            for nth in [0, 2] {
                let hip = figure.carried(frame, frame.legs[nth].hip);
                let under = hip.0 - frame.legs[nth].foot.0 + hind.upper() * 0.5;
                figure.feet[nth] = FootPose::Squat(under, 0.0);
            }
            for nth in [1, 3] {
                let hip = figure.carried(frame, frame.legs[nth].hip);
                let back = hip.0 - frame.legs[nth].hip.0;
                figure.feet[nth] = FootPose::At(back + 1.5, 0.0, 0.0);
            }
            figure.neck += habit.raise * 0.55;
            figure.head += habit.raise * 0.45;
            figure.tail += if frame.hanging {
                habit.raise + 66.0
            } else {
                habit.raise * 0.7
            };
        }
    }
    if habit.sit == SitStyle::Upright {
        let lift = 3.0 * (t * 1.1).sin();
        figure.feet[1] = FootPose::Free(-18.0 + lift, -34.0);
        figure.feet[3] = FootPose::Free(-30.0 + lift, -30.0);
        figure.holds = true;
    }
}

/// Lays it on its belly, legs folded.
fn lie(figure: &mut AnimalPose, frame: &RestJoints) {
    figure.sunk = depth(frame);
    figure.feet = [FootPose::Folded; 4];
    figure.trunk -= 24.0;
    if frame.hanging {
        figure.tail += 58.0;
    }
}

/// Maximum lowering of the neck in sleep, degrees.
const DROOP_MAX: f32 = 44.0;

fn sleep(figure: &mut AnimalPose, frame: &RestJoints, habit: &AnimalHabit, t: f32) {
    let (neck, head) = (figure.neck, figure.head);
    *figure = AnimalPose {
        asleep: true,
        breath: 1.0 + 0.03 * (t * 1.2).sin(),
        ears: 6.0 * pulse(t, 5.0, 0.1),
        tip: 0.3 * figure.tip,
        tail: 0.2 * figure.tail,
        ..AnimalPose::REST
    };
    match (habit.sleep, frame.pillow) {
        (SleepStyle::Still, _) => figure.head = 7.0,
        (SleepStyle::Curled, Some(pillow)) => {
            figure.curled = true;
            (figure.neck, figure.head) = (64.0, -54.0);
            let head = turned(frame.head, frame.neck, figure.neck);
            figure.laid = (pillow.0 - head.0, pillow.1 - head.1);
        }
        (SleepStyle::Down | SleepStyle::Curled, _) => {
            lie(figure, frame);
            let most = lowered(figure, frame, GROUND - 3.0, 0.7).min(DROOP_MAX);
            figure.neck = most + 0.2 * neck;
            figure.head = -0.7 * most + 0.2 * head;
        }
    }
}

/// The angle of the neck, degrees, that brings the mouth to row `row` if the head turns back by the share `level` of
/// it.
fn lowered(figure: &AnimalPose, frame: &RestJoints, row: f32, level: f32) -> f32 {
    // Tried in steps of two degrees: neck and head turn about different joints, and sixty tries
    // cost nothing beside the drawing.
    let mut best = (0.0, figure.mouth(frame, 0.0, 0.0).1);
    for neck in (0..60).map(|n| n as f32 * 2.0) {
        let low = figure.mouth(frame, neck, -level * neck).1;
        if low >= row {
            return neck;
        }
        // Out of reach: as low as it can.
        if low > best.1 {
            best = (neck, low);
        }
    }
    best.0
}

/// Backward turn of a lowered head, as a share of the neck's turn.
const LEVEL: f32 = 0.36;

/// Head down, chewing, now and then a look up.
fn eat(figure: &mut AnimalPose, frame: &RestJoints, habit: &AnimalHabit, t: f32) {
    let chew = (t * 7.0).sin();
    if habit.sit == SitStyle::Upright {
        sit(figure, frame, habit, t);
        figure.head += 1.5 * chew;
        figure.jaw = 3.0 + 3.0 * chew;
        return;
    }
    if frame.nosed {
        // An elephant uses its trunk.
        figure.trunk = 12.0 + 26.0 * (t * 1.5).sin();
        return;
    }
    // An animal with a short neck bends its fore legs.
    let mut bowed = *figure;
    let mut most = lowered(&bowed, frame, GROUND - 1.5, LEVEL);
    let down = habit.sit == SitStyle::Down;
    let most_bent = if down { 104.0 } else { 54.0 };
    // The trunk tips forward just as far as the neck cannot reach by itself.
    while bowed.pitch < 24.0 && most > most_bent {
        bowed.pitch += 2.0;
        most = lowered(&bowed, frame, GROUND - 1.5, LEVEL);
    }
    let up = 0.16 * pulse(t, 4.2, 0.3);
    figure.pitch = bowed.pitch;
    figure.neck = most * (1.0 - up) + 0.8 * (t * 1.7).sin();
    figure.head = -LEVEL * most * (1.0 - up) + 1.2 * chew;
    figure.jaw = 3.0 + 3.0 * chew;
}

/// Sits, or stands, and lifts a fore leg in greeting.
fn wave(figure: &mut AnimalPose, frame: &RestJoints, habit: &AnimalHabit, t: f32) {
    let sway = (t * 6.0).sin();
    if matches!(habit.sit, SitStyle::Haunches | SitStyle::Upright) {
        sit(figure, frame, habit, t);
        figure.holds = false;
        figure.feet[1] = FootPose::Free(-62.0 + habit.raise * 0.3, -30.0 + 16.0 * sway);
    } else {
        let leg = frame.legs[1].length();
        figure.feet[1] = FootPose::At(leg * (0.3 + 0.05 * sway), leg * (-0.3 + 0.09 * sway), 20.0);
    }
    figure.head -= 4.0;
    figure.trunk -= 26.0 + 10.0 * sway;
}

/// Steps in place, two beats per second.
fn dance(figure: &mut AnimalPose, frame: &RestJoints, t: f32) {
    let leg = frame.leg();
    let beat = t * TAU;
    figure.sunk = -leg * 0.07 * (beat * 2.0).sin().abs() + leg * 0.05;
    figure.pitch = 7.0 * beat.sin();
    figure.neck += -9.0 * (beat + 0.6).sin();
    figure.head += 7.0 * (beat * 2.0).sin();
    figure.tail += 14.0 * (beat * 2.0).sin();
    figure.trunk -= 14.0 + 12.0 * beat.sin();
    for (nth, foot) in figure.feet.iter_mut().enumerate() {
        let turn = if nth == 0 || nth == 3 { 0.0 } else { 0.5 };
        let up = (beat + turn * TAU).sin().max(0.0);
        *foot = FootPose::At(up * leg * 0.06, -up * leg * 0.22, up * 20.0);
    }
}

/// Swims up to its shoulders in water, with paddling legs.
fn paddle(figure: &mut AnimalPose, frame: &RestJoints, t: f32) {
    let leg = frame.leg();
    figure.shift.1 = GROUND - (frame.belly.1 + frame.neck.1) * 0.5 + 1.5 * (t * 1.6).sin();
    figure.pitch = -5.0;
    for (nth, foot) in figure.feet.iter_mut().enumerate() {
        let turn = t * 5.0 + nth as f32 * 1.6;
        let up = leg * (0.2 + 0.1 * turn.sin());
        *foot = FootPose::At(leg * 0.2 * turn.cos(), -up, 10.0);
    }
}

// The habits of each animal: how it runs, sits and sleeps, and how low its mouth reaches. One row
// for each kind that differs from a hoofed animal.

/// Way in which an animal sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SitStyle {
    /// On its haunches, fore legs straight.
    Haunches,
    /// On its bottom, trunk upright, fore paws free.
    Upright,
    /// Lies down with its head up.
    Down,
    /// It always sits.
    Always,
}

/// Way in which an animal sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SleepStyle {
    /// Curled up with its tail around it: the part `curl` replaces body and legs.
    Curled,
    /// On its belly, head on the ground.
    Down,
    /// In its usual pose with closed eyes.
    Still,
}

/// The habits of an animal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct AnimalHabit {
    walk: FootGait,
    run: FootGait,
    sit: SitStyle,
    sleep: SleepStyle,
    /// Angle of the trunk when it sits, degrees up.
    raise: f32,
}

const HOOFED: AnimalHabit = AnimalHabit {
    walk: WALK,
    run: GALLOP,
    sit: SitStyle::Down,
    sleep: SleepStyle::Down,
    raise: 0.0,
};
const PAWED: AnimalHabit = AnimalHabit {
    sit: SitStyle::Haunches,
    sleep: SleepStyle::Curled,
    raise: 40.0,
    ..HOOFED
};
const SLOW: AnimalHabit = AnimalHabit {
    run: TROT,
    ..HOOFED
};
const CRAWLER: AnimalHabit = AnimalHabit {
    run: TROT,
    sit: SitStyle::Always,
    sleep: SleepStyle::Still,
    ..HOOFED
};

fn habit(subject: Subject) -> AnimalHabit {
    match subject {
        Subject::Cat | Subject::Dog | Subject::Fox | Subject::Wolf => PAWED,
        Subject::Lion | Subject::Tiger => AnimalHabit {
            sleep: SleepStyle::Down,
            ..PAWED
        },
        Subject::Bear | Subject::PolarBear => AnimalHabit {
            raise: 48.0,
            sleep: SleepStyle::Down,
            sit: SitStyle::Upright,
            ..PAWED
        },
        Subject::Panda => AnimalHabit {
            run: TROT,
            raise: 58.0,
            sleep: SleepStyle::Down,
            sit: SitStyle::Upright,
            ..PAWED
        },
        Subject::Monkey => AnimalHabit {
            raise: 52.0,
            sleep: SleepStyle::Down,
            sit: SitStyle::Upright,
            ..PAWED
        },
        Subject::Elephant
        | Subject::Giraffe
        | Subject::Rhino
        | Subject::Hippo
        | Subject::Camel
        | Subject::Pig
        | Subject::Dinosaur
        | Subject::Dragon => SLOW,
        Subject::Rabbit | Subject::Mouse => AnimalHabit {
            walk: BOUND,
            run: BOUND,
            sit: SitStyle::Always,
            sleep: SleepStyle::Curled,
            raise: 0.0,
        },
        Subject::Frog => AnimalHabit {
            walk: BOUND,
            run: BOUND,
            ..CRAWLER
        },
        Subject::Kangaroo | Subject::Squirrel => AnimalHabit {
            walk: HOP,
            run: HOP,
            ..CRAWLER
        },
        Subject::Hedgehog
        | Subject::Turtle
        | Subject::Crocodile
        | Subject::Snake
        | Subject::Snail => CRAWLER,
        _ => HOOFED,
    }
}

// The dragon's flight: the only four-legged figure that flies.

/// Beats its wings with trailing legs; lands with flared wings and folds them at the end.
fn fly(figure: &mut AnimalPose, m: &ActMoment, act: Act) {
    let beat = m.t * 4.6;
    let share = m.share.clamp(0.0, 1.0);
    let flown = match act {
        Act::Land => 1.0 - smooth(0.75, 1.0, share),
        _ => 1.0,
    };
    let rate = if act == Act::Fall { 0.15 } else { 1.0 };
    figure.wings = (1.25 - 1.25 * beat.sin() * rate) * flown;
    figure.shift.1 = -2.6 * (beat + 0.9).sin() * flown;
    figure.pitch = match act {
        Act::Rise => -22.0,
        Act::Fall => 18.0,
        Act::Land => -14.0 * flown,
        _ => -3.0 + 1.5 * beat.cos(),
    };
    figure.neck -= figure.pitch * 0.4;
    figure.tail += 5.0 * (beat - 0.8).sin();
    let trail = 3.0 * (beat - 0.5).sin();
    let reach = if act == Act::Land { -30.0 } else { 34.0 };
    if flown > 0.02 {
        for (nth, foot) in figure.feet.iter_mut().enumerate() {
            let front = nth % 2 == 1;
            let thigh = if front { reach * 0.6 } else { reach };
            let shin = if front { 40.0 } else { 24.0 };
            *foot = FootPose::Free((thigh + trail) * flown, shin * flown);
        }
    }
}
