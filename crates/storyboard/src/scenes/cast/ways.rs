//! How figures move along: speed and direction from what they do and what the words say. Every way stays
//! within the frame.

use super::seat::{Group, Seat};
use crate::scenes::Stage;
use crate::scenes::lexicon::Motion;
use crate::scenes::subject::{Act, Body, Stance, Subject};

/// The longest way along the frame, as a share of its width.
const ALONG_MAX: f32 = 0.4;
/// The longest way up or down, as a share of its height.
const CLIMB_MAX: f32 = 0.34;

/// A figure's way through its shot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) act: Act,
    /// Pixels per second, right and down.
    pub(super) speed: (f32, f32),
    /// Height of its hops, pixels.
    pub(super) hop: f32,
    /// Whether it looks to the left.
    pub(super) left: bool,
    /// Whether water hides what is below its surface.
    pub(super) dives: bool,
    seconds: f32,
}

impl Way {
    /// How far it goes to the right in the whole shot.
    pub(super) fn along(&self) -> f32 {
        self.speed.0 * self.seconds
    }

    /// How far it goes down.
    pub(super) fn climb(&self) -> f32 {
        self.speed.1 * self.seconds
    }
}

/// A figure's action: the one in the words, otherwise its usual one.
fn act(seat: &Seat) -> Act {
    let facts = seat.role.subject.facts();
    let usual = match (seat.group, facts.stance) {
        (Group::Water, Stance::Swims) => Act::Jump,
        _ => facts.usual,
    };
    let act = seat.role.act.unwrap_or(usual);
    match (seat.group, facts.body, act) {
        // Where there is no ground, people float.
        (Group::Air, Body::Person, Act::Stand | Act::Walk | Act::Run) => Act::Fly,
        _ => act,
    }
}

/// Whether the moving figures of `group` go to the left: all go the same way, so that none walks through another.
fn heads_left(stage: &Stage<'_>, group: Group) -> bool {
    let mut rng = stage.rng.clone();
    rng.part("heading", group as u8 as f32);
    rng.chance(0.5)
}

/// The way of the figure in `seat`. A figure that stays on the right looks to the left.
pub(super) fn way(stage: &Stage<'_>, seat: &Seat) -> Way {
    let facts = seat.role.subject.facts();
    let act = act(seat);
    let pace = if stage.reading.moves(Motion::Still) {
        0.0
    } else if stage.reading.moves(Motion::Fast) {
        1.8
    } else if stage.reading.moves(Motion::Slow) {
        0.6
    } else {
        1.0
    };
    let gait = match (act, facts.stance) {
        (Act::Run, _) => 2.0,
        (Act::Walk | Act::Move | Act::Fly | Act::Swim, _) => 1.0,
        (Act::Jump, Stance::Walks | Stance::Swims) => 0.9,
        (Act::Land, _) => 1.2,
        (Act::Rise | Act::Fall, Stance::Flies) => 0.7,
        _ => 0.0,
    };
    let along = facts.speed * gait * pace * stage.unit;
    let limit = (stage.width * ALONG_MAX).min(seat.room) / stage.seconds.max(0.1);
    let along = along.min(limit);
    let rise = climb(seat, act) * pace.max(0.5) * stage.unit;
    let limit = stage.height * CLIMB_MAX / stage.seconds.max(0.1);
    let rise = rise.min(limit).max(-limit);
    let symmetric = matches!(facts.body, Body::Building | Body::Plant | Body::Sky)
        || matches!(facts.stance, Stance::Lies);
    // A figure that stays looks into the frame.
    let left = if along > 0.0 {
        heads_left(stage, seat.group)
    } else {
        seat.x > stage.width * 0.5
    };
    let left = left && !symmetric;
    Way {
        act,
        speed: (if left { -along } else { along }, rise),
        hop: match (act, facts.stance) {
            (Act::Jump, Stance::Swims) => seat.size * 0.9,
            (Act::Jump, _) => seat.size * 0.34,
            _ => 0.0,
        },
        left,
        dives: matches!(facts.stance, Stance::Swims)
            || act == Act::Swim && facts.stance == Stance::Walks,
        seconds: stage.seconds,
    }
}

/// Stage units per second, down.
fn climb(seat: &Seat, act: Act) -> f32 {
    let subject = seat.role.subject;
    if seat.group != Group::Air || subject.facts().stance != Stance::Flies {
        return 0.0;
    }
    match act {
        Act::Rise if subject == Subject::Rocket => -0.1,
        Act::Rise => -0.05,
        Act::Fall | Act::Land => 0.05,
        _ if matches!(subject, Subject::Balloon | Subject::ToyBalloon) => -0.012,
        _ => 0.0,
    }
}
