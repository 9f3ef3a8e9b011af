//! Plants: their drawings, and how the parts sway, open and shed. Nothing here grows.

use tiny_skia::Transform;

use super::rig::PartPose;
use super::{ActMoment, SubjectColours, part_number};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::pen::{Ink, Pen, smooth as curve};
use crate::subject::{Act, Subject};

/// Petals in the air around a cherry tree.
const PETALS: u32 = 16;

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    super::plain(pen, subject, look, &|part| pose(subject, m, part));
    if subject == Subject::CherryTree {
        petals(pen, look, m);
    }
}

/// How far a blossom is open: 0.0 for a bud, 1.0 in full bloom.
fn open(subject: Subject, m: &ActMoment) -> f32 {
    let rest = match subject {
        Subject::Tulip => 0.25,
        Subject::Rose => 0.5,
        _ => 1.0,
    };
    match m.act {
        Act::Open => smooth(0.05, 0.8, m.share),
        Act::Sleep => 0.1,
        _ => rest,
    }
}

fn pose(subject: Subject, m: &ActMoment, part: &str) -> PartPose {
    let lively = match m.act {
        Act::Dance | Act::Wave | Act::Jump => 3.0,
        Act::Sleep => 0.5,
        _ => 1.0,
    };
    let own = f32::from(m.nth) * 1.7;
    let wave = |degrees: f32, rate: f32, phase: f32| {
        PartPose::turned(degrees * lively * (m.t * rate + phase + own).sin())
    };
    let kind = part.split('-').next().unwrap_or_default();
    match (subject, kind) {
        (Subject::Cactus, _) if m.act != Act::Dance => match kind {
            "branch" => wave(0.5, 0.8, part_number(part)),
            _ => PartPose::REST,
        },
        (Subject::Flower, "petal") => folded(part_number(part) * 45.0, open(subject, m)),
        (Subject::Sunflower, "petal" | "back") => {
            let open = open(subject, m);
            PartPose::scaled(0.5 + 0.5 * open, 0.5 + 0.5 * open)
        }
        (Subject::Flower, "eye") => {
            let open = open(subject, m).max(0.02);
            PartPose::scaled(open, open)
        }
        (Subject::Rose | Subject::Tulip, "petal") => petal(subject, part, open(subject, m)),
        (Subject::Palm, "crown") => wave(1.2, 0.8, 0.0),
        (_, "crown") => wave(0.8, 0.8, 0.0),
        (_, "clump") => wave(1.8, 1.15, part.len() as f32),
        (_, "tier") => wave(0.5 + 0.4 * part_number(part), 0.95, 0.5 * part_number(part)),
        (_, "frond") => wave(4.5, 1.3, part_number(part) * 0.9),
        (_, "branch") => wave(1.3, 0.9, part.len() as f32 * 0.7),
        (_, "stem") => wave(1.8, 0.9, 0.0),
        (_, "head") => wave(3.0, 0.9, -0.6),
        (_, "leaf") => wave(4.0, 1.3, part.len() as f32),
        (_, "large" | "small") => {
            let breath = 0.008 * lively * (m.t * 1.4 + part.len() as f32).sin();
            PartPose::scaled(1.0 - breath, 1.0 + breath)
        }
        _ => PartPose::REST,
    }
}

/// A petal at `degrees` from upright in the open flower, and upright in the bud.
fn folded(degrees: f32, open: f32) -> PartPose {
    let angle = if degrees > 180.0 {
        degrees - 360.0
    } else {
        degrees
    };
    let shut = 1.0 - open;
    let (sine, cosine) = angle.to_radians().sin_cos();
    PartPose {
        degrees: -angle * 0.93 * shut,
        // In the bud it sits low in the sepals.
        shift: (7.0 * shut * sine, 7.0 * shut * cosine),
        scale: (1.0 - 0.25 * shut, 1.0 - 0.12 * shut),
        hidden: false,
    }
}

/// The outer petals of a rose or tulip.
fn petal(subject: Subject, part: &str, open: f32) -> PartPose {
    let (shut, wide) = match subject {
        Subject::Rose => (20.0, -16.0),
        _ => (8.0, -30.0),
    };
    let degrees = shut + (wide - shut) * open;
    match part {
        "petal-left" => PartPose::turned(degrees),
        "petal-right" => PartPose::turned(-degrees),
        _ => PartPose::scaled(1.0, 1.0 - 0.12 * open),
    }
}

/// Petals that leave the crown and drift down.
fn petals(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let colour = look.main.mix(Rgb::WHITE, 0.25);
    for n in 0..PETALS {
        // The golden ratio spreads fractions evenly, however many petals there are.
        let own = n as f32 * 0.618_034 + f32::from(m.nth) * 0.37;
        let way = (m.t * (0.09 + 0.04 * own.fract()) + own * 3.7).fract();
        let x =
            18.0 + 64.0 * (own * 7.3).fract() + way * 26.0 + 4.0 * (m.t * 1.7 + own * 9.0).sin();
        let y = 44.0 + way * 54.0;
        let shown = (way * (1.0 - way) * 12.0).min(1.0);
        let onto = Transform::from_translate(x, y)
            .pre_rotate(m.t * 80.0 + own * 360.0)
            .pre_scale(1.0, 0.35 + 0.65 * (m.t * 2.3 + own * 5.0).sin().abs());
        pen.within(onto, |pen| {
            let petal = curve(&[(-1.8, 0.0), (0.0, -1.2), (1.8, 0.0), (0.0, 1.2)]);
            pen.fill(petal, Ink::Flat(colour, shown));
        });
    }
}
