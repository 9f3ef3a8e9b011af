//! The ghost, which is a sheet with a face, and the mermaid, whose legs are a tail.

use tiny_skia::Transform;

use super::acts;
use super::figure::Figure;
use super::outfit::outfit;
use super::skeleton::{Limb, Posture, Skeleton};
use crate::art::rig::{Pose, Rig};
use crate::art::{Look, Moment};
use crate::pen::Pen;
use crate::subject::{Act, Subject};

const SHEET: &str = "parts-people-odd";

fn hover(m: &Moment) -> (f32, f32) {
    (1.6 * (m.t * 0.9).sin(), 2.4 * (m.t * 1.6).sin())
}

pub(super) fn ghost(pen: &mut Pen, look: &Look, m: &Moment) {
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
            "ghost-body" => Pose::scaled(1.0 + 0.012 * sways, 1.0 - 0.02 * sways),
            "ghost-arm" => Pose::turned(raised),
            "ghost-eyes" if !asleep => Pose::REST,
            "ghost-eyes-closed" if asleep => Pose::REST,
            "ghost-mouth" if m.act != Act::Sleep => Pose::REST,
            _ => Pose::HIDDEN,
        });
    });
}

pub(super) fn ghost_head(m: &Moment) -> [f32; 4] {
    let (x, y) = hover(m);
    [26.0 + x, 6.0 + y, 77.0 + x, 54.0 + y]
}

fn posture(m: &Moment) -> Posture {
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
            Limb::Turn(-46.0 + 12.0 * slow, 12.0),
            Limb::Turn(118.0 - 14.0 * slow, 20.0),
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

pub(super) fn mermaid_bones(m: &Moment) -> Skeleton {
    Skeleton::of(&outfit(Subject::Mermaid, m.nth).build, &posture(m))
}

pub(super) fn mermaid(pen: &mut Pen, look: &Look, m: &Moment) {
    let worn = outfit(Subject::Mermaid, m.nth);
    let figure = Figure::new(&worn, posture(m), m);
    let bones = figure.bones;
    let lash = |phase: f32| (m.t * 3.2 - phase).sin();
    figure.draw_tailed(pen, look, &|pen| {
        let Some(rig) = Rig::named(SHEET) else {
            return;
        };
        // Each piece turns about the end of the one before.
        let mut place = Transform::from_translate(bones.pelvis.0 - 50.0, bones.pelvis.1 - 60.0)
            .pre_concat(Transform::from_rotate_at(4.0 * lash(0.0), 50.0, 60.0));
        for (name, joint, degrees) in [
            ("tail-1", (50.6, 60.0), 0.0),
            ("tail-2", (50.6, 72.0), 10.0 * lash(0.8) + 6.0),
            ("tail-3", (50.7, 86.0), 20.0 * lash(1.7) + 10.0),
        ] {
            place = place.pre_concat(Transform::from_rotate_at(degrees, joint.0, joint.1));
            pen.within(place, |pen| {
                rig.draw(pen, look, &|part| {
                    if part == name {
                        Pose::REST
                    } else {
                        Pose::HIDDEN
                    }
                });
            });
        }
    });
}
