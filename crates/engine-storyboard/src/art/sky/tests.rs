//! What the sky promises: globes turn, fireworks burst, fall and fade, and named colours are theirs.

use super::*;
use crate::art::reach;
use crate::art::trial::{LOOK, check_every_act, moment, subjects, trial};
use crate::raster::colour::Rgb;
use crate::subject::{Act, BodyKind, Subject};

#[test]
fn all_in_the_sky_is_drawn_in_every_act_and_always_alike() {
    check_every_act(BodyKind::Sky, 12);
}

#[test]
fn nothing_in_the_sky_leaves_its_reach_and_all_moves() {
    for subject in subjects(BodyKind::Sky) {
        let mut before = Vec::new();
        for t in [0.2, 1.1, 2.3, 3.9] {
            let usual = subject.facts().usual;
            let drawn = trial(subject, &LOOK, &moment(usual, t), 120, 5.0);
            let far = drawn.farthest();
            assert!(far <= reach(subject) + 0.03, "{subject:?}: {far}");
            assert_ne!(drawn.pixels, before, "{subject:?} stands still");
            before = drawn.pixels;
        }
    }
}

#[test]
fn fireworks_have_the_colour_that_is_named() {
    let blue = SubjectColours {
        main: Rgb::hex(0x30_60ff),
        ..LOOK
    };
    let natural = SubjectColours {
        main: Subject::Fireworks.facts().colour.unwrap(),
        ..LOOK
    };
    for (look, wanted) in [(&blue, true), (&natural, false)] {
        let (mut reddish, mut bluish) = (0, 0);
        for step in 0..8 {
            let m = moment(Act::Burn, step as f32 * 0.9);
            let drawn = trial(Subject::Fireworks, look, &m, 160, 3.2);
            reddish += drawn.count(|[r, _, b, _]| i16::from(*r) > i16::from(*b) + 60);
            bluish += drawn.count(|[r, _, b, _]| i16::from(*b) > i16::from(*r) + 60);
        }
        // Rockets on their way and the hearts of bursts are golden always.
        assert_eq!(bluish > 3 * reddish, wanted, "{bluish} blue, {reddish} red");
    }
}

#[test]
fn several_fireworks_are_not_the_same() {
    let of = |nth| {
        let m = ActMoment {
            nth,
            ..moment(Act::Burn, 2.0)
        };
        trial(Subject::Fireworks, &LOOK, &m, 80, 3.2).pixels
    };
    assert_ne!(of(0), of(1));
}
