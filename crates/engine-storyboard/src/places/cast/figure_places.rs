//! A figure and its place in a scene: how many figures of each role are drawn, where each sits, and which places
//! old figures keep across an edit. It moves no figure.

use crate::lexicon::{Place, Role};
use crate::scene::scene_builder::SceneBuilder;
use crate::subject::{Act, BodyKind, Stance, Subject};

/// Maximum number of figures in one row of a group.
pub(super) const ROW_MAX: usize = 14;
/// Maximum distance between two rows on the ground, and between the first and the last, stage units.
const ROW_STEP: f32 = 0.06;
const ROWS_DEEP: f32 = 0.1;
/// Share of the frame's width that the figures of one group may fill.
const FILL: f32 = 0.8;

/// Size of `subject` in stage units. Things and flowers are drawn large if they are alone, and in
/// proportion beside people, animals, trees and houses.
fn natural_size(stage: &SceneBuilder<'_>, subject: Subject) -> f32 {
    let facts = subject.facts();
    let mut others = stage.reading.roles.iter().map(|role| role.subject);
    let people = others
        .clone()
        .any(|one| one.facts().body == BodyKind::Person);
    let beside_large = others.any(|one| match one.facts().body {
        BodyKind::Person | BodyKind::Building | BodyKind::Vehicle => true,
        BodyKind::Quadruped => one.facts().size > 0.24,
        BodyKind::Plant => one.facts().size > 0.4 && !is_bloom(one),
        // A toy is small beside a bed.
        BodyKind::Thing => {
            let furniture = one.facts().stance == Stance::Stands && one.facts().size > 0.42;
            furniture && facts.stance == Stance::Lies
        }
        _ => false,
    });
    let alone = stage.place == Place::Table || !beside_large;
    match facts.body {
        _ if alone => facts.size,
        // No cat is as tall as its owner.
        BodyKind::Quadruped if people && (facts.size < 0.31 || subject == Subject::Cat) => {
            facts.size * 0.68
        }
        BodyKind::Bird | BodyKind::Insect if people && facts.size < 0.31 => facts.size * 0.75,
        BodyKind::Plant if is_bloom(subject) => facts.size.min(0.2),
        BodyKind::Thing if facts.stance == Stance::Lies => facts.size.min(0.19),
        BodyKind::Thing if matches!(subject, Subject::Door | Subject::Snowman) => facts.size * 0.86,
        BodyKind::Thing if facts.stance == Stance::Stands => facts.size * 0.62,
        _ => facts.size,
    }
}

/// Whether a subject is a flower or as small as one.
fn is_bloom(one: Subject) -> bool {
    matches!(
        one,
        Subject::Flower | Subject::Sunflower | Subject::Rose | Subject::Tulip | Subject::Mushroom
    )
}

/// A size that the frame can hold.
fn fitted_size(stage: &SceneBuilder<'_>, role: &Role) -> f32 {
    let wish = natural_size(stage, role.subject) * role.size * stage.unit * stage.nearness;
    wish.min(stage.width * 0.8).min(stage.height * 0.66)
}

/// Columns of up to three figures of a group, as shares of the width. Larger groups are spaced
/// evenly instead.
const SLOTS: [f32; 3] = [0.37, 0.72, 0.13];

/// The figures of one group with their places. A removed role keeps an empty place during the layout.
pub(super) fn lay_out(stage: &SceneBuilder<'_>, wanted: FigureMedium) -> Vec<FigurePlace> {
    let mut rng = stage.rng.clone();
    rng.switch_to("seats", wanted as u8 as f32);
    let by_chance = rng.chance(0.5);
    let mut made = figures(stage, wanted);
    let mirrored = is_mirrored(stage, &made).unwrap_or(by_chance);
    // All shrink alike until they fill 0.8 of the width of their rows.
    let sum: f32 = made.iter().map(FigurePlace::wide).sum();
    // Up to fourteen figures share a row; more stand in several, each a little nearer.
    let rows = made.len().div_ceil(ROW_MAX).max(1);
    let scale = (stage.width * rows as f32 * FILL / sum.max(1.0)).min(1.0);
    for seat in &mut made {
        seat.size *= scale;
    }
    let middles =
        slot_columns(stage.width, &made).unwrap_or_else(|| row_columns(stage.width, rows, &made));
    for (index, (seat, middle)) in made.iter_mut().zip(middles).enumerate() {
        // Chance by name and number: one more sheep does not move the dog.
        rng.switch_to(seat.role.subject.facts().noun, f32::from(seat.nth));
        let middle = middle + stage.width * 0.012 * rng.signed();
        seat.x = if mirrored {
            stage.width - middle
        } else {
            middle
        };
        let side = if index % 2 == 0 { 1.0 } else { -1.0 };
        seat.rise = side * (0.4 + 0.6 * rng.unit());
        if let Some(last) = rows.checked_sub(1).filter(|last| *last > 0) {
            let (row, last) = ((index % rows) as f32, last as f32);
            seat.rise = 0.9 - 1.8 * row / last + 0.1 * rng.signed();
            seat.nearer = stage.unit * row * ROW_STEP.min(ROWS_DEEP / last);
        }
    }
    let moving = made.iter().filter(|seat| !seat.is_fixed());
    // The narrowest room counts for all, so that a group moves at one pace.
    let room = moving
        .map(|seat| seat.x.min(stage.width - seat.x) * 2.0)
        .fold(stage.width, f32::min)
        * 0.9;
    for seat in &mut made {
        seat.room = room;
    }
    made.retain(|seat| seat.role.count > 0);
    restore_places(stage, &mut made);
    made
}

/// Whether this row of figures must be mirrored because the words name the figure on the left.
/// Unmirrored, the first of two figures stands on the left, and a single one left of the middle.
fn is_mirrored(stage: &SceneBuilder<'_>, seats: &[FigurePlace]) -> Option<bool> {
    let (left, _) = stage.reading.order?;
    seats.first().map(|seat| seat.role.subject != left)
}

/// The figures of one group, in the order of the words.
fn figures(stage: &SceneBuilder<'_>, wanted: FigureMedium) -> Vec<FigurePlace> {
    let roles = &stage.reading.roles;
    let places = count_places(stage.place, roles);
    let mut figures = Vec::new();
    for (index, (role, places)) in roles.iter().zip(places).enumerate() {
        if role.subject.is_orb() || medium_of(stage.place, role) != wanted {
            continue;
        }
        let before = roles[..index].iter();
        let which = before.filter(|one| one.subject == role.subject).count() as u8;
        figures.extend((0..places as u8).map(|nth| FigurePlace {
            nth,
            key: Some((role.subject, which, nth)),
            ..FigurePlace::new(*role, fitted_size(stage, role), stage.width, wanted)
        }));
    }
    figures
}

/// The middles of up to three figures that stand clear of each other in their slots.
fn slot_columns(width: f32, seats: &[FigurePlace]) -> Option<Vec<f32>> {
    let middles: Vec<f32> = SLOTS.iter().map(|slot| slot * width).collect();
    let pairs = (0..seats.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let fits = seats.len() <= SLOTS.len()
        && pairs.into_iter().all(|(a, b)| {
            (middles[a] - middles[b]).abs() > (seats[a].half_width() + seats[b].half_width()) * 1.04
        });
    fits.then(|| middles[..seats.len()].to_vec())
}

/// The middles of figures with equal gaps, which take turns in `rows` rows: neighbours stand before and behind each
/// other.
fn row_columns(width: f32, rows: usize, seats: &[FigurePlace]) -> Vec<f32> {
    let rows = rows as f32;
    let sum: f32 = seats.iter().map(FigurePlace::wide).sum();
    let gap = (width * rows - sum) / (seats.len() as f32 + 1.0);
    let mut x = gap;
    seats
        .iter()
        .map(|seat| {
            let half = seat.wide() * 0.5;
            let at = (x + half) / rows;
            x += seat.wide() + gap;
            at.min(width - half).max(half)
        })
        .collect()
}

// A figure and its place in a scene, and the place that it had before an edit.

/// The element that carries a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::places) enum FigureMedium {
    Air,
    Ground,
    Water,
}

/// One figure and its place.
#[derive(Clone, Copy, Debug)]
pub(in crate::places) struct FigurePlace {
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
    pub(super) group: FigureMedium,
    /// Its stage row: of its middle in the air, of its foot on water.
    pub(super) level: f32,
    /// Its key; `None` for a figure that the scene adds.
    pub(super) key: Option<FigureKey>,
    /// Its place before an edit.
    pub(super) previous: Option<PreviousPlace>,
}

impl FigurePlace {
    /// The first figure of `role`, without a place or a key.
    pub(super) fn new(role: Role, size: f32, room: f32, group: FigureMedium) -> Self {
        Self {
            role,
            nth: 0,
            x: 0.0,
            rise: 0.0,
            nearer: 0.0,
            size,
            room,
            group,
            level: 0.0,
            key: None,
            previous: None,
        }
    }

    /// Width of the figure, pixels.
    pub(super) fn wide(&self) -> f32 {
        self.size * breadth(self.role.subject)
    }

    /// Half of that width.
    pub(super) fn half_width(&self) -> f32 {
        self.wide() * 0.5
    }

    /// Whether it existed before an edit.
    pub(super) fn has_previous_place(&self) -> bool {
        self.previous.is_some()
    }

    /// The row that it had in this place before an edit.
    pub(super) fn previous_level(&self) -> Option<f32> {
        let level = self.previous.map(|kept| kept.level);
        level.filter(|level| level.is_finite())
    }

    /// Whether it is small and flies close to the viewer.
    pub(super) fn is_near(&self) -> bool {
        self.role.subject.facts().body == BodyKind::Insect
    }

    /// Whether it is to the left of stage column `x`.
    pub(in crate::places) fn is_left_of(&self, x: f32) -> bool {
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
pub(super) fn medium_of(place: Place, role: &Role) -> FigureMedium {
    let stance = role.subject.facts().stance;
    let water = matches!(place, Place::Sea | Place::Lake);
    match (stance, place) {
        (_, Place::Space | Place::Sky) => FigureMedium::Air,
        (Stance::Hangs, _) => FigureMedium::Air,
        (Stance::Flies, _) => FigureMedium::Air,
        (Stance::Swims | Stance::Floats, Place::Underwater) => FigureMedium::Air,
        (Stance::Swims | Stance::Floats, _) if water => FigureMedium::Water,
        (Stance::Swims, _) => FigureMedium::Air,
        _ if role.act == Some(Act::Fly) => FigureMedium::Air,
        _ if water && role.act == Some(Act::Swim) => FigureMedium::Water,
        _ if place == Place::Underwater && role.act == Some(Act::Swim) => FigureMedium::Air,
        _ => FigureMedium::Ground,
    }
}

/// Width of a figure as a share of its square.
fn breadth(subject: Subject) -> f32 {
    match (subject, subject.facts().body) {
        (Subject::Train, _) => 2.2,
        (Subject::Couple, _) => 0.7,
        (Subject::Crowd, _) => 2.2,
        (Subject::Umbrella, _) => 0.6,
        (Subject::Cyclist | Subject::Rider | Subject::Skier | Subject::Painter, _) => 0.9,
        (Subject::Diver | Subject::Mermaid, _) => 1.0,
        (Subject::Lighthouse | Subject::Tower | Subject::Skyscraper | Subject::LampPost, _) => 0.5,
        (_, BodyKind::Person) => 0.44,
        (_, BodyKind::Plant | BodyKind::Thing) => 0.85,
        (_, BodyKind::Vehicle) => 1.05,
        _ => 1.0,
    }
}

/// A figure of a scene: its subject, the index of its role among those of the subject, and its index in the role.
type FigureKey = (Subject, u8, u8);

/// The place of a figure in the previous version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreviousPlace {
    key: FigureKey,
    group: FigureMedium,
    place: Place,
    /// Stage column of its middle.
    x: f32,
    rise: f32,
    nearer: f32,
    /// Side of its square at the usual size of its kind, pixels.
    size: f32,
    room: f32,
    paved: bool,
    /// Stage row of its middle in the air, and of its foot on water.
    level: f32,
    pub(super) depth: f32,
}

impl PreviousPlace {
    /// The place of `seat` at `depth`; `None` for figures that the scene adds.
    pub(super) fn from_figure(
        stage: &SceneBuilder<'_>,
        seat: &FigurePlace,
        depth: f32,
    ) -> Option<Self> {
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

// The number of figures that a scene draws of each role. The layout and the warnings both count
// here, so that a figure is either drawn or reported.

/// Maximum number of figures of one kind.
const KIND_MAX: u32 = 12;
/// Maximum number of figures of one group: more would be too small to recognise.
const GROUP_MAX: u32 = 36;

/// A subject of which a scene draws fewer figures than asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FigureShortage {
    pub(crate) subject: Subject,
    pub(crate) asked: u32,
    /// Fewer than `asked`.
    pub(crate) drawn: u32,
}

/// The number of places that each of `roles` gets in `place`, in the same order. A role that an edit removed keeps
/// one empty place, if there is room.
fn count_places(place: Place, roles: &[Role]) -> Vec<u32> {
    // In the order of the words, until a group is full. Air, ground and water do not compete.
    let mut left = [FigureMedium::Air, FigureMedium::Ground, FigureMedium::Water]
        .map(|group| (group, GROUP_MAX));
    let given = roles.iter().map(|role| {
        if role.subject.is_orb() {
            return role.count.min(1);
        }
        let wanted = role.count.clamp(1, KIND_MAX);
        let ours = medium_of(place, role);
        let room = left.iter_mut().find(|(group, _)| *group == ours);
        room.map_or(0, |(_, room)| {
            let given = wanted.min(*room);
            *room -= given;
            given
        })
    });
    given.collect()
}

/// The subjects of `roles` of which a scene in `place` draws fewer figures than its own shot asks for.
pub(crate) fn shortages(place: Place, roles: &[Role]) -> Vec<FigureShortage> {
    let mut all: Vec<FigureShortage> = Vec::new();
    let own = roles.iter().zip(count_places(place, roles));
    for (role, drawn) in own.filter(|(role, _)| !role.inherited) {
        let (subject, asked) = (role.subject, role.count);
        let drawn = drawn.min(asked);
        match all.iter_mut().find(|one| one.subject == subject) {
            Some(one) => {
                one.asked = one.asked.saturating_add(asked);
                one.drawn += drawn;
            }
            None => all.push(FigureShortage {
                subject,
                asked,
                drawn,
            }),
        }
    }
    all.retain(|one| one.drawn < one.asked);
    all
}

// The places of figures across edits: old figures keep theirs, and new ones take free places. It
// reads no words.

/// Whether the street of the previous version has a pavement in front; `None` if it was no street.
pub(in crate::places) fn had_pavement(stage: &SceneBuilder<'_>) -> Option<bool> {
    let mut kept = stage.previous_places.iter();
    let kept = kept.find(|kept| kept.place == stage.place)?;
    Some(kept.paved)
}

/// Gives the `seats` of one group their old places, and new figures free places.
fn restore_places(stage: &SceneBuilder<'_>, seats: &mut [FigurePlace]) {
    if stage.previous_places.is_empty() {
        return;
    }
    for seat in seats.iter_mut() {
        let Some(kept) = stage
            .previous_places
            .iter()
            .find(|kept| Some(kept.key) == seat.key && kept.group == seat.group)
        else {
            continue;
        };
        // Remembered without the words' size and the camera's distance, which this version may
        // change.
        seat.size = (kept.size * seat.role.size * stage.nearness)
            .min(stage.width * 0.8)
            .min(stage.height * 0.66);
        seat.x = kept.x;
        if seat.role.size > 1.0 {
            // A figure that has grown moves into the frame.
            let half = (seat.wide() * 0.5).min(stage.width * 0.5);
            seat.x = kept.x.min(stage.width - half).max(half);
        }
        (seat.rise, seat.nearer, seat.room) = (kept.rise, kept.nearer, kept.room);
        seat.previous = Some(PreviousPlace {
            // At another place it keeps its column alone.
            level: if kept.place == stage.place {
                kept.level
            } else {
                f32::NAN
            },
            ..*kept
        });
    }
    let mut taken = kept_places(seats);
    for seat in seats.iter_mut().filter(|one| !one.has_previous_place()) {
        seat.x = find_free_column(stage, seat, &taken, (0.0, stage.width));
        seat.room = seat.x.min(stage.width - seat.x) * 1.8;
        taken.push(*seat);
    }
}

/// Those of `seats` that existed before an edit.
pub(super) fn kept_places(seats: &[FigurePlace]) -> Vec<FigurePlace> {
    let seats = seats.iter().copied();
    seats.filter(FigurePlace::has_previous_place).collect()
}

/// The column between `left` and `right` where `seat` hides the least of other figures; preferably the place of a
/// removed one.
pub(super) fn find_free_column(
    stage: &SceneBuilder<'_>,
    seat: &FigurePlace,
    taken: &[FigurePlace],
    (left, right): (f32, f32),
) -> f32 {
    let half = (seat.wide() * 0.5).min((right - left) * 0.5);
    let (shown, gone): (Vec<&PreviousPlace>, Vec<&PreviousPlace>) =
        stage.previous_places.iter().partition(|kept| {
            let roles = stage.reading.roles.iter();
            let ours = roles.filter(|role| role.subject == kept.key.0);
            ours.enumerate().any(|(at, role)| {
                (at as u8, true) == (kept.key.1, u32::from(kept.key.2) < role.count)
            })
        });
    let others = shown.iter().filter(|kept| kept.group != seat.group);
    // Figures at another depth may overlap.
    let row = taken
        .iter()
        .filter(|one| (one.nearer - seat.nearer).abs() < 1.0);
    // Column, width, and how much an overlap costs: half for figures of other groups, which are at
    // another depth.
    let spans: Vec<(f32, f32, f32)> = others
        .map(|kept| {
            let size = stage.reading.role(kept.key.0).map_or(1.0, |role| role.size);
            let wide = kept.size * size * stage.nearness * breadth(kept.key.0);
            (kept.x, wide, 0.5)
        })
        .chain(row.map(|one| (one.x, one.wide(), 1.0)))
        .collect();
    let gone: Vec<f32> = gone.iter().map(|kept| kept.x).collect();
    let tried =
        (0..=24_u8).map(|n| left + half + (right - left - half * 2.0) * f32::from(n) / 24.0);
    let cost = |x: f32| {
        let hidden = spans.iter().map(|(at, wide, share)| {
            (((wide + seat.wide()) * 0.52 - (at - x).abs()).max(0.0)) * share
        });
        // The place of a removed figure is as good as free ground and a little better: "replace the
        // dog" puts the cat there.
        let vacant = gone.iter().any(|at| (at - x).abs() < 1.0);
        let away = if vacant {
            -0.1 * stage.width
        } else {
            (x - seat.x).abs() * 0.05
        };
        hidden.sum::<f32>() + away
    };
    let all = tried.chain(
        gone.iter()
            .copied()
            .filter(|x| (left + half..=right - half).contains(x)),
    );
    all.min_by(|a, b| cost(*a).total_cmp(&cost(*b)))
        .unwrap_or(seat.x)
}
