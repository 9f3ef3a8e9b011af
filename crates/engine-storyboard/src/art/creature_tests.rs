//! What all living creatures promise: every act draws something, the same each time, within reach.

use tiny_skia::Transform;

use super::trial::ACTS;
use super::{ActMoment, SubjectColours, anchor, draw, reach};
use crate::raster::colour::Rgb;
use crate::raster::pen::Pen;
use crate::subject::{Act, BodyKind, Subject};

/// Side of a picture, and how many sides of the subject's square it spans.
const SIDE: u32 = 96;
const SPAN: f32 = 3.0;

fn creatures() -> impl Iterator<Item = Subject> {
    let all = Subject::ALL.iter().copied();
    all.filter(|one| {
        matches!(
            one.facts().body,
            BodyKind::Quadruped | BodyKind::Bird | BodyKind::Swimmer | BodyKind::Insect
        )
    })
}

/// The opacity of each pixel of `subject`, its anchor in the middle.
fn cover(subject: Subject, act: Act, t: f32, share: f32) -> Vec<u8> {
    let grey = Rgb::hex(0x80_8080);
    let look = SubjectColours {
        main: grey,
        trim: grey,
        dark: Rgb::BLACK,
        pale: Rgb::WHITE,
        lamp: grey,
        skin: grey,
        hair: grey,
        lit: false,
        light: Rgb::WHITE,
        haze: Rgb::WHITE,
        mist: 0.0,
        snowy: false,
    };
    let scale = SIDE as f32 / SPAN / 100.0;
    let onto = Transform::from_translate(SIDE as f32 * 0.5, SIDE as f32 * 0.5)
        .pre_scale(scale, scale)
        .pre_translate(-50.0, -anchor(subject));
    let mut pen = Pen::new(SIDE, SIDE, onto).unwrap();
    let moment = ActMoment {
        act,
        t,
        gone: t * 0.2,
        share,
        nth: 0,
        holder: None,
    };
    draw(&mut pen, subject, &look, &moment);
    pen.pixmap
        .data()
        .chunks_exact(4)
        .map(|pixel| pixel[3])
        .collect()
}

#[test]
fn every_act_of_every_creature_draws_within_reach() {
    let mut wrong = Vec::new();
    for subject in creatures() {
        let far = reach(subject) * SIDE as f32 / SPAN;
        for act in ACTS {
            for t in [0.2, 1.1, 2.6] {
                let cover = cover(subject, act, t, t / 3.0);
                let seen = cover.iter().filter(|alpha| **alpha > 40).count();
                assert!(seen > 60, "{subject:?} {act:?} at {t}: {seen} pixels");
                let off = cover.iter().enumerate().any(|(index, alpha)| {
                    let (x, y) = (index as u32 % SIDE, index as u32 / SIDE);
                    let away = |at: u32| (at as f32 + 0.5 - SIDE as f32 * 0.5).abs() - 0.6;
                    *alpha > 0 && away(x).max(away(y)) > far
                });
                if off {
                    wrong.push((subject, act, t));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these leave their reach: {wrong:?}");
}

#[test]
fn a_moment_always_looks_the_same() {
    for subject in creatures() {
        let act = subject.facts().usual;
        assert_eq!(cover(subject, act, 1.3, 0.4), cover(subject, act, 1.3, 0.4));
    }
}

#[test]
fn creatures_are_alive_at_rest() {
    for subject in creatures() {
        let first = cover(subject, Act::Stand, 0.5, 0.1);
        let moves = [1.2, 2.0, 2.9, 3.8]
            .into_iter()
            .any(|t| cover(subject, Act::Stand, t, 0.1) != first);
        assert!(moves, "{subject:?} is stiff");
    }
}

#[test]
fn acts_look_different() {
    let differ = |subject, a, b| {
        let (a, b) = (cover(subject, a, 1.0, 0.5), cover(subject, b, 1.0, 0.5));
        let changed = a.iter().zip(&b).filter(|(a, b)| a.abs_diff(**b) > 60);
        changed.count()
    };
    for (subject, a, b) in [
        (Subject::Cat, Act::Sit, Act::Sleep),
        (Subject::Dog, Act::Stand, Act::Sit),
        (Subject::Cow, Act::Eat, Act::Sleep),
        (Subject::Eagle, Act::Fly, Act::Sit),
        (Subject::Birds, Act::Fly, Act::Land),
        (Subject::Swan, Act::Swim, Act::Fly),
        (Subject::Dolphin, Act::Swim, Act::Jump),
        (Subject::Bat, Act::Fly, Act::Sleep),
        (Subject::Ladybug, Act::Walk, Act::Fly),
        (Subject::Snail, Act::Move, Act::Sleep),
    ] {
        let count = differ(subject, a, b);
        assert!(count > 40, "{subject:?} {a:?} {b:?}: {count}");
    }
}

#[test]
fn a_lander_folds_its_wings_at_the_end() {
    let top = |share| {
        let highest = |n: u32| {
            let cover = cover(Subject::Eagle, Act::Land, n as f32 * 0.2, share);
            cover.iter().position(|alpha| *alpha > 60).unwrap() / SIDE as usize
        };
        (0..8).map(highest).min().unwrap()
    };
    assert!(top(0.4) + 4 < top(1.0), "{} {}", top(0.4), top(1.0));
}
