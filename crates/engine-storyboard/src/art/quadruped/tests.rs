//! What four-legged figures promise: feet that stand, heads that reach the ground, eyes that close.

use super::figure;
use super::{AnimalPose, GROUND, RestJoints, turned};
use crate::art::ActMoment;
use crate::art::gait::{BOUND, GALLOP, HOP, NAMES, Point, TROT, WALK};
use crate::art::rig::{PartPose, Rig};
use crate::subject::{Act, BodyKind, Subject};

fn walkers() -> impl Iterator<Item = (Subject, &'static Rig, RestJoints)> {
    let all = Subject::ALL.iter().copied();
    all.filter(|one| one.facts().body == BodyKind::Quadruped)
        .filter(|one| !matches!(one, Subject::Snake | Subject::Snail))
        .map(|one| {
            let rig = crate::art::drawing(one).unwrap();
            let frame =
                RestJoints::from_rig(rig).unwrap_or_else(|| panic!("{one:?} lacks a joint"));
            (one, rig, frame)
        })
}

fn moment(act: Act, t: f32, gone: f32) -> ActMoment {
    ActMoment {
        act,
        t,
        gone,
        share: 0.5,
        nth: 0,
        holder: None,
    }
}

/// Where foot `nth` of a posed figure is.
fn foot(figure: &AnimalPose, frame: &RestJoints, nth: usize) -> Point {
    let pose = figure.poses(frame);
    let leg = &frame.legs[nth];
    let [thigh, shin] = ["leg", "shin"].map(|part| pose(&format!("{part}-{}", NAMES[nth])));
    let foot = turned(leg.foot, leg.knee, shin.degrees);
    let foot = turned(foot, leg.hip, thigh.degrees);
    (foot.0 + thigh.shift.0, foot.1 + thigh.shift.1)
}

#[test]
fn a_standing_foot_goes_back_as_fast_as_the_body_goes_on() {
    for gait in [WALK, TROT, GALLOP, BOUND, HOP] {
        for nth in 0..4 {
            for n in 0..200 {
                let (before, after) = (n as f32 * 0.01, n as f32 * 0.01 + 0.005);
                let (a, b) = (gait.step(nth, before), gait.step(nth, after));
                if a.up == 0.0 && b.up == 0.0 {
                    let moved = b.ahead - a.ahead + 0.005 * gait.stride();
                    assert!(moved.abs() < 1e-4, "{gait:?} {nth} {n}: {moved}");
                }
            }
        }
    }
}

#[test]
fn standing_feet_of_all_walkers_stay_where_they_are() {
    for (subject, _, frame) in walkers() {
        for act in [Act::Walk, Act::Run] {
            let hops = matches!(subject, Subject::Kangaroo | Subject::Squirrel);
            for nth in if hops { vec![0, 2] } else { vec![0, 1, 2, 3] } {
                let mut held: Option<f32> = None;
                let mut stood = 0;
                for n in 0..240 {
                    let gone = n as f32 * 0.005;
                    let figure = figure(subject, &frame, &moment(act, gone, gone));
                    let at = foot(&figure, &frame, nth);
                    if at.1 < frame.legs[nth].foot.1 - 0.35 {
                        held = None;
                        continue;
                    }
                    stood += 1;
                    let ground = at.0 + gone * 100.0;
                    let first = *held.get_or_insert(ground);
                    assert!(
                        (ground - first).abs() < 1.3,
                        "{subject:?} {act:?}: foot {nth} slides by {}",
                        ground - first
                    );
                }
                assert!(stood > 40, "{subject:?} {act:?}: foot {nth} stood {stood}");
            }
        }
    }
}

#[test]
fn a_leg_reaches_where_it_is_told_to() {
    for (subject, _, frame) in walkers() {
        for nth in 0..4 {
            let leg = &frame.legs[nth];
            for (right, down) in [(0.0, 0.0), (3.0, -2.0), (-4.0, -3.0)] {
                let mut posed = AnimalPose::REST;
                posed.feet[nth] = super::FootPose::At(right, down, 0.0);
                posed.sunk = 1.0;
                let at = foot(&posed, &frame, nth);
                let off = (at.0 - leg.foot.0 - right).hypot(at.1 - leg.foot.1 - down);
                assert!(off < 0.9, "{subject:?} {nth}: {off}");
            }
        }
    }
}

#[test]
fn grazers_reach_the_ground() {
    for subject in [Subject::Cow, Subject::Horse, Subject::Sheep, Subject::Deer] {
        let (_, _, frame) = walkers().find(|(one, ..)| *one == subject).unwrap();
        let lowest = (0..60)
            .map(|n| figure(subject, &frame, &moment(Act::Eat, n as f32 * 0.1, 0.0)))
            .map(|figure| figure.mouth(&frame, figure.neck, figure.head).1)
            .fold(f32::MIN, f32::max);
        assert!(
            (GROUND - 5.0..GROUND + 3.0).contains(&lowest),
            "{subject:?}: {lowest}"
        );
    }
}

#[test]
fn sleepers_close_their_eyes_and_lie_lower() {
    for (subject, _, frame) in walkers() {
        let asleep = figure(subject, &frame, &moment(Act::Sleep, 1.0, 0.0));
        let pose = asleep.poses(&frame);
        assert_eq!(pose("eye"), PartPose::HIDDEN, "{subject:?}");
        assert!(!pose("lid").hidden, "{subject:?}");
        let awake = figure(subject, &frame, &moment(Act::Stand, 1.0, 0.0));
        assert!(awake.poses(&frame)("lid").hidden, "{subject:?}");
    }
    let cat = walkers().find(|(one, ..)| *one == Subject::Cat).unwrap().2;
    let cat = figure(Subject::Cat, &cat, &moment(Act::Sleep, 1.0, 0.0));
    assert!(cat.curled);
}

#[test]
fn a_seated_dog_has_its_shoulders_above_its_hips() {
    let (_, _, frame) = walkers().find(|(one, ..)| *one == Subject::Dog).unwrap();
    let seated = figure(Subject::Dog, &frame, &moment(Act::Sit, 1.0, 0.0));
    let hip = seated.carried(&frame, frame.legs[0].hip);
    let shoulder = seated.carried(&frame, frame.legs[1].hip);
    assert!(shoulder.1 < hip.1 - 12.0, "{shoulder:?} {hip:?}");
    assert!(hip.1 > frame.legs[0].hip.1 + 10.0);
}

#[test]
fn a_leap_rises_nose_first_and_comes_down_nose_first() {
    let (_, _, frame) = walkers().find(|(one, ..)| *one == Subject::Horse).unwrap();
    let pitch = |t| figure(Subject::Horse, &frame, &moment(Act::Jump, t, 0.0)).pitch;
    assert!(pitch(0.1) < -8.0);
    assert!(pitch(0.8) > 8.0);
}

#[test]
fn only_the_dragon_flies() {
    let flies = |one: Subject| {
        let frame = walkers().find(|(other, ..)| *other == one).unwrap().2;
        let wings = |t| figure(one, &frame, &moment(Act::Fly, t, 0.0)).wings;
        (0..20).any(|n| (wings(n as f32 * 0.1) - wings(0.0)).abs() > 1.0)
    };
    assert!(flies(Subject::Dragon));
    assert!(!flies(Subject::Cow));
}
