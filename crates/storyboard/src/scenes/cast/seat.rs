//! A figure and its place in a scene, and the place that it had before an edit.

use crate::scenes::Stage;
use crate::scenes::lexicon::{Place, Role};
use crate::scenes::subject::{Act, Body, Stance, Subject};

/// The element that carries a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scenes) enum Group {
    Air,
    Ground,
    Water,
}

/// One figure and its place.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenes) struct Seat {
    pub(super) role: Role,
    /// Its number among the figures of its role.
    pub(super) nth: u8,
    /// Stage column of its middle.
    pub(super) x: f32,
    /// Stagger, -1.0 to 1.0: up in the air, back on the ground.
    pub(super) rise: f32,
    /// Distance from the row at the back towards the viewer, pixels.
    pub(super) nearer: f32,
    /// Side of its square, pixels.
    pub(super) size: f32,
    /// The longest way along the frame that keeps its whole group in the frame, pixels.
    pub(super) room: f32,
    pub(super) group: Group,
    /// Its stage row: of its middle in the air, of its foot on water.
    pub(super) level: f32,
    /// Its key; `None` for a figure that the scene adds.
    pub(super) key: Option<Key>,
    /// Its place before an edit.
    pub(super) kept: Option<Kept>,
}

impl Seat {
    /// Width of the figure, pixels.
    pub(super) fn wide(&self) -> f32 {
        self.size * breadth(self.role.subject)
    }

    /// Whether it existed before an edit.
    pub(super) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// The row that it had in this place before an edit.
    pub(super) fn old_level(&self) -> Option<f32> {
        let level = self.kept.map(|kept| kept.level);
        level.filter(|level| level.is_finite())
    }

    /// Whether it is small and flies close to the viewer.
    pub(super) fn is_near(&self) -> bool {
        self.role.subject.facts().body == Body::Insect
    }

    /// Whether it is to the left of stage column `x`.
    pub(in crate::scenes) fn is_left_of(&self, x: f32) -> bool {
        self.x < x
    }

    /// Whether it never moves along.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(
            self.role.subject.facts().stance,
            Stance::Stands | Stance::Lies
        )
    }
}

/// The element that carries `role` in `place`.
pub(super) fn group(place: Place, role: &Role) -> Group {
    let stance = role.subject.facts().stance;
    let water = matches!(place, Place::Sea | Place::Lake);
    match (stance, place) {
        (_, Place::Space | Place::Sky) => Group::Air,
        (Stance::Hangs, _) => Group::Air,
        (Stance::Flies, _) => Group::Air,
        (Stance::Swims | Stance::Floats, Place::Underwater) => Group::Air,
        (Stance::Swims | Stance::Floats, _) if water => Group::Water,
        (Stance::Swims, _) => Group::Air,
        _ if role.act == Some(Act::Fly) => Group::Air,
        _ if water && role.act == Some(Act::Swim) => Group::Water,
        _ if place == Place::Underwater && role.act == Some(Act::Swim) => Group::Air,
        _ => Group::Ground,
    }
}

/// Width of a figure as a share of its square.
pub(super) fn breadth(subject: Subject) -> f32 {
    match (subject, subject.facts().body) {
        (Subject::Train, _) => 2.2,
        (Subject::Couple, _) => 0.7,
        (Subject::Crowd, _) => 2.2,
        (Subject::Umbrella, _) => 0.6,
        (Subject::Cyclist | Subject::Rider | Subject::Skier | Subject::Painter, _) => 0.9,
        (Subject::Diver | Subject::Mermaid, _) => 1.0,
        (Subject::Lighthouse | Subject::Tower | Subject::Skyscraper | Subject::LampPost, _) => 0.5,
        (_, Body::Person) => 0.44,
        (_, Body::Plant | Body::Thing) => 0.85,
        (_, Body::Vehicle) => 1.05,
        _ => 1.0,
    }
}

/// A figure of a scene: its subject, the index of its role among those of the subject, and its index in the role.
pub(super) type Key = (Subject, u8, u8);

/// The place of a figure in the previous version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(super) key: Key,
    pub(super) group: Group,
    pub(super) place: Place,
    /// Stage column of its middle.
    pub(super) x: f32,
    pub(super) rise: f32,
    pub(super) nearer: f32,
    /// Side of its square at the usual size of its kind, pixels.
    pub(super) size: f32,
    pub(super) room: f32,
    pub(super) paved: bool,
    /// Stage row of its middle in the air, and of its foot on water.
    pub(super) level: f32,
    pub(super) depth: f32,
}

impl Kept {
    /// The place of `seat` at `depth`; `None` for figures that the scene adds.
    pub(super) fn of(stage: &Stage<'_>, seat: &Seat, depth: f32) -> Option<Self> {
        Some(Self {
            key: seat.key?,
            group: seat.group,
            place: stage.place,
            x: seat.x,
            rise: seat.rise,
            nearer: seat.nearer,
            size: seat.size / (seat.role.size * stage.nearness),
            room: seat.room,
            paved: stage.paved,
            level: seat.level,
            depth,
        })
    }
}
