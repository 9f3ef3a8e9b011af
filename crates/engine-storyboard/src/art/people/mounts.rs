//! Cyclists, riders and skiers with the things under them; divers with fins, and fishermen with a rod.

use std::f32::consts::{PI, TAU};

use tiny_skia::Transform;

use super::acts::{self, HumanGait};
use super::figure::{self, PersonFigure};
use super::outfit::outfit;
use super::skeleton::LimbPose::{self, To, Turn};
use super::skeleton::{BodyBuild, Mouth, Posture, Skeleton};
use crate::art::{ActMoment, SubjectColours};
use crate::raster::colour::Rgb;
use crate::raster::pen::{Ink, Pen};
use crate::subject::{Act, Subject};

const PROPS: &str = "parts-people-props";
const BICYCLE: &str = "parts-people-bicycle";
const HORSE: &str = "parts-people-horse";
/// The joint of a part in its sheet.
const MIDDLE: (f32, f32) = (50.0, 50.0);

/// Size of the cyclist as a share of a person on foot.
const CYCLIST: f32 = 0.78;
const HUBS: [(f32, f32); 2] = [(24.0, 81.0), (74.0, 81.0)];
const WHEEL: f32 = 17.0;
const CRANK: (f32, f32) = (46.0, 81.0);
const CRANK_ARM: f32 = 7.0;

fn cyclist_build() -> BodyBuild {
    BodyBuild {
        whole: CYCLIST,
        ..outfit(Subject::Cyclist, 0).build
    }
}

/// A point of the square in the coordinates of a body of scale `whole`.
fn inside(whole: f32, x: f32, y: f32) -> (f32, f32) {
    (50.0 + (x - 50.0) / whole, 98.0 + (y - 98.0) / whole)
}

/// The moment of a person with busy hands.
fn mounted(m: &ActMoment) -> ActMoment {
    ActMoment {
        act: Act::Move,
        ..*m
    }
}

/// The far arm, which waves or holds on to `grip`.
fn far_arm(m: &ActMoment, grip: (f32, f32)) -> LimbPose {
    match m.act {
        Act::Wave => Turn(116.0, 38.0 + 20.0 * (m.t * 8.0).sin()),
        _ => To(grip.0, grip.1),
    }
}

/// How far the wheels have turned, radians.
fn rolled(m: &ActMoment) -> f32 {
    m.gone * 100.0 / WHEEL
}

fn cyclist_posture(m: &ActMoment) -> Posture {
    let build = cyclist_build();
    let seat = inside(CYCLIST, 40.4, 50.0);
    // One turn of the crank for two of the wheels.
    let turn = rolled(m) * 0.5;
    let legs = [turn, turn + PI].map(|turn| {
        let (sin, cos) = turn.sin_cos();
        let (x, y) = inside(
            CYCLIST,
            CRANK.0 + cos * CRANK_ARM - 1.6,
            CRANK.1 + sin * CRANK_ARM - 3.4,
        );
        To(x, y)
    });
    let grip = inside(CYCLIST, 68.4, 52.0);
    Posture {
        hip: (seat.0 - 50.0, seat.1 - build.pelvis_row()),
        lean: 33.0,
        nod: -14.0,
        arms: [To(grip.0, grip.1), far_arm(m, (grip.0 + 2.0, grip.1))],
        legs,
        feet: [0.0; 2],
        ..acts::stand(&build, m)
    }
}

pub(super) fn cyclist_bones(m: &ActMoment) -> Skeleton {
    Skeleton::new(&cyclist_build(), &cyclist_posture(m))
}

pub(super) fn cyclist(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let mut worn = outfit(Subject::Cyclist, m.nth);
    worn.build = cyclist_build();
    let figure = PersonFigure::new(&worn, cyclist_posture(m), &mounted(m));
    let degrees = rolled(m).to_degrees();
    for hub in HUBS {
        figure::draw_part_at(pen, look, (BICYCLE, "wheel"), (MIDDLE, hub), degrees);
    }
    // The bicycle is drawn between the legs, inside of the body's transform, which it undoes.
    let unscaled = figure.bones.whole.invert().unwrap_or_default();
    let bike = SubjectColours {
        main: look.trim,
        ..*look
    };
    figure.draw_around(pen, look, &|pen| {
        pen.within(unscaled, |pen| {
            figure::draw_part(pen, &bike, BICYCLE, "frame");
            let turned = degrees * 0.5 + 90.0;
            figure::draw_part_at(pen, look, (BICYCLE, "crank"), (MIDDLE, CRANK), turned);
        });
    });
}

const RIDER: f32 = 0.62;

fn rider_build() -> BodyBuild {
    BodyBuild {
        whole: RIDER,
        ..outfit(Subject::Rider, 0).build
    }
}

/// The gait of the horse, and whether it goes.
fn horse_gait(m: &ActMoment) -> (HumanGait, bool) {
    let goes = matches!(m.act, Act::Run | Act::Walk | Act::Move | Act::Jump);
    let gait = if m.act == Act::Walk {
        acts::HORSE_WALK
    } else {
        acts::GALLOP
    };
    (gait, goes && (m.gone > 0.0 || m.share == 0.0))
}

fn bounce(m: &ActMoment) -> f32 {
    let (gait, goes) = horse_gait(m);
    let breath = 0.4 * (m.t * 1.9).sin();
    if !goes {
        return breath;
    }
    let high = if m.act == Act::Walk { 0.7 } else { 2.0 };
    breath + high * (gait.phase(m.gone * 100.0) * TAU).sin()
}

fn rider_posture(m: &ActMoment) -> Posture {
    let build = rider_build();
    let seat = inside(RIDER, 43.0, 42.6 + bounce(m));
    let (knee, rein) = (inside(RIDER, 47.0, 66.0), inside(RIDER, 59.0, 37.0));
    let (_, goes) = horse_gait(m);
    let down = bounce(m) / RIDER;
    let far = far_arm(m, (rein.0 + 2.0, rein.1 + down));
    Posture {
        hip: (seat.0 - 50.0, seat.1 - build.pelvis_row()),
        lean: if goes && m.act != Act::Walk {
            12.0
        } else {
            4.0
        },
        nod: -3.0,
        arms: [To(rein.0, rein.1 + down), far],
        legs: [To(knee.0, knee.1 + down); 2],
        feet: [12.0; 2],
        mouth: Mouth::Smile,
        ..acts::stand(&build, m)
    }
}

pub(super) fn rider_bones(m: &ActMoment) -> Skeleton {
    Skeleton::new(&rider_build(), &rider_posture(m))
}

/// One leg of the horse: hip at (50, 50) of the sheet, knee at (50, 67), hoof at (50, 86).
fn horse_leg(pen: &mut Pen, look: &SubjectColours, hip: (f32, f32), swing: f32, bent: f32) {
    let place = Transform::from_translate(hip.0 - 50.0, hip.1 - 50.0)
        .pre_concat(Transform::from_rotate_at(-swing, 50.0, 50.0));
    pen.within(place, |pen| {
        pen.within(Transform::from_rotate_at(bent, 50.0, 67.0), |pen| {
            figure::draw_part(pen, look, HORSE, "shin");
        });
        figure::draw_part(pen, look, HORSE, "thigh");
    });
}

/// Length of the horse's legs.
const HORSE_LEG: f32 = 36.0;

fn horse_legs(pen: &mut Pen, look: &SubjectColours, m: &ActMoment, far: bool) {
    let (gait, goes) = horse_gait(m);
    let walks = m.act == Act::Walk;
    let aside = if far { 3.4 } else { 0.0 };
    for (hip, late) in [((26.0, 59.0), 0.0), ((62.0, 59.0), 0.55)] {
        // Hind and front legs half a turn apart; the far pair walks in between, and gallops almost
        // together.
        let late = late
            + match (far, walks) {
                (false, _) => 0.0,
                (true, true) => 0.5,
                (true, false) => 0.12,
            };
        let (before, swing) = gait.step(gait.phase(m.gone * 100.0) + late);
        let (before, swing) = if goes { (before, swing) } else { (0.0, None) };
        let bent = swing.map_or(0.0, |share| (share * PI).sin());
        let angle = (before / HORSE_LEG).clamp(-1.0, 1.0).asin().to_degrees();
        let most = if walks { 30.0 } else { 62.0 };
        let hip = (hip.0 + aside, hip.1 + bounce(m));
        horse_leg(pen, look, hip, angle + 0.3 * most * bent, most * bent);
    }
}

pub(super) fn rider(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let mut worn = outfit(Subject::Rider, m.nth);
    worn.build = rider_build();
    let figure = PersonFigure::new(&worn, rider_posture(m), &mounted(m));
    let coat = look.under_light(Rgb::hex(0x6e_4630));
    let horse = SubjectColours {
        main: coat,
        hair: coat.lift(-0.14),
        ..*look
    };
    let shadow = SubjectColours {
        main: coat.lift(-0.08),
        ..horse
    };
    let unscaled = figure.bones.whole.invert().unwrap_or_default();
    figure.draw_around(pen, look, &|pen| {
        pen.within(unscaled, |pen| {
            horse_legs(pen, &shadow, m, true);
            let place = Transform::from_translate(0.0, bounce(m));
            pen.within(place, |pen| {
                let flows = 8.0 * (m.t * 3.1).sin() + if horse_gait(m).1 { 14.0 } else { 0.0 };
                pen.within(Transform::from_rotate_at(flows, 19.0, 50.0), |pen| {
                    figure::draw_part(pen, &horse, HORSE, "tail");
                });
            });
            horse_legs(pen, &horse, m, false);
            pen.within(place, |pen| {
                figure::draw_part(pen, &horse, HORSE, "body");
                figure::draw_part(pen, &horse, HORSE, "saddle");
            });
        });
    });
}

fn skier_posture(m: &ActMoment) -> Posture {
    let build = outfit(Subject::Skier, m.nth).build;
    if !matches!(m.act, Act::Move | Act::Run | Act::Stand | Act::Walk) {
        return acts::posture(&build, m);
    }
    let moving = m.act != Act::Stand;
    let carve = (m.t * 2.1).sin();
    let low = if moving { 9.0 + 1.6 * carve } else { 1.0 };
    // A crouch that deepens in each turn.
    let lean = if moving { 26.0 + 2.0 * carve } else { 2.0 };
    let row = build.ankle_row() - 1.6;
    Posture {
        hip: (-3.0 * f32::from(u8::from(moving)), low - 1.6),
        lean,
        nod: -lean * 0.6,
        arms: [
            Turn(8.0 + 3.0 * carve, 52.0),
            Turn(34.0 + 3.0 * carve, 46.0),
        ],
        legs: [To(46.0, row), To(53.0, row)],
        feet: [0.0; 2],
        ..acts::stand(&build, m)
    }
}

pub(super) fn skier_bones(m: &ActMoment) -> Skeleton {
    Skeleton::new(&outfit(Subject::Skier, m.nth).build, &skier_posture(m))
}

pub(super) fn skier(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let worn = outfit(Subject::Skier, m.nth);
    let figure = PersonFigure::new(&worn, skier_posture(m), m);
    let on_skis = matches!(
        m.act,
        Act::Move | Act::Run | Act::Stand | Act::Walk | Act::Wave
    );
    if on_skis {
        let far = SubjectColours {
            trim: look.trim.lift(-0.08),
            ..*look
        };
        pen.within(Transform::from_translate(5.0, -1.2), |pen| {
            figure::draw_part(pen, &far, PROPS, "ski");
        });
        pole(pen, look, &figure.bones, 1, m);
    }
    figure.draw(pen, look);
    if on_skis {
        figure::draw_part(pen, look, PROPS, "ski");
        pole(pen, look, &figure.bones, 0, m);
    }
}

fn pole(pen: &mut Pen, look: &SubjectColours, bones: &Skeleton, side: usize, m: &ActMoment) {
    let degrees = if m.act == Act::Stand { 6.0 } else { 52.0 };
    let onto = ((50.0, 49.0), bones.hand(side));
    figure::draw_part_at(pen, look, (PROPS, "pole"), onto, degrees);
}

/// The diver under water: level, with slowly beating fins.
pub(super) fn dive(build: &BodyBuild, m: &ActMoment) -> Posture {
    let kick = |phase: f32| (m.t * 3.6 + phase).sin();
    Posture {
        hip: (-6.0, 49.0 - build.pelvis_row() + 4.0),
        lean: -4.0,
        nod: -48.0,
        arms: [
            Turn(-14.0 + 4.0 * kick(0.6), 10.0),
            Turn(108.0 + 6.0 * kick(2.0), 22.0),
        ],
        legs: [
            Turn(15.0 * kick(0.0) - 4.0, 10.0 + 8.0 * kick(1.0)),
            Turn(-15.0 * kick(0.0) - 4.0, 10.0 - 8.0 * kick(1.0)),
        ],
        feet: [-64.0; 2],
        tip: 76.0 + 2.0 * kick(0.3),
        ..acts::stand(build, m)
    }
}

/// The line from the tip of the rod into the water.
pub(super) fn fishing_line(pen: &mut Pen, look: &SubjectColours, bones: &Skeleton, m: &ActMoment) {
    let (x, y) = bones.hand(1);
    // The line follows the rod, which sways in the hand.
    let sway = (1.6 * (m.t * 1.1).sin()).to_radians();
    let (right, down) = (42.0, -36.0);
    let tip = (x + right - sway * down, y + down + sway * right);
    let float = (
        tip.0 + 1.4 * (m.t * 0.8).sin(),
        95.0 + 0.8 * (m.t * 2.0).sin(),
    );
    pen.stroke(&[tip, float], 0.5, Ink::Flat(look.pale, 0.9));
    let onto = ((50.0, 94.6), float);
    figure::draw_part_at(pen, look, (PROPS, "float"), onto, 0.0);
}
