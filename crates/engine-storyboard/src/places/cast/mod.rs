//! The cast: the figures of the prompt with their number, size, place and movement. `art` draws them.

mod figure_places;

pub(super) use figure_places::{FigureMedium, FigurePlace, had_pavement};
pub(crate) use figure_places::{FigureShortage, PreviousPlace, shortages};
use figure_places::{ROW_MAX, lay_out, medium_of};

use crate::art::{self, SubjectColours};
use crate::lexicon::{Motion, Place, Role};
use crate::raster::colour::Rgb;
use crate::scene::actor::Actor;
use crate::scene::scene_builder::SceneBuilder;
use crate::subject::{Act, BodyKind, Stance, Subject};

/// Whether `group` carries any figure in this scene.
pub(super) fn has_figures(stage: &SceneBuilder<'_>, group: FigureMedium) -> bool {
    !lay_out(stage, group).is_empty()
}

/// Whether the figures of `medium_of` stand in several rows.
pub(super) fn is_crowded(stage: &SceneBuilder<'_>, group: FigureMedium) -> bool {
    lay_out(stage, group).len() > ROW_MAX
}

/// Whether any figure is on the ground, or was before an edit: the ground stays.
pub(super) fn has_ground_figures(stage: &SceneBuilder<'_>) -> bool {
    let roles = stage.reading.roles.iter();
    roles
        .filter(|role| !role.subject.is_orb())
        .any(|role| medium_of(stage.place, role) == FigureMedium::Ground)
}

/// Whether the scene has `subject`, or had it before an edit.
pub(super) fn includes_subject(stage: &SceneBuilder<'_>, subject: Subject) -> bool {
    let mut roles = stage.reading.roles.iter();
    roles.any(|role| role.subject == subject)
}

/// Puts fliers (in water and in space: floating figures) into the air above `horizon`, away from the light at column
/// `light`.
pub(super) fn place_fliers(stage: &mut SceneBuilder<'_>, horizon: f32, light: f32) {
    // The layout favours the left; with the sun there it is mirrored, unless the words say who is
    // on the left.
    let mirrored = light < stage.width * 0.5 && stage.reading.order.is_none();
    let mut seats = lay_out(stage, FigureMedium::Air);
    // Insects are placed by `place_near_fliers`, in front of everything.
    seats.retain(|seat| !(stage.place.has_ground() && seat.is_near()));
    for mut seat in seats {
        if mirrored && stage.previous_places.is_empty() {
            seat.x = stage.width - seat.x;
        }
        let share = match seat.role.subject.facts().body {
            BodyKind::Sky => 0.34,
            // Several are staggered.
            _ => 0.46 + 0.14 * seat.rise,
        };
        let way = figure_motion(stage, &seat);
        // The middle of its way is in the picture.
        // So far from the edges that the whole figure stays in the frame, at both ends of its
        // climb.
        let reach = seat.size * 0.5 + way.climb().abs() * 0.5;
        let y = seat.previous_level().unwrap_or(horizon * share);
        let y = y.clamp(reach, (stage.height * 0.9 - reach).max(reach));
        seat.level = y;
        // Where there is no ground, the middle of those with feet hangs there.
        let feet = seat.size * (art::anchor(seat.role.subject) - 50.0) * 0.01;
        let at = (seat.x, y + feet - way.climb() * 0.5);
        place_figure(stage, &seat, at, 0.75, way);
    }
}

/// Puts small fliers in front of everything else: a butterfly is nearer than its flower.
pub(super) fn place_near_fliers(stage: &mut SceneBuilder<'_>) {
    if !stage.place.has_ground() {
        return;
    }
    let seats = lay_out(stage, FigureMedium::Air);
    for mut seat in seats.into_iter().filter(FigurePlace::is_near) {
        let way = figure_motion(stage, &seat);
        let y = stage.height * (0.5 + 0.1 * seat.rise);
        seat.level = seat.previous_level().unwrap_or(y);
        let at = (seat.x, seat.level - way.climb() * 0.5);
        place_figure(stage, &seat, at, 1.05, way);
    }
}

/// Puts the figures of the ground onto it. Its upper edge at `x` is `crest(x)`.
pub(super) fn place_walkers_on(stage: &mut SceneBuilder<'_>, crest: &dyn Fn(f32) -> f32) {
    // A figure at the back still stands on it, not behind it.
    let below = stage.unit * 0.034;
    place_walkers(stage, 1.0, &|x| crest(x) + below);
}

/// Puts the figures of the ground onto it. Its row at `x` is `ground(x)`.
pub(super) fn place_walkers(stage: &mut SceneBuilder<'_>, depth: f32, ground: &dyn Fn(f32) -> f32) {
    let seats = standing_figures(stage);
    place_standing(stage, &seats, &|_| true, depth, ground);
}

/// The figures of the ground, back to front, for scenes whose ground has several parts. In a row, fixed figures come
/// first, behind those that move.
pub(super) fn standing_figures(stage: &SceneBuilder<'_>) -> Vec<FigurePlace> {
    let mut seats = lay_out(stage, FigureMedium::Ground);
    seats.sort_by_key(|seat| !seat.is_fixed());
    seats.sort_by(|a, b| a.nearer.total_cmp(&b.nearer));
    seats
}

/// Moves `seats` together into a part of the frame's width, `(from, to)`.
pub(super) fn gather_figures(
    stage: &SceneBuilder<'_>,
    seats: &mut [FigurePlace],
    (from, to): (f32, f32),
) {
    let narrow = (to - from) / stage.width;
    let many = seats.len() > 2;
    let mut taken = figure_places::kept_places(seats);
    for seat in seats.iter_mut().filter(|seat| !seat.has_previous_place()) {
        seat.x = from + seat.x * narrow;
        if many {
            seat.size *= narrow.sqrt();
        }
        let half = (seat.wide() * 0.5).min((to - from) * 0.5);
        seat.x = seat.x.min(to - half).max(from + half);
        if !stage.previous_places.is_empty() {
            seat.x = figure_places::find_free_column(stage, seat, &taken, (from, to));
            taken.push(*seat);
        }
    }
}

/// Makes those of `seats` whose subject is `wanted` as large as if they filled the frame's height alone by
/// `share`, grown-ups being a third of a stage unit.
pub(super) fn enlarge_figures(
    stage: &SceneBuilder<'_>,
    seats: &mut [FigurePlace],
    wanted: &dyn Fn(Subject) -> bool,
    share: f32,
) {
    for seat in seats.iter_mut().filter(|seat| wanted(seat.role.subject)) {
        let grown = seat.role.subject.facts().size * 3.0;
        seat.size = (stage.height * share * grown).min(stage.width * 0.7);
    }
}

/// Puts those of `seats` whose subject is `wanted` onto the ground at `ground(x)`.
pub(super) fn place_standing(
    stage: &mut SceneBuilder<'_>,
    seats: &[FigurePlace],
    wanted: &dyn Fn(Subject) -> bool,
    depth: f32,
    ground: &dyn Fn(f32) -> f32,
) {
    for seat in seats.iter().filter(|seat| wanted(seat.role.subject)) {
        let way = figure_motion(stage, seat);
        // Along a moving subject's way the ground is taken as level: its lowest point.
        let y = (0..=8)
            .map(|n| ground(seat.x + way.along() * (n as f32 / 8.0 - 0.5)))
            .fold(f32::MIN, f32::max);
        // Houses and trees stand a little farther back than those who walk past them.
        let behind = if seat.is_fixed() { 0.012 } else { 0.0 };
        let back = stage.unit * (seat.rise.max(0.0) * 0.03 + behind);
        let at = (seat.x, y + seat.nearer + seat.size * 0.01 - back);
        place_figure(stage, seat, at, depth, way);
    }
}

/// The water that may carry figures: stage rows from far to near, and columns from left to right.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaterArea {
    pub(super) rows: (f32, f32),
    pub(super) columns: (f32, f32),
}

/// Puts the figures of the water onto it, at several distances, smaller when farther; where there is room, not behind
/// each other nor behind the figures of the `shore`.
pub(super) fn place_floaters(
    stage: &mut SceneBuilder<'_>,
    pool: WaterArea,
    light: f32,
    shore: &[FigurePlace],
) {
    let mirrored = light < stage.width * 0.5;
    let mut seats = lay_out(stage, FigureMedium::Water);
    let alone = seats.len() < 2;
    let in_rows = seats.len() > ROW_MAX;
    let (far, near) = pool.rows;
    let distance =
        |seat: &FigurePlace| match (seat.previous_level(), seat.role.subject.facts().stance) {
            (Some(level), _) => ((level - far) / (near - far)).clamp(0.0, 1.0),
            _ if alone => 0.5,
            // Heads above the water are small enough.
            (_, Stance::Swims) => 0.75 + 0.25 * seat.rise,
            _ => 0.5 + 0.5 * seat.rise,
        };
    seats.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    let mut taken = figure_places::kept_places(&seats);
    taken.extend(shore);
    for mut seat in seats {
        // 0.0 at the far edge of the water, 1.0 at the near one: position, size and depth follow
        // from it.
        let share = distance(&seat);
        if mirrored && stage.previous_places.is_empty() {
            seat.x = stage.width - seat.x;
        }
        if !seat.has_previous_place() {
            if !alone {
                seat.size *= 0.62 + 0.5 * share;
            }
            let (left, right) = pool.columns;
            seat.x = if in_rows {
                left + seat.x * (right - left) / stage.width
            } else {
                find_clear_column(&seat, pool.columns, &taken)
            };
            taken.push(seat);
        }
        let way = figure_motion(stage, &seat);
        let row = far + (near - far) * share;
        seat.level = seat.previous_level().unwrap_or(row);
        let depth = 0.45 + 0.25 * share;
        place_figure(stage, &seat, (seat.x, seat.level), depth, way);
    }
}

/// The column within `columns` with the fewest of `taken` before or behind it, and nearest to `seat`.
fn find_clear_column(seat: &FigurePlace, (left, right): (f32, f32), taken: &[FigurePlace]) -> f32 {
    let half = seat.half_width().min((right - left) * 0.5);
    let own = seat.x.min(right - half).max(left + half);
    let hidden = |x: f32| {
        taken
            .iter()
            .filter(|one| (one.x - x).abs() < 0.8 * (one.half_width() + seat.half_width()))
            .count()
    };
    // Eleven columns are tried; the first choice stays unless another hides fewer.
    let tried = (0..=10_u8).map(|n| left + (right - left) * (0.1 + 0.08 * f32::from(n)));
    let best = tried.min_by(|a, b| {
        let by_count = hidden(*a).cmp(&hidden(*b));
        by_count.then((a - own).abs().total_cmp(&(b - own).abs()))
    });
    match best {
        Some(x) if hidden(x) < hidden(own) => x,
        _ => own,
    }
}

/// Adds one of `subject` at a place of the scene's own choosing, still or moving along at `speed` pixels
/// per second.
pub(super) fn place_extra(
    stage: &mut SceneBuilder<'_>,
    subject: Subject,
    at: (f32, f32),
    size: f32,
    depth: f32,
    speed: f32,
) {
    let role = Role::new(subject);
    let mut seat = FigurePlace::new(role, size, stage.width, medium_of(stage.place, &role));
    (seat.x, seat.level) = at;
    let mut way = figure_motion(stage, &seat);
    way.speed = (speed, 0.0);
    way.left = speed < 0.0;
    place_figure(stage, &seat, at, depth, way);
}

fn place_figure(
    stage: &mut SceneBuilder<'_>,
    seat: &FigurePlace,
    at: (f32, f32),
    depth: f32,
    way: FigureMotion,
) {
    let subject = seat.role.subject;
    let in_place = seat.previous_level().and(seat.previous.as_ref());
    let in_place = in_place.filter(|_| seat.group != FigureMedium::Ground);
    let depth = in_place.map_or(depth, |kept| kept.depth);
    // Remembered for edits: the next version puts the same figure at the same place.
    let placed = PreviousPlace::from_figure(stage, seat, depth);
    stage.placed.extend(placed);
    let (bob, rock) = bob_and_rock(subject, way.act, seat.group);
    let still = stage.reading.has_motion(Motion::Still);
    let fast = stage.reading.has_motion(Motion::Fast);
    let rng = &mut stage.rng;
    rng.switch_to(subject.facts().noun, f32::from(seat.nth));
    let phase = rng.range(0.0, std::f32::consts::TAU);
    let pace = if still {
        0.4
    } else if fast {
        1.5
    } else {
        1.0
    };
    let water = seat.group == FigureMedium::Water;
    let actor = Actor {
        subject,
        act: way.act,
        nth: seat.nth,
        holder: seat.role.holder,
        x: at.0 - way.along() * 0.5,
        y: at.1,
        size: seat.size,
        depth,
        speed: way.speed,
        hop: way.hop,
        seconds: stage.seconds.max(0.1),
        bob: bob * seat.size,
        rock,
        phase,
        pace,
        faces_left: way.left,
        look: figure_colours(stage, seat),
        mirrored: if water && !way.dives { 0.3 } else { 0.0 },
        floor: (water && way.dives).then_some(at.1),
        shadow: match seat.group {
            FigureMedium::Ground => seat.size * shadow_half_width(subject),
            _ => 0.0,
        },
    };
    stage.add_actor(actor);
}

/// Bobbing of a subject, in its own sizes, and rocking, degrees.
fn bob_and_rock(subject: Subject, act: Act, group: FigureMedium) -> (f32, f32) {
    match (subject, subject.facts().body, group) {
        (Subject::Balloon | Subject::ToyBalloon | Subject::Airship, ..) => (0.02, 2.4),
        (Subject::Saucer, ..) => (0.025, 3.0),
        (Subject::Kite, ..) => (0.05, 9.0),
        (Subject::Plane | Subject::Helicopter | Subject::Drone, ..) => (0.01, 1.0),
        (_, BodyKind::Sky, _) => (0.0, 0.0),
        (_, BodyKind::Bird | BodyKind::Insect, FigureMedium::Air) if act != Act::Land => {
            (0.03, 2.0)
        }
        (_, BodyKind::Swimmer, FigureMedium::Air) => (0.03, 2.2),
        (_, _, FigureMedium::Water) => (0.012, 2.2),
        (_, _, FigureMedium::Air) => (0.02, 2.0),
        (_, _, FigureMedium::Ground) => (0.0, 0.0),
    }
}

/// Half of the width of the shadow at a subject's foot, in its own sizes.
fn shadow_half_width(subject: Subject) -> f32 {
    match (subject, subject.facts().body) {
        (Subject::Couple, _) => 0.3,
        (Subject::Crowd, _) => 0.9,
        (Subject::Cyclist | Subject::Rider, _) => 0.4,
        (_, BodyKind::Person) => 0.19,
        (_, BodyKind::Quadruped) => 0.36,
        (_, BodyKind::Bird) => 0.22,
        (_, BodyKind::Insect) => 0.3,
        (Subject::Train, _) => 1.2,
        (_, BodyKind::Vehicle) => 0.5,
        (Subject::LampPost | Subject::Candle | Subject::Sword, _) => 0.16,
        (Subject::Flower | Subject::Sunflower | Subject::Rose | Subject::Tulip, _) => 0.1,
        (Subject::Pine | Subject::Palm | Subject::Cactus | Subject::BareTree, _) => 0.24,
        (Subject::Bottle | Subject::Glass | Subject::IceCream | Subject::Guitar, _) => 0.24,
        (Subject::Phone | Subject::Book, _) => 0.28,
        _ => 0.38,
    }
}

// The colours of a figure under the scene's light: what the words say, else what it has by nature,
// else the scene's accents.

/// Colours of clothes that the words do not name.
const CLOTHES: [u32; 7] = [
    0xc8_5a48, 0x3f_7a94, 0xd0_9a3c, 0x6a_5a8c, 0x4f_8a64, 0xb0_5a7c, 0x50_607c,
];
/// Skin and hair, from light to dark, in no order.
const SKIN: [u32; 5] = [0xd8_a482, 0xf0_c8a8, 0x8a_5a3c, 0xb8_8058, 0x5c_3a28];
const HAIR: [u32; 5] = [0x2a_2630, 0x5a_3a24, 0x1c_1a20, 0x9a_6a34, 0x34_2420];

/// The colours of the figure in `seat`.
fn figure_colours(stage: &SceneBuilder<'_>, seat: &FigurePlace) -> SubjectColours {
    let palette = &stage.palette;
    let (subject, nth) = (seat.role.subject, usize::from(seat.nth));
    let facts = subject.facts();
    let mut rng = stage.rng.clone();
    // A copy of the stream at a place of its own: colours cost the scene no random numbers.
    rng.switch_to(facts.noun, -1.0);
    let [skin, hair, cloth] = [SKIN.len(), HAIR.len(), CLOTHES.len()].map(|many| rng.below(many));
    let natural = match (subject, facts.body) {
        (Subject::Tree | Subject::Bush, _) => palette.leaf,
        (_, BodyKind::Person | BodyKind::Vehicle | BodyKind::Insect | BodyKind::Swimmer)
            if facts.colour.is_none() && nth > 0 =>
        {
            Rgb::hex(CLOTHES[(cloth + nth) % CLOTHES.len()])
        }
        _ => facts.colour.unwrap_or(palette.accent),
    };
    let main = seat.role.colour.unwrap_or(natural);
    let trim = if subject == Subject::Camel {
        palette.accent
    } else {
        palette.second_accent
    };
    // A subject keeps some light of its own, so that it reads even at night.
    let own = if palette.is_dark() { 0.42 } else { 0.2 };
    let light = palette.light.mix(Rgb::WHITE, own);
    let look = SubjectColours {
        main,
        trim,
        dark: Rgb::hex(0x2a_2630),
        pale: Rgb::hex(0xf3_ece0),
        lamp: palette.lamp,
        skin: Rgb::hex(SKIN[(skin + nth) % SKIN.len()]),
        hair: Rgb::hex(HAIR[(hair + nth) % HAIR.len()]),
        lit: palette.is_dark() || stage.place == Place::Space,
        snowy: stage.reading.is_snowy() && !matches!(stage.place, Place::Table | Place::Room),
        light,
        haze: palette.haze,
        mist: 0.0,
    };
    SubjectColours {
        main: look.under_light(main),
        trim: look.under_light(trim),
        dark: look.under_light(look.dark),
        pale: look.under_light(look.pale),
        skin: look.under_light(look.skin),
        hair: look.under_light(look.hair),
        ..look
    }
}

// How figures move along: speed and direction from what they do and what the words say. Every way
// stays within the frame.

/// The longest way along the frame, as a share of its width.
const ALONG_MAX: f32 = 0.4;
/// The longest way up or down, as a share of its height.
const CLIMB_MAX: f32 = 0.34;

/// A figure's way through its shot.
#[derive(Clone, Copy, Debug)]
struct FigureMotion {
    act: Act,
    /// Pixels per second, right and down.
    speed: (f32, f32),
    /// Height of its hops, pixels.
    hop: f32,
    /// Whether it looks to the left.
    left: bool,
    /// Whether water hides what is below its surface.
    dives: bool,
    seconds: f32,
}

impl FigureMotion {
    /// Distance to the right over the whole shot, pixels.
    fn along(&self) -> f32 {
        self.speed.0 * self.seconds
    }

    /// Distance down over the whole shot, pixels.
    fn climb(&self) -> f32 {
        self.speed.1 * self.seconds
    }
}

/// A figure's action: the one in the words, otherwise its usual one.
fn figure_act(seat: &FigurePlace) -> Act {
    let facts = seat.role.subject.facts();
    let usual = match (seat.group, facts.stance) {
        (FigureMedium::Water, Stance::Swims) => Act::Jump,
        _ => facts.usual,
    };
    let act = seat.role.act.unwrap_or(usual);
    match (seat.group, facts.body, act) {
        // Where there is no ground, people float.
        (FigureMedium::Air, BodyKind::Person, Act::Stand | Act::Walk | Act::Run) => Act::Fly,
        _ => act,
    }
}

/// Whether the moving figures of `group` go to the left: all go the same way, so that none walks through another.
fn heads_left(stage: &SceneBuilder<'_>, group: FigureMedium) -> bool {
    let mut rng = stage.rng.clone();
    rng.switch_to("heading", group as u8 as f32);
    rng.chance(0.5)
}

/// The way of the figure in `seat`. A figure that stays on the right looks to the left.
fn figure_motion(stage: &SceneBuilder<'_>, seat: &FigurePlace) -> FigureMotion {
    let facts = seat.role.subject.facts();
    let act = figure_act(seat);
    let pace = if stage.reading.has_motion(Motion::Still) {
        0.0
    } else if stage.reading.has_motion(Motion::Fast) {
        1.8
    } else if stage.reading.has_motion(Motion::Slow) {
        0.6
    } else {
        1.0
    };
    // Factor of the usual speed; what is not listed stays where it is.
    let gait = match (act, facts.stance) {
        (Act::Run, _) => 2.0,
        (Act::Walk | Act::Move | Act::Fly | Act::Swim, _) => 1.0,
        (Act::Jump, Stance::Walks | Stance::Swims) => 0.9,
        (Act::Land, _) => 1.2,
        (Act::Rise | Act::Fall, Stance::Flies) => 0.7,
        _ => 0.0,
    };
    let along = facts.speed * gait * pace * stage.unit;
    // The group's room over the length of the shot: in a long shot figures go slower instead of
    // leaving the frame.
    let limit = (stage.width * ALONG_MAX).min(seat.room) / stage.seconds.max(0.1);
    let along = along.min(limit);
    let rise = climb(seat, act) * pace.max(0.5) * stage.unit;
    let limit = stage.height * CLIMB_MAX / stage.seconds.max(0.1);
    let rise = rise.min(limit).max(-limit);
    // These have no front and stay as they are drawn.
    let symmetric = matches!(
        facts.body,
        BodyKind::Building | BodyKind::Plant | BodyKind::Sky
    ) || matches!(facts.stance, Stance::Lies);
    // A figure that stays looks into the frame.
    let left = if along > 0.0 {
        heads_left(stage, seat.group)
    } else {
        seat.x > stage.width * 0.5
    };
    let left = left && !symmetric;
    FigureMotion {
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
fn climb(seat: &FigurePlace, act: Act) -> f32 {
    let subject = seat.role.subject;
    if seat.group != FigureMedium::Air || subject.facts().stance != Stance::Flies {
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
