//! The places of figures across edits: old figures keep theirs, and new ones take free places. It reads no words.

use super::seat::{Kept, Seat, breadth};
use crate::scenes::Stage;

/// Whether the street of the previous version has a pavement in front; `None` if it was no street.
pub(in crate::scenes) fn paved(stage: &Stage<'_>) -> Option<bool> {
    let mut kept = stage.kept.iter();
    let kept = kept.find(|kept| kept.place == stage.place)?;
    Some(kept.paved)
}

/// Gives the `seats` of one group their old places, and new figures free places.
pub(super) fn settle(stage: &Stage<'_>, seats: &mut [Seat]) {
    if stage.kept.is_empty() {
        return;
    }
    for seat in seats.iter_mut() {
        let ours = |kept: &&Kept| Some(kept.key) == seat.key && kept.group == seat.group;
        let Some(kept) = stage.kept.iter().find(ours) else {
            continue;
        };
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
        seat.kept = Some(Kept {
            // At another place it keeps its column alone.
            level: if kept.place == stage.place {
                kept.level
            } else {
                f32::NAN
            },
            ..*kept
        });
    }
    let mut taken: Vec<Seat> = seats.iter().copied().filter(Seat::is_kept).collect();
    for seat in seats.iter_mut().filter(|one| !one.is_kept()) {
        seat.x = free(stage, seat, &taken, (0.0, stage.width));
        seat.room = seat.x.min(stage.width - seat.x) * 1.8;
        taken.push(*seat);
    }
}

/// The column between `left` and `right` where `seat` hides the least of other figures; preferably the place of a
/// removed one.
pub(super) fn free(
    stage: &Stage<'_>,
    seat: &Seat,
    taken: &[Seat],
    (left, right): (f32, f32),
) -> f32 {
    let half = (seat.wide() * 0.5).min((right - left) * 0.5);
    let shown = |kept: &Kept| {
        let roles = || stage.reading.roles.iter();
        let nth = roles().filter(|role| role.subject == kept.key.0);
        nth.enumerate()
            .any(|(at, role)| (at as u8, true) == (kept.key.1, u32::from(kept.key.2) < role.count))
    };
    let own = |kept: &Kept| {
        let size = stage.reading.role(kept.key.0).map_or(1.0, |role| role.size);
        kept.size * size * stage.nearness * breadth(kept.key.0)
    };
    let others = stage.kept.iter().filter(|kept| shown(kept));
    let others = others.filter(|kept| kept.group != seat.group);
    let in_row = |one: &&Seat| (one.nearer - seat.nearer).abs() < 1.0;
    let row = taken.iter().filter(in_row);
    // Figures at another depth may overlap.
    let spans: Vec<(f32, f32, f32)> = others
        .map(|kept| (kept.x, own(kept), 0.5))
        .chain(row.map(|one| (one.x, one.wide(), 1.0)))
        .collect();
    let gone = stage.kept.iter().filter(|kept| !shown(kept));
    let gone: Vec<f32> = gone.map(|kept| kept.x).collect();
    let tried =
        (0..=24_u8).map(|n| left + half + (right - left - half * 2.0) * f32::from(n) / 24.0);
    let cost = |x: f32| {
        let hidden = spans.iter().map(|(at, wide, share)| {
            (((wide + seat.wide()) * 0.52 - (at - x).abs()).max(0.0)) * share
        });
        let vacant = gone.iter().any(|at| (at - x).abs() < 1.0);
        let away = if vacant {
            -0.1 * stage.width
        } else {
            (x - seat.x).abs() * 0.05
        };
        hidden.sum::<f32>() + away
    };
    let inside = |x: &f32| (left + half..=right - half).contains(x);
    let all = tried.chain(gone.iter().copied().filter(inside));
    all.min_by(|a, b| cost(*a).total_cmp(&cost(*b)))
        .unwrap_or(seat.x)
}
