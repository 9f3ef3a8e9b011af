//! Couples and crowds: several people in one drawing.

use tiny_skia::{Point, Transform};

use super::acts;
use super::figure::PersonFigure;
use super::outfit::{Outfit, outfit};
use super::skeleton::LimbPose::To;
use super::skeleton::{Posture, Skeleton};
use crate::art::{ActMoment, SubjectColours};
use crate::raster::colour::Rgb;
use crate::raster::pen::Pen;
use crate::subject::{Act, Subject};

/// Distance of each of a couple from the middle.
const APART: f32 = 14.0;

/// Positions and sizes of a couple. People who lie take more room.
fn place(m: &ActMoment, index: usize) -> Transform {
    let side = if index == 0 { -1.0 } else { 1.0 };
    if matches!(m.act, Act::Sleep | Act::Swim | Act::Fly) {
        return Transform::from_translate(50.0 + side * 30.0, 98.0)
            .pre_scale(0.66, 0.66)
            .pre_translate(-50.0, -98.0);
    }
    Transform::from_translate(side * APART, 0.0)
}

/// Outfits and postures of a couple, hand in hand if their act leaves a hand free.
fn pair(m: &ActMoment) -> [(Outfit, Posture); 2] {
    let holds = matches!(
        m.act,
        Act::Stand | Act::Walk | Act::Run | Act::Sit | Act::Move
    );
    [(Subject::Man, 1_usize), (Subject::Woman, 0)].map(|(subject, side)| {
        let worn = outfit(subject, m.nth);
        let posture = acts::posture(&worn.build, m);
        let mut arms = posture.arms;
        if holds {
            let toward = if side == 1 { APART } else { -APART };
            let low = if m.act == Act::Sit { 28.0 } else { 0.0 };
            arms[side] = To(50.0 + toward, 58.0 + low + 0.5 * posture.hip.1);
        }
        (worn, Posture { arms, ..posture })
    })
}

pub(super) fn couple(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let second = SubjectColours {
        main: look.trim,
        trim: look.main,
        hair: look.hair.lift(0.1),
        ..*look
    };
    for (index, (worn, posture)) in pair(m).iter().enumerate().rev() {
        let look = if index == 0 { look } else { &second };
        let moment = ActMoment {
            nth: m.nth.wrapping_add(index as u8),
            ..*m
        };
        pen.within(place(m, index), |pen| {
            PersonFigure::new(worn, *posture, &moment).draw(pen, look);
        });
    }
}

pub(super) fn couple_heads(m: &ActMoment) -> [f32; 4] {
    let heads = pair(m).map(|(worn, posture)| Skeleton::new(&worn.build, &posture).head_box());
    let heads = heads.into_iter().enumerate();
    around(heads.map(|(index, head)| (head, place(m, index))))
}

/// The box around boxes under their transforms. Boxes are left, top, right, bottom.
fn around(boxes: impl Iterator<Item = ([f32; 4], Transform)>) -> [f32; 4] {
    let none = [f32::MAX, f32::MAX, f32::MIN, f32::MIN];
    boxes.fold(none, |held, ([left, top, right, bottom], through)| {
        let mut corners = [Point::from_xy(left, top), Point::from_xy(right, bottom)];
        through.map_points(&mut corners);
        let [a, b] = corners;
        [
            held[0].min(a.x.min(b.x)),
            held[1].min(a.y.min(b.y)),
            held[2].max(a.x.max(b.x)),
            held[3].max(a.y.max(b.y)),
        ]
    })
}

/// The people of a crowd: column, height above the ground, size. The last are in front.
const CROWD: [(f32, f32, f32); 12] = [
    (-50.0, -8.6, 0.62),
    (4.6, -8.6, 0.62),
    (77.4, -8.6, 0.62),
    (150.2, -8.6, 0.62),
    (-31.8, -4.6, 0.70),
    (22.8, -4.6, 0.70),
    (59.2, -4.6, 0.70),
    (113.8, -4.6, 0.70),
    (-13.6, 0.0, 0.78),
    (41.0, 0.0, 0.78),
    (95.6, 0.0, 0.78),
    (132.0, 0.0, 0.78),
];
/// Colours of clothes in a crowd, for people who do not wear the main colour.
const CLOTHES: [u32; 6] = [
    0x3f_7a94, 0xd0_9a3c, 0x6a_5a8c, 0x4f_8a64, 0xb0_5a7c, 0x50_607c,
];
/// Skin and hair.
const FACES: [(u32, u32); 7] = [
    (0xd8_a482, 0x2a_2630),
    (0x8a_5a3c, 0x1c_1a20),
    (0xf0_c8a8, 0xa8_7a40),
    (0xb8_8058, 0x34_2420),
    (0xf0_c8a8, 0x5a_3a24),
    (0x5c_3a28, 0x1c_1a20),
    (0xd8_a482, 0x5a_3a24),
];
/// A person of a crowd.
struct CrowdMember {
    worn: Outfit,
    posture: Posture,
    moment: ActMoment,
    place: Transform,
    /// Chooses its colours.
    seed: usize,
}

fn members(m: &ActMoment) -> impl Iterator<Item = CrowdMember> {
    let seats = CROWD.into_iter().enumerate();
    seats.map(|(index, seat)| member(m, index, seat))
}

fn member(m: &ActMoment, index: usize, (x, up, size): (f32, f32, f32)) -> CrowdMember {
    let seed = index * 7 + usize::from(m.nth) * 3;
    // A mix of grown-ups; children only in the nearer rows, where they are not hidden.
    let (subject, size) = match seed % 5 {
        0 => (Subject::Man, size),
        1 => (Subject::Woman, size),
        2 if index > 4 => (Subject::Girl, size * 0.78),
        _ => (Subject::Person, size),
    };
    let worn = outfit(subject, (seed % 11) as u8);
    let moment = ActMoment {
        nth: m.nth.wrapping_add(index as u8),
        t: m.t + index as f32 * 0.61,
        gone: m.gone / size,
        act: match m.act {
            // A crowd has no room to lie down, and needs one band only.
            Act::Sleep => Act::Sit,
            Act::Play if !index.is_multiple_of(4) => Act::Dance,
            act => act,
        },
        ..*m
    };
    // Some people who stand look to the left.
    let goes = matches!(
        m.act,
        Act::Walk | Act::Run | Act::Move | Act::Fly | Act::Swim
    );
    // A negative scale mirrors.
    let across = if !goes && index % 3 == 1 { -size } else { size };
    CrowdMember {
        posture: acts::posture(&worn.build, &moment),
        worn,
        moment,
        place: Transform::from_translate(x, 98.0 + up)
            .pre_scale(across, size)
            .pre_translate(-50.0, -98.0),
        seed,
    }
}

pub(super) fn crowd(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    for (index, one) in members(m).enumerate() {
        let main = match index % 3 {
            0 => look.main,
            _ => look.under_light(Rgb::hex(CLOTHES[one.seed % CLOTHES.len()])),
        };
        let (skin, hair) = FACES[(one.seed + index) % FACES.len()];
        // Every third person wears the colour that the words name, the others clothes of their own.
        let theirs = SubjectColours {
            main,
            skin: look.under_light(Rgb::hex(skin)),
            hair: look.under_light(Rgb::hex(hair)),
            ..*look
        };
        pen.within(one.place, |pen| {
            PersonFigure::new(&one.worn, one.posture, &one.moment).draw(pen, &theirs);
        });
    }
}

pub(super) fn crowd_heads(m: &ActMoment) -> [f32; 4] {
    around(members(m).map(|one| {
        let bones = Skeleton::new(&one.worn.build, &one.posture);
        (bones.head_box(), one.place)
    }))
}
