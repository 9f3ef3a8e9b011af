//! What the drawings of people promise, proved on postures and on small pictures.

use std::collections::BTreeSet;

use tiny_skia::Transform;

use super::skeleton::{LimbPose, Skeleton};
use super::{acts, draw, head, outfit::outfit, skeleton::BodyBuild};
use crate::art::rig::Rig;
use crate::art::trial::ACTS;
use crate::art::{ActMoment, SubjectColours, anchor, reach};
use crate::raster::colour::Rgb;
use crate::raster::pen::Pen;
use crate::subject::{Act, BodyKind, Subject};

const LOOK: SubjectColours = SubjectColours {
    main: Rgb::hex(0xff_00ff),
    trim: Rgb::hex(0x20_20ff),
    dark: Rgb::hex(0x20_2020),
    pale: Rgb::hex(0xf0_f0f0),
    lamp: Rgb::hex(0xff_d27a),
    skin: Rgb::hex(0x00_ff00),
    hair: Rgb::hex(0x00_3030),
    lit: false,
    light: Rgb::WHITE,
    haze: Rgb::WHITE,
    mist: 0.0,
    snowy: false,
};
/// Pixels of a square's side in the pictures.
const SIDE: f32 = 48.0;
/// Pixels from the anchor to each edge of a picture.
const EDGE: f32 = 84.0;

fn moment(act: Act, t: f32) -> ActMoment {
    ActMoment {
        act,
        t,
        gone: t * 0.16,
        share: (t / 4.0).min(1.0),
        nth: 0,
        holder: None,
    }
}

fn people() -> impl Iterator<Item = Subject> {
    let all = Subject::ALL.iter().copied();
    all.filter(|subject| subject.facts().body == BodyKind::Person)
}

/// The picture around the anchor, `[2 * EDGE][2 * EDGE][4] u8`, RGBA.
fn picture(subject: Subject, m: &ActMoment) -> Vec<u8> {
    let onto = Transform::from_translate(EDGE, EDGE)
        .pre_scale(SIDE / 100.0, SIDE / 100.0)
        .pre_translate(-50.0, -anchor(subject));
    let mut pen = Pen::new(2 * EDGE as u32, 2 * EDGE as u32, onto).unwrap();
    draw(&mut pen, subject, &LOOK, m);
    pen.pixmap.data().to_vec()
}

/// Columns and rows of the pixels that `is` likes, in the square's coordinates.
fn places(subject: Subject, picture: &[u8], is: impl Fn(&[u8]) -> bool) -> Vec<(f32, f32)> {
    let width = 2 * EDGE as usize;
    let place = |index: usize| {
        let (x, y) = (index % width, index / width);
        let along = |pixel: usize| (pixel as f32 + 0.5 - EDGE) * 100.0 / SIDE;
        (along(x) + 50.0, along(y) + anchor(subject))
    };
    let pixels = picture.chunks_exact(4).enumerate();
    pixels
        .filter(|(_, pixel)| is(pixel))
        .map(|(index, _)| place(index))
        .collect()
}

fn bones(act: Act, t: f32) -> Skeleton {
    Skeleton::new(
        &BodyBuild::MAN,
        &acts::posture(&BodyBuild::MAN, &moment(act, t)),
    )
}

#[test]
fn everybody_does_everything_within_reach() {
    for subject in people() {
        for (index, act) in ACTS.into_iter().enumerate() {
            let t = 1.3 + index as f32 * 0.11;
            let picture = picture(subject, &moment(act, t));
            let drawn = places(subject, &picture, |pixel| pixel[3] > 40);
            assert!(drawn.len() > 100, "{subject:?} {act:?} is not drawn");
            let limit = reach(subject) * 100.0;
            for (x, y) in drawn {
                let far = (x - 50.0).abs().max((y - anchor(subject)).abs());
                assert!(far < limit + 1.0, "{subject:?} {act:?} reaches {x}, {y}");
            }
        }
    }
}

#[test]
fn every_garment_exists() {
    let parts = |sheet: &str| -> BTreeSet<&str> {
        let rig = Rig::named(&format!("parts-people-{sheet}")).unwrap();
        rig.parts().into_iter().collect()
    };
    let [limbs, torsos, heads, hair, hats, props] =
        ["limbs", "torsos", "heads", "hair", "hats", "props"].map(parts);
    for subject in people() {
        for nth in 0..12 {
            let worn = outfit(subject, nth);
            let on_limbs = [worn.hand.0, worn.foot.0, "hand-open"].into_iter();
            for name in on_limbs.chain(worn.arm).chain(worn.leg.0) {
                assert!(limbs.contains(name), "{subject:?}: {name}");
            }
            for name in worn.face {
                assert!(heads.contains(name), "{subject:?}: {name}");
            }
            let rest = [
                (&torsos, worn.torso),
                (&torsos, worn.back),
                (&hair, worn.hair),
                (&hats, worn.hat),
                (&props, worn.held),
            ];
            for (sheet, name) in rest {
                assert!(
                    name.is_empty() || sheet.contains(name),
                    "{subject:?}: {name}"
                );
            }
        }
    }
}

#[test]
fn a_standing_foot_does_not_slide() {
    for (act, build) in [
        (Act::Walk, BodyBuild::MAN),
        (Act::Run, BodyBuild::MAN),
        (Act::Walk, BodyBuild::CHILD),
    ] {
        let mut stood = 0;
        let mut before: Option<(f32, f32)> = None;
        for step in 0..400 {
            let m = ActMoment {
                gone: 0.01 + step as f32 * 0.004,
                ..moment(act, 1.0)
            };
            let posture = acts::posture(&build, &m);
            let bones = Skeleton::new(&build, &posture);
            let LimbPose::To(x, y) = posture.legs[0] else {
                panic!("legs that walk reach for the ground");
            };
            let ankle = bones.legs[0][2].at;
            assert!(
                (ankle.0 - x).hypot(ankle.1 - y) < 0.2,
                "{act:?}: the leg is too short at {x}, {y}"
            );
            // Where it is on the ground.
            let place = 50.0 + (x - 50.0) * build.whole + m.gone * 100.0;
            let stands = (y - build.ankle_row()).abs() < 0.001;
            if let Some((_, at)) = before.filter(|_| stands) {
                stood += 1;
                assert!(
                    (place - at).abs() < 0.01,
                    "{act:?}: it slides from {at} to {place}"
                );
            }
            before = stands.then_some((y, place));
        }
        assert!(stood > 100, "{act:?}: {stood}");
    }
}

#[test]
fn who_walks_nowhere_stands() {
    let still = ActMoment {
        gone: 0.0,
        ..moment(Act::Walk, 1.0)
    };
    let build = BodyBuild::MAN;
    assert_eq!(
        acts::posture(&build, &still).legs,
        acts::posture(&build, &moment(Act::Stand, 1.0)).legs
    );
}

#[test]
fn faces_are_where_captions_are_told() {
    for subject in [
        Subject::Man,
        Subject::Girl,
        Subject::King,
        Subject::Rider,
        Subject::Cyclist,
        Subject::Diver,
        Subject::Couple,
    ] {
        for act in [Act::Stand, Act::Walk, Act::Sit, Act::Sleep, Act::Swim] {
            let m = moment(act, 1.1);
            let [left, top, right, bottom] = head(subject, &m).unwrap();
            let picture = picture(subject, &m);
            // Skin, hair and beards.
            let skin = places(subject, &picture, |p| p[0] < 30 && p[1] > 40 && p[3] > 200);
            let within =
                |(x, y): &&(f32, f32)| (left..right).contains(x) && (top..bottom).contains(y);
            let area = (right - left) * (bottom - top) * (SIDE / 100.0).powi(2);
            let share = skin.iter().filter(within).count() as f32 / area;
            // Two heads leave a gap between them.
            assert!(
                share > 0.1,
                "{subject:?} {act:?}: {share} of the box is face"
            );
            // Hair and beards of these are on the head only.
            if matches!(subject, Subject::Man | Subject::King | Subject::Cyclist) {
                let hair = places(subject, &picture, |p| p[0] < 8 && p[1] < 60 && p[3] > 200);
                let inside = hair.iter().filter(within).count();
                assert!(
                    inside * 10 > hair.len() * 9,
                    "{subject:?} {act:?}: {inside} of {} pixels of hair are in the box",
                    hair.len()
                );
            }
        }
    }
    assert_eq!(head(Subject::Cat, &moment(Act::Stand, 1.0)), None);
}

#[test]
fn the_named_colour_is_the_clothes() {
    for subject in people() {
        let m = moment(subject.facts().usual, 1.1);
        let picture = picture(subject, &m);
        let drawn = places(subject, &picture, |p| p[3] > 200).len();
        let main = places(subject, &picture, |p| p[0] > 110 && p[1] < 90 && p[2] > 110).len();
        let share = main as f32 / drawn as f32;
        // A crowd does not wear one colour, and a bicycle or a horse is large.
        let least = match subject {
            Subject::Crowd | Subject::Couple | Subject::Rider | Subject::Cyclist => 0.05,
            _ => 0.13,
        };
        assert!(share > least, "{subject:?}: {share}");
    }
}

#[test]
fn five_people_differ() {
    for subject in [Subject::Person, Subject::Man, Subject::Woman] {
        let seen: Vec<_> = (0..5).map(|nth| outfit(subject, nth)).collect();
        for (index, one) in seen.iter().enumerate() {
            for other in &seen[index + 1..] {
                let hair = one.hair != other.hair || one.hat != other.hat;
                assert!(hair && one != other, "{subject:?}: {one:?}");
            }
        }
    }
}

#[test]
fn acts_are_what_they_are_called() {
    let top = |act: Act| bones(act, 1.0).head_box()[1];
    assert!(top(Act::Sit) > top(Act::Stand) + 20.0);
    assert!(top(Act::Sleep) > top(Act::Sit) + 10.0);
    // A hand waves beside the head; a snack comes to the mouth; both arms spread in a dance.
    let hand = |act: Act, t: f32| bones(act, t).hand(1);
    let waves: Vec<f32> = (0..30)
        .map(|n| hand(Act::Wave, n as f32 * 0.05).0)
        .collect();
    let span = waves.iter().fold(f32::MIN, |a, b| a.max(*b))
        - waves.iter().fold(f32::MAX, |a, b| a.min(*b));
    assert!(span > 4.0 && hand(Act::Wave, 0.3).1 < 32.0, "{span}");
    let nearest = (0..60).map(|n| {
        let (x, y) = hand(Act::Eat, n as f32 * 0.05);
        (x - 58.0).hypot(y - 26.0)
    });
    assert!(nearest.fold(f32::MAX, f32::min) < 8.0);
    let steps: BTreeSet<i32> = (0..40)
        .map(|n| bones(Act::Dance, n as f32 * 0.05).pelvis.0.round() as i32)
        .collect();
    assert!(steps.len() > 5, "hips swing: {steps:?}");
}

#[test]
fn somebody_who_jumps_leaves_the_ground_stretched_and_crouches_between() {
    let clock = |turn: f32| turn / crate::art::HOPS_HZ;
    let air = bones(Act::Jump, clock(0.35));
    let rest = bones(Act::Jump, clock(0.85));
    assert!(air.hand(0).1 < 30.0, "arms are up");
    assert!(rest.pelvis.1 > air.pelvis.1 + 5.0, "knees give");
}
