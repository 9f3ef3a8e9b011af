//! Insects and spiders: beating wings, and feet that stand still on the ground.

use super::gait::{FootGait, LegBend, TwoBoneLeg};
use super::rig::{PartPose, Rig};
use super::{ActMoment, SubjectColours, drawing};
use crate::raster::pen::Pen;
use crate::subject::{Act, Subject};

/// Legs alternate in two groups: one stands while the other swings.
const SCUTTLE: FootGait = FootGait {
    turns: [0.0, 0.5, 0.0, 0.5],
    duty: 0.55,
    reach: 0.3,
    lift: 0.14,
    bob: (0.0, 2.0),
    pitch: 0.0,
};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    let Some(rig) = drawing(subject) else {
        return;
    };
    match subject {
        Subject::Ladybug | Subject::Spider => crawl(pen, rig, look, m),
        _ => rig.draw(pen, look, &|name| flier(subject, name, m)),
    }
}

/// Whether it has landed: it sits, sleeps or eats.
fn is_resting(act: Act) -> bool {
    matches!(
        act,
        Act::Sit | Act::Sleep | Act::Eat | Act::Stand | Act::Open
    )
}

/// The poses of a flier's parts.
fn flier(subject: Subject, name: &str, m: &ActMoment) -> PartPose {
    let t = m.t + f32::from(m.nth) * 1.37;
    let folding = match m.act {
        Act::Land => 1.0 - (m.share * 4.0 - 3.0).clamp(0.0, 1.0),
        act if is_resting(act) => 0.0,
        _ => 1.0,
    };
    match (name, subject) {
        ("figure", Subject::Butterfly) => PartPose::turned(14.0 + 6.0 * folding * (t * 1.3).sin())
            .shift(0.0, -2.0 * (t * 9.0 + 0.8).sin() * folding),
        ("figure", _) => PartPose::turned(4.0 * folding * (t * 1.9).sin()).shift(
            1.6 * (t * 2.3).sin() * folding,
            1.8 * (t * 3.1).cos() * folding,
        ),
        ("wing-left" | "wing-right", _) => {
            let beat = 0.58 + 0.42 * (t * 9.0).sin();
            let slow = 0.5 + 0.45 * (t * 1.5).sin();
            PartPose::scaled(slow + (beat - slow) * folding, 1.0)
        }
        ("wing-near", _) => whirr(t, 0.0, folding),
        ("wing-far", _) => whirr(t, 0.9, folding),
        ("perch", _) if is_resting(m.act) => PartPose::turned(1.5 * (t * 0.9).sin()),
        ("perch", _) => PartPose::HIDDEN,
        ("head", _) => PartPose::turned(5.0 * (t * 1.1).sin()),
        ("eye", _) if m.act == Act::Sleep => PartPose::HIDDEN,
        ("eye", _) if (t * 0.33).fract() < 0.03 => PartPose::scaled(1.0, 0.1),
        ("lid", _) if m.act != Act::Sleep => PartPose::HIDDEN,
        _ => PartPose::REST,
    }
}

/// A wing too fast to see: it alternates between two positions.
fn whirr(t: f32, late: f32, folding: f32) -> PartPose {
    let beat = (t * 41.0 + late).sin() * folding;
    PartPose::turned(16.0 * beat - 40.0 * (1.0 - folding))
        .scale(1.0, 0.8 + 0.2 * beat - 0.2 * (1.0 - folding))
}

/// A crawler on six or eight legs: its steps follow the distance covered.
pub(super) fn crawl(pen: &mut Pen, rig: &Rig, look: &SubjectColours, m: &ActMoment) {
    let t = m.t + f32::from(m.nth) * 1.37;
    let goes = matches!(m.act, Act::Walk | Act::Run | Act::Move);
    let dances = matches!(m.act, Act::Dance | Act::Play | Act::Jump);
    let asleep = m.act == Act::Sleep;
    let down = match m.act {
        _ if asleep => 3.0,
        _ if dances => 2.0 * (t * 12.0).sin(),
        _ => 0.5 * (t * 1.6).sin(),
    };
    let bend = |name: &str| -> Option<LegBend> {
        let leg = TwoBoneLeg::from_rig(rig, name)?;
        let (number, side) = name.split_once('-')?;
        let number: usize = number.parse().ok()?;
        let length = leg.length();
        // Neighbouring legs, and the two of a pair, belong to different groups: half of the legs
        // always stand.
        let nth = (number + usize::from(side == "far")) % 2;
        let cycles = m.gone * 100.0 / (SCUTTLE.stride() * 30.0);
        let (ahead, up) = if goes {
            let step = SCUTTLE.step(nth, cycles);
            // All legs share one stride, regardless of length.
            (step.ahead * 30.0, step.up * length)
        } else if dances {
            let beat = t * 12.0 + nth as f32 * std::f32::consts::PI;
            (0.0, 5.0 * beat.sin().max(0.0))
        } else {
            (0.0, 0.0)
        };
        let hip = (leg.hip.0, leg.hip.1 + down);
        Some(leg.reach(hip, (leg.foot.0 + ahead, leg.foot.1 - up), false))
    };
    rig.draw(pen, look, &|name| {
        let (first, rest) = name.split_once('-').unwrap_or((name, ""));
        match first {
            "leg" => bend(rest).map_or(PartPose::REST, |bend| {
                PartPose::turned(bend.leg).shift(0.0, down)
            }),
            "shin" => bend(rest).map_or(PartPose::REST, |bend| PartPose::turned(bend.shin)),
            _ => crawler(name, m, t, down),
        }
    });
}

/// The parts of a crawler that are not legs.
fn crawler(name: &str, m: &ActMoment, t: f32, down: f32) -> PartPose {
    let asleep = m.act == Act::Sleep;
    let flies = matches!(m.act, Act::Fly | Act::Rise | Act::Land | Act::Fall);
    let waves = matches!(m.act, Act::Wave | Act::Dance | Act::Play);
    match name {
        "body" => PartPose::shifted(0.0, down),
        "head" => PartPose::turned(4.0 * (t * 0.9).sin()),
        "shell" if flies => PartPose::turned(26.0),
        "wing-far" if flies => whirr(t, 0.0, 1.0),
        "wing-far" => PartPose::HIDDEN,
        "claw-near" if waves => PartPose::turned(16.0 * (t * 7.0).sin()),
        "claw-far" if waves => PartPose::turned(-16.0 * (t * 7.0).sin()),
        "claw-near" => PartPose::turned(3.0 * (t * 1.2).sin()),
        "claw-far" => PartPose::turned(3.0 * (t * 1.2 + 1.0).sin()),
        "pincer-near" => PartPose::turned(5.0 * (t * 2.1).sin()),
        "pincer-far" => PartPose::turned(-5.0 * (t * 2.1 + 0.7).sin()),
        "eye" if asleep => PartPose::HIDDEN,
        "eye" if (t * 0.27).fract() < 0.03 => PartPose::scaled(1.0, 0.1),
        "lid" if !asleep => PartPose::HIDDEN,
        _ => PartPose::REST,
    }
}
