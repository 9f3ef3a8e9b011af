//! Chooses a place for every figure: each gets a part of the frame's width, so that figures do not overlap by
//! chance. It knows widths and moves no figure.

use super::crowd;
use super::kept;
use super::seat::{Group, Key, Seat, group};
use crate::scenes::Stage;
use crate::scenes::lexicon::{Place, Role};
use crate::scenes::subject::{Body, Stance, Subject};

/// Maximum number of figures in one row of a group.
pub(super) const ROW_MAX: usize = 14;
/// Maximum distance between two rows on the ground, and between the first and the last, stage units.
const ROW_STEP: f32 = 0.06;
const ROWS_DEEP: f32 = 0.1;
/// Share of the frame's width that the figures of one group may fill.
const FILL: f32 = 0.8;

/// The size of `subject` in stage units: things and flowers that are large when they are seen alone keep a
/// likely size beside people, animals, trees and houses.
fn beside(stage: &Stage<'_>, subject: Subject) -> f32 {
    let facts = subject.facts();
    let blooms = |one: Subject| {
        matches!(
            one,
            Subject::Flower
                | Subject::Sunflower
                | Subject::Rose
                | Subject::Tulip
                | Subject::Mushroom
        )
    };
    let large = |one: Subject| match one.facts().body {
        Body::Person | Body::Building | Body::Vehicle => true,
        Body::Quadruped => one.facts().size > 0.24,
        Body::Plant => one.facts().size > 0.4 && !blooms(one),
        // A toy is small beside a bed.
        Body::Thing => {
            let furniture = one.facts().stance == Stance::Stands && one.facts().size > 0.42;
            furniture && facts.stance == Stance::Lies
        }
        _ => false,
    };
    let alone =
        stage.place == Place::Table || !stage.reading.roles.iter().any(|role| large(role.subject));
    let people = stage
        .reading
        .roles
        .iter()
        .any(|role| role.subject.facts().body == Body::Person);
    match facts.body {
        _ if alone => facts.size,
        // No cat is as tall as its owner.
        Body::Quadruped if people && (facts.size < 0.31 || subject == Subject::Cat) => {
            facts.size * 0.68
        }
        Body::Bird | Body::Insect if people && facts.size < 0.31 => facts.size * 0.75,
        Body::Plant if blooms(subject) => facts.size.min(0.2),
        Body::Thing if facts.stance == Stance::Lies => facts.size.min(0.19),
        Body::Thing if matches!(subject, Subject::Door | Subject::Snowman) => facts.size * 0.86,
        Body::Thing if facts.stance == Stance::Stands => facts.size * 0.62,
        _ => facts.size,
    }
}

/// A size that the frame can hold.
fn fit(stage: &Stage<'_>, role: &Role) -> f32 {
    let wish = beside(stage, role.subject) * role.size * stage.unit * stage.nearness;
    wish.min(stage.width * 0.8).min(stage.height * 0.66)
}

/// Where the first three figures of a group stand, as shares of the width: a fourth makes all of them
/// close up.
const SLOTS: [f32; 3] = [0.37, 0.72, 0.13];

/// The figures of one group with their places. A removed role keeps an empty place during the layout.
pub(super) fn seats(stage: &Stage<'_>, wanted: Group) -> Vec<Seat> {
    let mut rng = stage.rng.clone();
    rng.part("seats", wanted as u8 as f32);
    let by_chance = rng.chance(0.5);
    let mut made = figures(stage, wanted);
    let mirrored = asked_side(stage, &made).unwrap_or(by_chance);
    let sum: f32 = made.iter().map(Seat::wide).sum();
    let rows = made.len().div_ceil(ROW_MAX).max(1);
    let scale = (stage.width * rows as f32 * FILL / sum.max(1.0)).min(1.0);
    for seat in &mut made {
        seat.size *= scale;
    }
    let middles = slots(stage.width, &made).unwrap_or_else(|| in_rows(stage.width, rows, &made));
    for (index, (seat, middle)) in made.iter_mut().zip(middles).enumerate() {
        rng.part(seat.role.subject.facts().noun, f32::from(seat.nth));
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
    let edge = |seat: &Seat| seat.x.min(stage.width - seat.x) * 2.0;
    let moving = made.iter().filter(|seat| !seat.is_fixed());
    let room = moving.map(edge).fold(stage.width, f32::min) * 0.9;
    for seat in &mut made {
        seat.room = room;
    }
    made.retain(|seat| seat.role.count > 0);
    kept::settle(stage, &mut made);
    made
}

/// Whether the row of these figures is mirrored because the words say what stands at the left: the first of two stands
/// there unless it is, and one alone stands left of the middle unless it is.
fn asked_side(stage: &Stage<'_>, seats: &[Seat]) -> Option<bool> {
    let (left, _) = stage.reading.order?;
    seats.first().map(|seat| seat.role.subject != left)
}

/// The figures of one group, in the order of the words.
fn figures(stage: &Stage<'_>, wanted: Group) -> Vec<Seat> {
    let roles = || stage.reading.roles.iter();
    let places = crowd::places(stage.place, &stage.reading.roles);
    let ours = roles().zip(places);
    let ours = ours.filter(|(role, _)| !crowd::is_orb(role) && group(stage.place, role) == wanted);
    let seat = |role: &Role, key: Key| Seat {
        role: *role,
        nth: key.2,
        x: 0.0,
        rise: 0.0,
        nearer: 0.0,
        size: fit(stage, role),
        room: stage.width,
        group: wanted,
        level: 0.0,
        key: Some(key),
        kept: None,
    };
    let which = |role: &Role| {
        let before = roles().take_while(|one| !std::ptr::eq(*one, role));
        before.filter(|one| one.subject == role.subject).count() as u8
    };
    ours.flat_map(|(role, places)| {
        let (subject, which) = (role.subject, which(role));
        (0..places as u8).map(move |nth| seat(role, (subject, which, nth)))
    })
    .collect()
}

/// The middles of up to three figures that stand clear of each other in their slots.
fn slots(width: f32, seats: &[Seat]) -> Option<Vec<f32>> {
    let half = |seat: &Seat| seat.wide() * 0.5;
    let middles: Vec<f32> = SLOTS.iter().map(|slot| slot * width).collect();
    let clear = |a: usize, b: usize| {
        (middles[a] - middles[b]).abs() > (half(&seats[a]) + half(&seats[b])) * 1.04
    };
    let pairs = (0..seats.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let fits = seats.len() <= SLOTS.len() && pairs.into_iter().all(|(a, b)| clear(a, b));
    fits.then(|| middles[..seats.len()].to_vec())
}

/// The middles of figures with equal gaps, which take turns in `rows` rows: neighbours stand before and behind each
/// other.
fn in_rows(width: f32, rows: usize, seats: &[Seat]) -> Vec<f32> {
    let rows = rows as f32;
    let sum: f32 = seats.iter().map(Seat::wide).sum();
    let gap = (width * rows - sum) / (seats.len() as f32 + 1.0);
    let mut x = gap;
    let middle = |seat: &Seat| {
        let half = seat.wide() * 0.5;
        let at = (x + half) / rows;
        x += seat.wide() + gap;
        at.min(width - half).max(half)
    };
    seats.iter().map(middle).collect()
}
