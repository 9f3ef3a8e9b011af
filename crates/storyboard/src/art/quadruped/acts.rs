//! The acts of four-legged figures: each as a pose at an instant. An animal that cannot do an act does its usual one.

use std::f32::consts::TAU;

use super::figure::{Figure, Foot, Frame, GROUND, turned};
use super::gait::Gait;
use super::habit::{Habit, Sit, Sleep, habit};
use crate::art::{HOPS_HZ, Moment};
use crate::subject::{Act, Subject};

/// The pose of `subject` at `m`.
pub(super) fn figure(subject: Subject, frame: &Frame, m: &Moment) -> Figure {
    let habit = habit(subject);
    let t = m.t + f32::from(m.nth) * 1.37;
    let mut figure = Figure::REST;
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
        Act::Fly | Act::Rise | Act::Fall | Act::Land => super::dragon::fly(&mut figure, m, act),
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
fn alive(figure: &mut Figure, t: f32) {
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
    if turn < 1.0 {
        (turn * std::f32::consts::PI).sin()
    } else {
        0.0
    }
}

/// Walks or runs: steps follow the distance covered.
fn pace(figure: &mut Figure, frame: &Frame, gait: &Gait, m: &Moment) {
    let leg = frame.leg();
    let cycles = m.gone * 100.0 / (gait.stride() * leg) + f32::from(m.nth) * 0.37;
    let (rise, pitch) = gait.sway(cycles);
    // Bent a little, so that straight legs reach both ends of a step.
    figure.sunk = leg * (gait.reach * gait.reach * 0.16 - rise);
    figure.pitch = pitch;
    for (nth, foot) in figure.feet.iter_mut().enumerate() {
        let step = gait.step(nth, cycles);
        *foot = Foot::At(step.ahead * leg, -step.up * leg, step.tip * 42.0);
    }
    if *gait == super::gait::HOP {
        for nth in [1, 3] {
            figure.feet[nth] = Foot::Free(4.0 * (cycles * TAU).sin(), -6.0);
        }
    }
    figure.neck += -pitch * 0.7 + 1.6 * (cycles * TAU * 2.0).sin();
    figure.tail += pitch * 1.5;
}

/// The share of a hop in the air.
const AIR: f32 = 0.7;

/// Crouches, stretches through the air, lands softly.
fn leap(figure: &mut Figure, frame: &Frame, t: f32) {
    let leg = frame.leg();
    let turn = (t * HOPS_HZ).rem_euclid(1.0);
    if turn >= AIR {
        let rest = (turn - AIR) / (1.0 - AIR);
        figure.sunk = leg * 0.22 * (rest * std::f32::consts::PI).sin();
        figure.pitch = 4.0 - 8.0 * rest;
        return;
    }
    let air = turn / AIR;
    figure.pitch = -13.0 * (air * std::f32::consts::PI).cos();
    figure.neck -= figure.pitch * 0.4;
    figure.tail += 18.0 * (1.0 - 2.0 * air);
    let stretch = (air * std::f32::consts::PI).sin().sqrt();
    let (fore, hind) = (0.34 * leg * stretch, -0.36 * leg * stretch);
    let tuck = -0.22 * leg * stretch;
    for (nth, foot) in figure.feet.iter_mut().enumerate() {
        let ahead = if nth % 2 == 0 { hind } else { fore };
        let far = if nth > 1 { 0.8 } else { 1.0 };
        let tip = if nth % 2 == 0 { 46.0 } else { -14.0 };
        *foot = Foot::At(ahead * far, tuck, tip * stretch);
    }
}

/// How far a trunk sinks until its belly is on the ground.
fn depth(frame: &Frame) -> f32 {
    GROUND - frame.belly.1 - 0.5
}

fn sit(figure: &mut Figure, frame: &Frame, habit: &Habit, t: f32) {
    match habit.sit {
        Sit::Always => {}
        Sit::Down => lie(figure, frame),
        Sit::Haunches | Sit::Upright => {
            let hind = &frame.legs[0];
            figure.pitch = -habit.raise;
            figure.sunk = (GROUND - hind.hip.1) - hind.upper() * 0.62;
            figure.ahead = -frame.leg() * 0.08;
            for nth in [0, 2] {
                let hip = figure.carried(frame, frame.legs[nth].hip);
                let under = hip.0 - frame.legs[nth].foot.0 + hind.upper() * 0.5;
                figure.feet[nth] = Foot::Squat(under, 0.0);
            }
            for nth in [1, 3] {
                let hip = figure.carried(frame, frame.legs[nth].hip);
                let back = hip.0 - frame.legs[nth].hip.0;
                figure.feet[nth] = Foot::At(back + 1.5, 0.0, 0.0);
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
    if habit.sit == Sit::Upright {
        let lift = 3.0 * (t * 1.1).sin();
        figure.feet[1] = Foot::Free(-18.0 + lift, -34.0);
        figure.feet[3] = Foot::Free(-30.0 + lift, -30.0);
        figure.holds = true;
    }
}

/// On its belly, legs folded.
fn lie(figure: &mut Figure, frame: &Frame) {
    figure.sunk = depth(frame);
    figure.feet = [Foot::Folded; 4];
    figure.trunk -= 24.0;
    if frame.hanging {
        figure.tail += 58.0;
    }
}

/// How far a neck is lowered in sleep, degrees.
const DROOP_MAX: f32 = 44.0;

fn sleep(figure: &mut Figure, frame: &Frame, habit: &Habit, t: f32) {
    let (neck, head) = (figure.neck, figure.head);
    *figure = Figure {
        asleep: true,
        breath: 1.0 + 0.03 * (t * 1.2).sin(),
        ears: 6.0 * pulse(t, 5.0, 0.1),
        tip: 0.3 * figure.tip,
        tail: 0.2 * figure.tail,
        ..Figure::REST
    };
    match (habit.sleep, frame.pillow) {
        (Sleep::Still, _) => figure.head = 7.0,
        (Sleep::Curled, Some(pillow)) => {
            figure.curled = true;
            (figure.neck, figure.head) = (64.0, -54.0);
            let head = turned(frame.head, frame.neck, figure.neck);
            figure.laid = (pillow.0 - head.0, pillow.1 - head.1);
        }
        (Sleep::Down | Sleep::Curled, _) => {
            lie(figure, frame);
            let most = lowered(figure, frame, GROUND - 3.0, 0.7).min(DROOP_MAX);
            figure.neck = most + 0.2 * neck;
            figure.head = -0.7 * most + 0.2 * head;
        }
    }
}

/// The angle of the neck, degrees, that brings the mouth to row `row` if the head turns back by the share `level` of
/// it.
fn lowered(figure: &Figure, frame: &Frame, row: f32, level: f32) -> f32 {
    let down = |neck: &f32| figure.mouth(frame, *neck, -level * neck).1 >= row;
    let all = (0..60).map(|n| n as f32 * 2.0);
    all.clone().find(down).unwrap_or_else(|| {
        // Out of reach: as low as it can.
        let row = |neck: f32| figure.mouth(frame, neck, -level * neck).1;
        all.fold(
            0.0,
            |best, neck| {
                if row(neck) > row(best) { neck } else { best }
            },
        )
    })
}

/// How far a lowered head turns back, as a share of the neck's turn.
const LEVEL: f32 = 0.36;

/// Head down, chewing, now and then a look up.
fn eat(figure: &mut Figure, frame: &Frame, habit: &Habit, t: f32) {
    let chew = (t * 7.0).sin();
    if habit.sit == Sit::Upright {
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
    let most_bent = if habit.sit == Sit::Down { 104.0 } else { 54.0 };
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
fn wave(figure: &mut Figure, frame: &Frame, habit: &Habit, t: f32) {
    let sway = (t * 6.0).sin();
    if matches!(habit.sit, Sit::Haunches | Sit::Upright) {
        sit(figure, frame, habit, t);
        figure.holds = false;
        figure.feet[1] = Foot::Free(-62.0 + habit.raise * 0.3, -30.0 + 16.0 * sway);
    } else {
        let leg = frame.legs[1].length();
        figure.feet[1] = Foot::At(leg * (0.3 + 0.05 * sway), leg * (-0.3 + 0.09 * sway), 20.0);
    }
    figure.head -= 4.0;
    figure.trunk -= 26.0 + 10.0 * sway;
}

/// Steps in place, two beats per second.
fn dance(figure: &mut Figure, frame: &Frame, t: f32) {
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
        *foot = Foot::At(up * leg * 0.06, -up * leg * 0.22, up * 20.0);
    }
}

/// Up to its shoulders in water, with paddling legs.
fn paddle(figure: &mut Figure, frame: &Frame, t: f32) {
    let leg = frame.leg();
    figure.shift.1 = GROUND - (frame.belly.1 + frame.neck.1) * 0.5 + 1.5 * (t * 1.6).sin();
    figure.pitch = -5.0;
    for (nth, foot) in figure.feet.iter_mut().enumerate() {
        let turn = t * 5.0 + nth as f32 * 1.6;
        *foot = Foot::At(
            leg * 0.2 * turn.cos(),
            -leg * (0.2 + 0.1 * turn.sin()),
            10.0,
        );
    }
}
