//! People: their outfits, postures and mounts. All share one skeleton and sheets of garments, but for the ghost, which is a
//! sheet with a face, and the mermaid, whose legs are a tail.

mod acts;
mod cloth;
mod figure;
mod groups;
mod mounts;
mod outfit;
mod skeleton;
#[cfg(test)]
mod tests;

use tiny_skia::Transform;

use super::rig::{PartPose, Rig};
use super::{ActMoment, SubjectColours};
use crate::raster::pen::Pen;
use crate::subject::{Act, BodyKind, Subject};
use figure::PersonFigure;
use outfit::{Outfit, outfit};
use skeleton::LimbPose::{To, Turn};
use skeleton::{BodyBuild, Posture, Skeleton};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    match subject {
        Subject::Couple => groups::couple(pen, look, m),
        Subject::Crowd => groups::crowd(pen, look, m),
        Subject::Ghost => ghost(pen, look, m),
        Subject::Mermaid => mermaid(pen, look, m),
        Subject::Cyclist => mounts::cyclist(pen, look, m),
        Subject::Rider => mounts::rider(pen, look, m),
        Subject::Skier => mounts::skier(pen, look, m),
        _ => single(pen, subject, look, m),
    }
}

/// The box of the heads in the square's coordinates (left, top, right, bottom), which captions avoid; `None` for all
/// but people.
pub(crate) fn head(subject: Subject, m: &ActMoment) -> Option<[f32; 4]> {
    if subject.facts().body != BodyKind::Person {
        return None;
    }
    Some(match subject {
        Subject::Couple => groups::couple_heads(m),
        Subject::Crowd => groups::crowd_heads(m),
        Subject::Ghost => ghost_head(m),
        Subject::Mermaid => mermaid_bones(m).head_box(),
        Subject::Cyclist => mounts::cyclist_bones(m).head_box(),
        Subject::Rider => mounts::rider_bones(m).head_box(),
        Subject::Skier => mounts::skier_bones(m).head_box(),
        _ => {
            let worn = worn_outfit(subject, m);
            Skeleton::new(&worn.build, &holding_posture(subject, &worn, m)).head_box()
        }
    })
}

/// The outfit of a person. The holder of an umbrella keeps clothes and hair.
fn worn_outfit(subject: Subject, m: &ActMoment) -> Outfit {
    match m.holder.filter(|_| subject == Subject::Umbrella) {
        Some(holder) => Outfit {
            held: "umbrella",
            ..outfit(holder, m.nth)
        },
        None => outfit(subject, m.nth),
    }
}

fn single(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    let worn = worn_outfit(subject, m);
    let posture = holding_posture(subject, &worn, m);
    let look = if subject == Subject::Umbrella {
        // The subject's own colour is for the thing in the hand.
        SubjectColours {
            main: look.dark.mix(look.pale, 0.3),
            trim: look.main,
            ..*look
        }
    } else {
        *look
    };
    // The easel stands behind the painter, the palette in front, in the near hand.
    if subject == Subject::Painter && matches!(m.act, Act::Stand) {
        figure::draw_part(pen, &look, "parts-people-props", "easel");
    }
    let figure = PersonFigure::new(&worn, posture, m);
    figure.draw(pen, &look);
    if subject == Subject::Painter && m.act == Act::Stand {
        let (x, y) = figure.bones.hand(0);
        let place = figure.bones.whole.pre_translate(x - 46.0, y - 52.0);
        pen.within(place, |pen| {
            figure::draw_part(pen, &look, "parts-people-props", "palette");
        });
    }
    if subject == Subject::Fisherman && m.act == Act::Stand {
        mounts::fishing_line(pen, &look, &figure.bones, m);
    }
}

/// The posture of a person with or without a thing in the hand.
fn holding_posture(subject: Subject, worn: &Outfit, m: &ActMoment) -> Posture {
    let build = &worn.build;
    let posture = match (subject, m.act) {
        (Subject::Astronaut, Act::Fly | Act::Swim | Act::Fall) => acts::float(build, m),
        (Subject::Diver, Act::Swim | Act::Stand | Act::Walk | Act::Fly | Act::Move) => {
            mounts::dive(build, m)
        }
        _ => acts::posture(build, m),
    };
    let still = matches!(m.act, Act::Stand | Act::Walk | Act::Run | Act::Move);
    match grip(subject, build, m) {
        Some((x, y)) if still && !worn.held.is_empty() => Posture {
            arms: [
                match build.chest(56.0, 53.0) {
                    (x, y) if subject == Subject::Painter => To(x, y),
                    _ => posture.arms[0],
                },
                To(x + posture.hip.0, y + posture.hip.1),
            ],
            ..posture
        },
        _ => posture,
    }
}

/// The position of the far hand with its thing.
fn grip(subject: Subject, build: &BodyBuild, m: &ActMoment) -> Option<(f32, f32)> {
    let slow = (m.t * 0.9).sin();
    Some(match subject {
        Subject::Wizard | Subject::Witch | Subject::Monk | Subject::Farmer => {
            build.chest(67.0, 51.0)
        }
        Subject::OldMan | Subject::OldWoman => (69.0, 61.0),
        Subject::Knight => build.chest(68.0, 52.0),
        Subject::Umbrella => build.chest(61.0, 45.0),
        Subject::King | Subject::Bride => build.chest(64.0, 50.0),
        Subject::Pirate => build.chest(68.0, 48.0 + slow),
        Subject::Chef => build.chest(66.0, 51.0 + 1.5 * (m.t * 3.0).sin()),
        Subject::Painter => build.chest(70.0 + 1.5 * (m.t * 2.3).sin(), 42.0 + 3.0 * slow),
        Subject::Fisherman => build.chest(64.0, 49.0 + 0.8 * slow),
        _ => return None,
    })
}

/// The drawings of ghosts and of the pieces of a mermaid's tail.
const SHEET: &str = "parts-people-odd";

fn hover(m: &ActMoment) -> (f32, f32) {
    (1.6 * (m.t * 0.9).sin(), 2.4 * (m.t * 1.6).sin())
}

fn ghost(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let Some(rig) = Rig::named(SHEET) else {
        return;
    };
    let (x, y) = hover(m);
    let sways = (m.t * 1.9).sin();
    let asleep = m.act == Act::Sleep || (m.t * 0.29).fract() < 0.04;
    let raised = match m.act {
        Act::Wave => -38.0 + 24.0 * (m.t * 7.0).sin(),
        Act::Open => -30.0 * m.share,
        _ => -6.0 + 9.0 * sways,
    };
    let place = Transform::from_translate(x, y).pre_concat(Transform::from_row(
        1.0,
        0.0,
        0.05 * sways,
        1.0,
        -2.5 * sways,
        0.0,
    ));
    pen.within(place, |pen| {
        rig.draw(pen, look, &|name| match name {
            "ghost-body" => PartPose::scaled(1.0 + 0.012 * sways, 1.0 - 0.02 * sways),
            "ghost-arm" => PartPose::turned(raised),
            "ghost-eyes" if !asleep => PartPose::REST,
            "ghost-eyes-closed" if asleep => PartPose::REST,
            "ghost-mouth" if m.act != Act::Sleep => PartPose::REST,
            _ => PartPose::HIDDEN,
        });
    });
}

fn ghost_head(m: &ActMoment) -> [f32; 4] {
    let (x, y) = hover(m);
    [26.0 + x, 6.0 + y, 77.0 + x, 54.0 + y]
}

fn mermaid_posture(m: &ActMoment) -> Posture {
    let build = outfit(Subject::Mermaid, m.nth).build;
    let slow = (m.t * 1.5).sin();
    let base = acts::stand(&build, m);
    let lies = matches!(
        m.act,
        Act::Sit | Act::Stand | Act::Wave | Act::Play | Act::Read | Act::Eat
    );
    let arms = match m.act {
        Act::Wave | Act::Play | Act::Read | Act::Eat => acts::posture(&build, m).arms,
        _ => [
            Turn(-46.0 + 12.0 * slow, 12.0),
            Turn(118.0 - 14.0 * slow, 20.0),
        ],
    };
    Posture {
        hip: (-3.0, -11.0),
        lean: 3.0 * slow,
        nod: if lies { 0.0 } else { -34.0 },
        arms,
        tip: if lies { 14.0 } else { 62.0 } + 3.0 * slow,
        asleep: m.act == Act::Sleep,
        ..base
    }
}

fn mermaid_bones(m: &ActMoment) -> Skeleton {
    Skeleton::new(&outfit(Subject::Mermaid, m.nth).build, &mermaid_posture(m))
}

fn mermaid(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let worn = outfit(Subject::Mermaid, m.nth);
    let figure = PersonFigure::new(&worn, mermaid_posture(m), m);
    let bones = figure.bones;
    let lash = [0.0, 0.8, 1.7].map(|phase| (m.t * 3.2 - phase).sin());
    figure.draw_tailed(pen, look, &|pen| {
        // Each piece turns about the end of the one before.
        let mut place = Transform::from_translate(bones.pelvis.0 - 50.0, bones.pelvis.1 - 60.0)
            .pre_concat(Transform::from_rotate_at(4.0 * lash[0], 50.0, 60.0));
        for (name, joint, degrees) in [
            ("tail-1", (50.6, 60.0), 0.0),
            ("tail-2", (50.6, 72.0), 10.0 * lash[1] + 6.0),
            ("tail-3", (50.7, 86.0), 20.0 * lash[2] + 10.0),
        ] {
            place = place.pre_concat(Transform::from_rotate_at(degrees, joint.0, joint.1));
            pen.within(place, |pen| figure::draw_part(pen, look, SHEET, name));
        }
    });
}
