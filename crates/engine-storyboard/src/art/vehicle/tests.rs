//! What vehicles promise: they roll without sliding, turn what turns, and light up by night.

use super::*;
use crate::art::rig::{Rig, source};
use crate::art::trial::{BY_NIGHT, LOOK, check_every_act, moment, subjects, trial};
use crate::art::{ActMoment, drawing_name, reach};
use crate::subject::{Act, BodyKind, Subject};

#[test]
fn every_vehicle_is_drawn_in_every_act_and_always_alike() {
    check_every_act(BodyKind::Vehicle, 30);
}

#[test]
fn no_vehicle_leaves_its_reach() {
    // Rails and the string of a kite go on past the frame.
    let endless = |subject: &Subject| {
        matches!(
            subject,
            Subject::Train | Subject::SteamTrain | Subject::Kite
        )
    };
    for subject in subjects(BodyKind::Vehicle).filter(|subject| !endless(subject)) {
        for act in [Act::Stand, Act::Move, Act::Fly, Act::Rise, Act::Land] {
            for t in [0.4, 1.3, 2.9] {
                let drawn = trial(subject, &BY_NIGHT, &moment(act, t), 96, 4.0);
                let far = drawn.farthest();
                assert!(far <= reach(subject) + 0.03, "{subject:?} {act:?}: {far}");
            }
        }
    }
}

#[test]
fn the_foot_of_a_wheel_stands_still_on_the_ground() {
    for wheel_radius in [2.3_f32, 8.4, 19.0] {
        for gone in [0.002_f32, 0.11, 0.74] {
            let along = gone * 100.0;
            // The point that touched the ground has turned back as far as its axle went on.
            let turned = (along / wheel_radius).to_degrees() % 360.0;
            let apart = (rolled(gone, wheel_radius) - turned).abs();
            assert!(apart < 0.01, "radius {wheel_radius}, gone {gone}: {apart}");
        }
    }
    let step = rolled(0.001, 9.4) - rolled(0.0, 9.4);
    assert!(step > 0.0, "wheels turn clockwise on the way to the right");
}

#[test]
fn every_wheel_names_its_radius_and_touches_the_ground() {
    let mut wheels = 0;
    for subject in subjects(BodyKind::Vehicle) {
        let name = drawing_name(subject);
        let rig = Rig::named(&name).unwrap();
        for part in rig.parts() {
            if part.starts_with("wheel-") {
                assert!(radius(part).is_some(), "{name}: {part}");
                wheels += 1;
            }
        }
        let svg = source(&name).unwrap();
        for line in svg.lines().filter(|line| line.contains("id=\"wheel-")) {
            let word = |from: &str, to: char| -> String {
                let rest = line.split(from).nth(1).unwrap();
                rest.split(to).next().unwrap().to_owned()
            };
            let size = radius(&word("id=\"", '"')).unwrap();
            let place = word("translate(", ')');
            let down: f32 = place.split(' ').nth(1).unwrap().parse().unwrap();
            let scale: f32 = word("scale(", ')').parse().unwrap();
            assert!((scale * 10.0 - size).abs() < 0.01, "{name}: {line}");
            assert!((96.8..=98.2).contains(&(down + size)), "{name}: {line}");
        }
    }
    assert!(wheels > 50, "{wheels} wheels");
}

#[test]
fn a_parked_car_keeps_its_wheels_still_and_a_driving_one_turns_them() {
    let at = |gone: f32| {
        let m = ActMoment {
            gone,
            ..moment(Act::Stand, 0.0)
        };
        pose("wheel-front-9.4", &m)
    };
    assert_eq!(at(0.0), PartPose::REST);
    assert_ne!(at(0.2), at(0.25));
}

#[test]
fn head_lamps_shine_by_night_only() {
    for subject in [
        Subject::Car,
        Subject::Bus,
        Subject::Motorcycle,
        Subject::Tram,
    ] {
        let m = moment(Act::Move, 1.0);
        let day = trial(subject, &LOOK, &m, 120, 2.2).near(LOOK.lamp);
        let night = trial(subject, &BY_NIGHT, &m, 120, 2.2).near(LOOK.lamp);
        assert!(
            night > day + 4,
            "{subject:?}: {day} by day, {night} by night"
        );
    }
}

#[test]
fn a_bicycle_is_ridden_when_it_moves() {
    let skin = |act| trial(Subject::Bicycle, &LOOK, &moment(act, 1.0), 160, 2.2).near(LOOK.skin);
    assert_eq!(skin(Act::Stand), 0);
    assert!(skin(Act::Move) > 20);
}

#[test]
fn a_rocket_burns_unless_it_stands() {
    let cold = SubjectColours {
        trim: LOOK.dark,
        ..LOOK
    };
    let fire = |act| {
        let drawn = trial(Subject::Rocket, &cold, &moment(act, 1.0), 160, 2.2);
        drawn.count(|[r, g, b, _]| *r > 240 && (80..230).contains(g) && *b < 110)
    };
    assert_eq!(fire(Act::Stand), 0);
    assert!(fire(Act::Rise) > 40);
}

#[test]
fn the_named_colour_is_the_main_area() {
    let blue = crate::raster::colour::Rgb::hex(0x28_58d8);
    let look = SubjectColours { main: blue, ..LOOK };
    for subject in subjects(BodyKind::Vehicle).filter(|one| *one != Subject::Bicycle) {
        let m = moment(subject.facts().usual, 1.0);
        let drawn = trial(subject, &look, &m, 120, 2.2);
        let bluish = drawn.count(|[r, g, b, a]| *a > 200 && *b > *r && *b > *g && b - r > 40);
        let share = bluish as f32 / drawn.drawn() as f32;
        assert!(share > 0.1, "{subject:?}: {share} of it is blue");
    }
}

#[test]
fn both_bones_keep_their_length_all_the_way_round() {
    for degrees in 0..360 {
        for near in [true, false] {
            let foot = foot(degrees as f32, near);
            let knee = knee(foot);
            let thigh = (knee.0 - HIP.0).hypot(knee.1 - HIP.1);
            let shin = (knee.0 - foot.0).hypot(knee.1 - foot.1);
            assert!((thigh - BONE).abs() < 0.1, "{degrees}: thigh {thigh}");
            assert!((shin - BONE).abs() < 0.1, "{degrees}: shin {shin}");
            assert!(knee.0 > (HIP.0 + foot.0) * 0.5, "a knee bends forward");
        }
    }
}
