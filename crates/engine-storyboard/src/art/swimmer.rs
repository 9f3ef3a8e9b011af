//! Swimmers, the crab and the seal: their drawings, and how the parts move.

use std::f32::consts::{PI, TAU};

use tiny_skia::Transform;

use super::insect;
use super::rig::PartPose;
use super::{ActMoment, HOPS_HZ, SubjectColours, drawing};
use crate::raster::colour::smooth;
use crate::raster::pen::Pen;
use crate::subject::{Act, Subject};

/// Positions and sizes of the fish in a school.
const SCHOOL: [(f32, f32, f32); 9] = [
    (56.0, 50.0, 0.3),
    (30.0, 38.0, 0.23),
    (32.0, 63.0, 0.25),
    (80.0, 36.0, 0.2),
    (84.0, 62.0, 0.22),
    (10.0, 50.0, 0.19),
    (56.0, 27.0, 0.16),
    (58.0, 74.0, 0.18),
    (12.0, 28.0, 0.14),
];

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    if subject == Subject::School {
        return school(pen, look, m);
    }
    let Some(rig) = drawing(subject) else {
        return;
    };
    match subject {
        Subject::Crab => insect::crawl(pen, rig, look, m),
        _ => rig.draw(pen, look, &|name| part_pose(subject, name, m)),
    }
}

/// Several fish, every fourth in the second colour.
fn school(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let Some(rig) = drawing(Subject::Fish) else {
        return;
    };
    for (nth, (x, y, size)) in SCHOOL.into_iter().enumerate() {
        let own = ActMoment {
            t: m.t * (1.0 + 0.04 * nth as f32) + nth as f32 * 1.9,
            ..*m
        };
        let (dx, dy) = ((own.t * 0.9).sin() * 1.6, (own.t * 1.1).sin() * 1.3);
        let onto = Transform::from_translate(x + dx, y + dy)
            .pre_scale(size, size)
            .pre_translate(-50.0, -50.0);
        let mut look = *look;
        if nth % 4 == 1 {
            (look.main, look.trim) = (look.trim, look.main);
        }
        pen.within(onto, |pen| {
            rig.draw(pen, &look, &|name| part_pose(Subject::Fish, name, &own));
        });
    }
}

/// Beats of the tail per second, and their reach in degrees.
fn beat(subject: Subject, act: Act) -> (f32, f32) {
    let (rate, reach) = match subject {
        Subject::Fish => (1.5, 22.0),
        Subject::Shark => (0.7, 11.0),
        Subject::Whale => (0.28, 9.0),
        Subject::Dolphin => (0.9, 12.0),
        _ => (0.5, 6.0),
    };
    match act {
        Act::Sleep | Act::Stand | Act::Sit => (rate * 0.5, reach * 0.5),
        Act::Run | Act::Move | Act::Dance | Act::Play => (rate * 1.6, reach * 1.2),
        _ => (rate, reach),
    }
}

/// Share of an actor's leap that a heavy swimmer loses.
fn heavy(subject: Subject) -> f32 {
    match subject {
        Subject::Whale => 0.62,
        Subject::Shark => 0.4,
        Subject::Dolphin => 0.25,
        _ => 0.0,
    }
}

/// A leap along its arc: pitch in degrees, nose down, and offset below the actor's position, which follows the same
/// arc.
fn leap(t: f32, heavy: f32) -> (f32, f32) {
    const AIR: f32 = 0.7;
    // Height of the actor's hop, and depth of the dive after it.
    const HOP: f32 = 90.0;
    const DIVE: f32 = 46.0;
    let turn = (t * HOPS_HZ).rem_euclid(1.0);
    if turn >= AIR {
        let under = (turn - AIR) / (1.0 - AIR);
        return (58.0 * (under * PI).cos(), DIVE);
    }
    let air = turn / AIR;
    // 1.0 in the middle of the leap, 0.0 where it meets the water.
    let near = (air.min(1.0 - air) * 2.0).min(1.0);
    let dive = DIVE * (1.0 - smooth(0.0, 0.5, near));
    let held = heavy * HOP * 4.0 * air * (1.0 - air);
    (-58.0 * (air * PI).cos(), dive + held)
}

fn part_pose(subject: Subject, name: &str, m: &ActMoment) -> PartPose {
    let t = m.t + f32::from(m.nth) * 1.37;
    let (rate, reach) = beat(subject, m.act);
    let turn = t * rate * TAU;
    let asleep = m.act == Act::Sleep;
    if let Some(arm) = name.strip_prefix("arm-") {
        return tentacle(subject, arm, t, m.act);
    }
    match (name, subject) {
        ("figure", Subject::Seal) => seal(m, t),
        ("figure", Subject::Octopus | Subject::Jellyfish) => {
            PartPose::shifted(0.0, -2.6 * pulse(t - 0.25))
        }
        // The actor moves the whole square along the arc; here the drawing only turns and dives
        // within it.
        ("figure", _) if m.act == Act::Jump => {
            let (pitch, under) = leap(m.t, heavy(subject));
            PartPose::turned(pitch).shift(0.0, under)
        }
        ("figure", Subject::Whale | Subject::Dolphin) => PartPose::turned(2.5 * (turn + 2.2).sin()),
        ("figure", _) => PartPose::turned(1.5 * (t * 0.7).sin()),
        // From the side, a tail that beats sideways looks shorter.
        ("rear", Subject::Shark) => {
            PartPose::turned(3.0 * turn.sin()).scale(1.0 - 0.07 * turn.sin(), 1.0)
        }
        ("tail", Subject::Shark) => {
            PartPose::turned(5.0 * (turn - 0.8).sin()).scale(0.82 + 0.18 * (turn - 0.8).cos(), 1.0)
        }
        ("tail", Subject::Fish) => {
            PartPose::turned(8.0 * turn.sin()).scale(0.78 + 0.22 * turn.cos(), 1.0)
        }
        ("rear", _) => PartPose::turned(reach * turn.sin()),
        ("tail", Subject::Seal) => PartPose::turned(4.0 * (t * 1.7).sin()),
        ("tail", _) => PartPose::turned(1.5 * reach * (turn - 0.9).sin()),
        ("fin", Subject::Seal) if matches!(m.act, Act::Wave | Act::Play | Act::Dance) => {
            PartPose::turned(-34.0 + 18.0 * (t * 9.0).sin())
        }
        ("fin" | "fin-far", Subject::Seal) => PartPose::turned(2.0 * (t * 1.3).sin()),
        ("fin" | "fin-far", _) => PartPose::turned(9.0 * (turn * 0.5 + 0.5).sin()),
        ("bell", Subject::Jellyfish) => {
            PartPose::scaled(1.0 - 0.13 * pulse(t), 1.0 + 0.12 * pulse(t))
        }
        ("bell-low", _) => PartPose::scaled(1.0 - 0.16 * pulse(t), 1.0),
        ("bell", _) => PartPose::scaled(1.0 + 0.03 * pulse(t), 1.0 - 0.04 * pulse(t)),
        ("neck", _) => PartPose::turned(3.0 * (t * 0.9).sin() + if asleep { 30.0 } else { 0.0 }),
        ("head", _) => PartPose::turned(4.0 * (t * 0.55).sin()),
        ("trunk", _) => PartPose::scaled(1.0, 1.0 + 0.015 * (t * 1.8).sin()),
        // A whale blows now and then, at the surface or at rest.
        ("spout", _) => spout(m),
        ("eye", _) if asleep => PartPose::HIDDEN,
        ("eye", _) if (t * 0.29).fract() < 0.03 => PartPose::scaled(1.0, 0.1),
        ("lid", _) if !asleep => PartPose::HIDDEN,
        _ => PartPose::REST,
    }
}

/// One stroke of a jellyfish's bell or of eight arms: closes fast, opens slowly.
fn pulse(t: f32) -> f32 {
    let turn = (t * 0.55).rem_euclid(1.0);
    smooth(0.0, 0.28, turn) - smooth(0.28, 1.0, turn)
}

/// A wave down each arm; `arm` is the number of the arm and of the segment.
fn tentacle(subject: Subject, arm: &str, t: f32, act: Act) -> PartPose {
    let mut numbers = arm.split('-').map(|word| word.parse().unwrap_or(0.0_f32));
    let (arm, segment) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    let lively = if act == Act::Sleep { 0.4 } else { 1.0 };
    let wave = (t * 2.1 - segment * 0.95 + arm * 1.3).sin();
    // Arms 1 to 3 are on one side, 4 to 6 on the other.
    let out = (arm - 3.5).signum();
    let push = pulse(t - 0.1 * segment);
    let degrees = match subject {
        Subject::Octopus => 9.0 * wave + out * (6.0 - 16.0 * push),
        _ => 7.0 * wave,
    };
    PartPose::turned(degrees * lively)
}

/// A seal, which rocks along on its belly or swims.
fn seal(m: &ActMoment, t: f32) -> PartPose {
    match m.act {
        Act::Walk | Act::Run | Act::Move => {
            let turn = m.gone * 100.0 / 14.0 * TAU;
            PartPose::turned(4.0 * turn.sin()).shift(0.0, -2.5 * turn.sin().max(0.0))
        }
        Act::Swim => {
            PartPose::turned(24.0 + 4.0 * (t * 2.0).sin()).shift(0.0, 12.0 + 1.5 * (t * 1.4).sin())
        }
        Act::Dance | Act::Play => PartPose::turned(5.0 * (t * TAU).sin()),
        _ => PartPose::REST,
    }
}

fn spout(m: &ActMoment) -> PartPose {
    if m.act != Act::Jump {
        return PartPose::HIDDEN;
    }
    let turn = (m.t * HOPS_HZ).rem_euclid(1.0);
    if !(0.1..=0.6).contains(&turn) {
        return PartPose::HIDDEN;
    }
    PartPose::scaled(1.0, ((turn - 0.1) / 0.5 * PI).sin().max(0.02))
}
