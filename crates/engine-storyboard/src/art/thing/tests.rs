//! What plants and things promise: all acts draw something within reach, what opens opens, what is alight
//! moves, and what lies still lies still.

use tiny_skia::Transform;

use super::pose;
use crate::art::{ActMoment, SubjectColours, anchor, draw, reach};
use crate::raster::colour::Rgb;
use crate::raster::pen::Pen;
use crate::subject::{Act, BodyKind, Subject};

const SIDE: f32 = 40.0;

fn look() -> SubjectColours {
    SubjectColours {
        main: Rgb::hex(0xc8_4030),
        lit: true,
        ..SubjectColours::PLAIN
    }
}

const REST: ActMoment = ActMoment {
    act: Act::Stand,
    t: 1.0,
    gone: 0.0,
    share: 0.0,
    nth: 0,
    holder: None,
};

/// A picture of 120 by 120 with the anchor in its middle and the square 40 wide.
fn picture(subject: Subject, look: &SubjectColours, moment: ActMoment) -> Vec<u8> {
    let onto = Transform::from_translate(SIDE * 1.5, SIDE * 1.5)
        .pre_scale(SIDE / 100.0, SIDE / 100.0)
        .pre_translate(-50.0, -anchor(subject));
    let side = (SIDE * 3.0) as u32;
    let mut pen = Pen::new(side, side, onto).unwrap();
    draw(&mut pen, subject, look, &moment);
    pen.pixmap.data().to_vec()
}

fn rest(subject: Subject, change: impl FnOnce(&mut ActMoment)) -> Vec<u8> {
    let mut moment = REST;
    change(&mut moment);
    picture(subject, &look(), moment)
}

fn covered(picture: &[u8]) -> usize {
    picture.chunks_exact(4).filter(|pixel| pixel[3] > 8).count()
}

/// Pixels that differ by more than a trace.
fn apart(a: &[u8], b: &[u8]) -> usize {
    let pairs = a.chunks_exact(4).zip(b.chunks_exact(4));
    pairs
        .filter(|(a, b)| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > 12))
        .count()
}

fn mine() -> impl Iterator<Item = Subject> {
    let all = Subject::ALL.iter().copied();
    all.filter(|one| matches!(one.facts().body, BodyKind::Plant | BodyKind::Thing))
}

#[test]
fn every_act_of_every_plant_and_thing_is_drawn_within_reach() {
    const ACTS: [Act; 10] = [
        Act::Stand,
        Act::Sleep,
        Act::Jump,
        Act::Dance,
        Act::Move,
        Act::Open,
        Act::Wave,
        Act::Play,
        Act::Turn,
        Act::Burn,
    ];
    let mut cut = Vec::new();
    for subject in mine() {
        for act in ACTS {
            let moment = ActMoment {
                act,
                t: 2.3,
                gone: 0.7,
                share: 0.9,
                nth: 1,
                holder: None,
            };
            let drawn = picture(subject, &look(), moment);
            assert!(covered(&drawn) > 40, "{subject:?} {act:?}");
            assert_eq!(
                drawn,
                picture(subject, &look(), moment),
                "{subject:?} {act:?}"
            );
            let far = reach(subject) * SIDE;
            let side = (SIDE * 3.0) as usize;
            let away = |index: usize| {
                let (x, y) = ((index % side) as f32 + 0.5, (index / side) as f32 + 0.5);
                (x - SIDE * 1.5).abs().max((y - SIDE * 1.5).abs())
            };
            let pixels = drawn.chunks_exact(4).enumerate();
            let beyond = pixels.filter(|(index, pixel)| pixel[3] > 2 && away(*index) > far);
            if beyond.count() > 0 {
                cut.push((subject, act));
            }
        }
    }
    assert!(cut.is_empty(), "cut off: {cut:?}");
}

#[test]
fn what_opens_is_open_at_the_end() {
    for subject in [
        Subject::Flower,
        Subject::Rose,
        Subject::Tulip,
        Subject::Sunflower,
        Subject::Book,
        Subject::Door,
        Subject::Gift,
        Subject::Chest,
        Subject::Laptop,
        Subject::Egg,
        Subject::Letter,
    ] {
        let at = |share| {
            rest(subject, |m| {
                m.act = Act::Open;
                m.share = share;
            })
        };
        assert!(apart(&at(0.0), &at(1.0)) > 40, "{subject:?} stays shut");
        assert_eq!(apart(&at(0.9), &at(1.0)), 0, "{subject:?} is never done");
    }
    let bud = rest(Subject::Flower, |m| m.act = Act::Open);
    let bloom = rest(Subject::Flower, |m| {
        m.act = Act::Open;
        m.share = 1.0;
    });
    assert!(covered(&bloom) > covered(&bud) + 40);
    assert_eq!(apart(&bloom, &rest(Subject::Flower, |_| {})), 0);
}

#[test]
fn a_ball_rolls_as_far_as_it_goes() {
    let gone = |sides: f32| {
        rest(Subject::Ball, |m| {
            m.act = Act::Move;
            m.gone = sides;
        })
    };
    // Its radius is 0.44 of the square.
    let round = 0.44 * std::f32::consts::TAU;
    assert!(apart(&gone(0.0), &gone(round)) < 6);
    assert!(apart(&gone(0.0), &gone(round * 0.5)) > 100);
}

#[test]
fn what_burns_steams_or_ticks_moves_and_a_chair_does_not() {
    for subject in [
        Subject::Cup,
        Subject::Soup,
        Subject::Teapot,
        Subject::Candle,
        Subject::Lantern,
        Subject::Campfire,
        Subject::Clock,
        Subject::Heart,
        Subject::Bell,
        Subject::Tree,
        Subject::Palm,
        Subject::CherryTree,
        Subject::Flower,
    ] {
        let later = rest(subject, |m| m.t = 1.13);
        assert!(later != rest(subject, |_| {}), "{subject:?} stands still");
    }
    for subject in [
        Subject::Chair,
        Subject::Table,
        Subject::Bread,
        Subject::Ball,
    ] {
        let later = rest(subject, |m| m.t = 1.13);
        assert!(
            later == rest(subject, |_| {}),
            "{subject:?} moves by itself"
        );
    }
}

#[test]
fn sand_leaves_the_upper_glass_as_it_fills_the_lower() {
    for share in [0.0, 0.3, 0.7, 1.0] {
        let moment = ActMoment { share, ..REST };
        let part = |name| pose(Subject::Hourglass, &look(), &moment, name).scale.1;
        let sum = part("upper").powi(2) + part("lower").powi(2);
        assert!((sum - 1.0).abs() < 0.001, "{sum} at {share}");
    }
}

#[test]
fn snow_lies_on_trees_only_in_winter() {
    let snowy = SubjectColours {
        snowy: true,
        ..look()
    };
    for subject in [
        Subject::Tree,
        Subject::Pine,
        Subject::BareTree,
        Subject::Bush,
        Subject::Pumpkin,
    ] {
        let (bare, white) = (
            picture(subject, &look(), REST),
            picture(subject, &snowy, REST),
        );
        assert!(apart(&bare, &white) > 10, "{subject:?}");
    }
}

#[test]
fn a_named_colour_is_most_of_a_thing() {
    let blue = SubjectColours {
        main: Rgb::hex(0x20_40e0),
        ..look()
    };
    for subject in [
        Subject::Cup,
        Subject::Teapot,
        Subject::Apple,
        Subject::Book,
        Subject::Gift,
        Subject::Heart,
        Subject::Chair,
        Subject::Door,
        Subject::Tree,
        Subject::CherryTree,
        Subject::Pumpkin,
    ] {
        let drawn = picture(subject, &blue, REST);
        let is_blue = |pixel: &&[u8]| pixel[3] > 200 && pixel[2] > pixel[0].saturating_add(30);
        let share = drawn.chunks_exact(4).filter(is_blue).count() as f32 / covered(&drawn) as f32;
        assert!(share > 0.4, "{subject:?}: {share}");
    }
}
