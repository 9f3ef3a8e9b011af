//! What buildings promise: lit windows by night, doors that open, and that what turns and flows moves.

use super::*;
use crate::art::reach;
use crate::art::trial::{BY_NIGHT, LOOK, check_every_act, moment, subjects, trial};
use crate::subject::{Act, BodyKind, Subject};

#[test]
fn every_building_is_drawn_in_every_act_and_always_alike() {
    check_every_act(BodyKind::Building, 30);
}

#[test]
fn no_building_leaves_its_reach() {
    for subject in subjects(BodyKind::Building) {
        for t in [0.4, 1.3, 2.9, 4.4] {
            let usual = subject.facts().usual;
            let far = trial(subject, &BY_NIGHT, &moment(usual, t), 120, 5.0).farthest();
            assert!(far <= reach(subject) + 0.03, "{subject:?}: {far}");
        }
    }
}

#[test]
fn windows_are_lit_by_night_only() {
    let windowed = [
        Subject::House,
        Subject::Castle,
        Subject::Church,
        Subject::Temple,
        Subject::Tower,
        Subject::Skyscraper,
        Subject::Windmill,
        Subject::Lighthouse,
        Subject::Barn,
        Subject::Factory,
        Subject::FerrisWheel,
        Subject::LampPost,
    ];
    for subject in windowed {
        let m = moment(Act::Stand, 1.0);
        let day = trial(subject, &LOOK, &m, 160, 2.2).near(LOOK.lamp);
        let night = trial(subject, &BY_NIGHT, &m, 160, 2.2).near(LOOK.lamp);
        assert!(
            night > day + 4,
            "{subject:?}: {day} by day, {night} by night"
        );
    }
}

#[test]
fn doors_open_over_the_shot_and_stay_shut_unasked() {
    for subject in [
        Subject::House,
        Subject::Castle,
        Subject::Church,
        Subject::Temple,
        Subject::Tower,
        Subject::Barn,
        Subject::Tent,
        Subject::Factory,
    ] {
        let light = |act, share| {
            let m = ActMoment {
                share,
                ..moment(act, 1.0)
            };
            let drawn = trial(subject, &BY_NIGHT, &m, 200, 1.4);
            // What is behind the door is lit: warm and bright.
            drawn.count(|[r, g, b, _]| *r > 160 && *g > 120 && *b < 150 && r > b)
        };
        let shut = light(Act::Stand, 1.0);
        assert_eq!(light(Act::Open, 0.0), shut, "{subject:?}");
        let half = light(Act::Open, 0.4);
        let wide = light(Act::Open, 1.0);
        assert!(
            shut < half && half < wide,
            "{subject:?}: {shut} {half} {wide}"
        );
    }
}

#[test]
fn sails_wheels_water_and_fire_move() {
    for subject in [
        Subject::Windmill,
        Subject::FerrisWheel,
        Subject::Fountain,
        Subject::Waterfall,
        Subject::Volcano,
        Subject::Castle,
        Subject::House,
    ] {
        let at = |t| trial(subject, &LOOK, &moment(subject.facts().usual, t), 120, 2.2).pixels;
        let (early, late) = (at(1.0), at(1.4));
        let changed = early.iter().zip(&late).filter(|(a, b)| a != b).count();
        assert!(changed > 40, "{subject:?}: {changed} pixels changed");
    }
}

#[test]
fn cabins_hang_upright_while_the_wheel_turns() {
    for t in [0.0, 3.0, 11.0, 27.0] {
        let m = moment(Act::Turn, t);
        for seat in 0..8 {
            let turn = pose("wheel", &m).degrees + pose(&format!("seat-{seat}"), &m).degrees;
            assert!(turn.abs() < 5.0, "cabin {seat} hangs at {turn} degrees");
        }
    }
}

#[test]
fn a_lighthouse_sends_its_beam_by_night_only() {
    let far = |look| trial(Subject::Lighthouse, look, &moment(Act::Turn, 0.2), 120, 5.0).farthest();
    assert!(far(&LOOK) < 1.1);
    assert!(far(&BY_NIGHT) > 1.2);
}

#[test]
fn a_volcano_erupts_when_it_burns() {
    let lava = |act| {
        let drawn = trial(Subject::Volcano, &LOOK, &moment(act, 2.0), 160, 3.0);
        drawn.count(|[r, g, b, _]| *r > 220 && *g < 190 && *b < 120)
    };
    assert!(lava(Act::Burn) > lava(Act::Stand) + 60);
}
