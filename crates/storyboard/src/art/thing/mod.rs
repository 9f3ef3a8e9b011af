//! Things: their drawings, and how the parts move, burn, steam and open. `people` draws the people who use them.

mod air;
mod parts;

use tiny_skia::Transform;

use super::{Look, Moment};
use crate::pen::Pen;
use crate::subject::{Act, Subject};
use parts::{burns, open, pose, shines};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    pen.within(whole(subject, m), |pen| {
        behind(pen, subject, look, m);
        super::plain(pen, subject, look, &|part| pose(subject, look, m, part));
        before(pen, subject, look, m);
    });
}

/// Motion of the thing as a whole.
fn whole(subject: Subject, m: &Moment) -> Transform {
    let foot = |inner: Transform| {
        Transform::from_translate(50.0, 98.0)
            .pre_concat(inner)
            .pre_translate(-50.0, -98.0)
    };
    match (m.act, subject) {
        (Act::Dance, _) => {
            let lean = 7.0 * (m.t * 4.2).sin();
            let up = 5.0 * (m.t * 4.2).cos().abs();
            foot(Transform::from_translate(0.0, -up).pre_rotate(lean))
        }
        (Act::Open, Subject::Egg) => {
            let hatching = crate::colour::smooth(0.3, 0.8, m.share);
            let strong = 7.0 * hatching * (m.t * 1.1).sin().max(0.0);
            foot(Transform::from_rotate(strong * (m.t * 19.0).sin()))
        }
        (Act::Turn, Subject::Clock | Subject::Ball | Subject::Bell | Subject::Hourglass) => {
            Transform::identity()
        }
        (Act::Turn, _) => {
            let turn = (m.t * 1.5).cos();
            let across = if turn.abs() < 0.06 { 0.06 } else { turn };
            Transform::from_translate(50.0, 0.0)
                .pre_scale(across, 1.0)
                .pre_translate(-50.0, 0.0)
        }
        _ => Transform::identity(),
    }
}

/// Light behind the thing.
fn behind(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    let flicker = air::flicker(m);
    let strong = if look.lit { 0.62 } else { 0.34 };
    match subject {
        Subject::Candle if burns(subject, m) => {
            air::glow(pen, look, (50.0, 26.0), 34.0 * flicker, strong);
        }
        Subject::Lantern if burns(subject, m) => {
            air::glow(pen, look, (50.0, 58.0), 56.0 * flicker, strong);
        }
        Subject::Campfire if burns(subject, m) => {
            air::smoke(pen, look, m, (50.0, 40.0));
            air::glow(pen, look, (50.0, 66.0), 60.0 * flicker, strong);
        }
        Subject::Lamp if shines(look, m) => air::glow(pen, look, (50.0, 42.0), 44.0, strong),
        Subject::Chest => {
            let open = open(subject, m);
            air::glow(pen, look, (50.0, 50.0), 46.0, 0.5 * open);
        }
        Subject::Laptop | Subject::Phone | Subject::Television if look.lit => {
            air::glow(
                pen,
                look,
                (50.0, 58.0),
                50.0,
                0.22 * open(subject, m).max(0.4),
            );
        }
        _ => {}
    }
}

/// Air and light before the thing.
fn before(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    match subject {
        Subject::Cup => air::steam(pen, m, (46.0, 49.0), 38.0),
        Subject::Soup => air::steam(pen, m, (46.0, 56.0), 44.0),
        Subject::Teapot => air::steam(pen, m, (93.0, 41.0), 30.0),
        Subject::Campfire if burns(subject, m) => air::sparks(pen, look, m, (50.0, 62.0)),
        Subject::Cake if burns(subject, m) => {
            air::glow(pen, look, (50.0, 24.0), 34.0 * air::flicker(m), 0.4);
        }
        Subject::Drum if m.act == Act::Play => air::notes(pen, look, m, (50.0, 38.0)),
        Subject::Piano if m.act == Act::Play => air::notes(pen, look, m, (50.0, 36.0)),
        Subject::Violin | Subject::Guitar if m.act == Act::Play => {
            air::notes(pen, look, m, (56.0, 46.0));
        }
        Subject::Chest | Subject::Gift => {
            let open = open(subject, m);
            if open > 0.25 {
                air::burst(pen, look, m, (46.0, 44.0), open);
            }
        }
        Subject::Crown => air::glints(pen, m, &[(50.0, 23.0), (22.0, 64.0), (80.0, 58.0)]),
        Subject::Sword => air::glints(pen, m, &[(46.0, 52.0), (53.0, 78.0)]),
        Subject::Key => air::glints(pen, m, &[(62.0, 42.0), (22.0, 70.0)]),
        Subject::Crystal => air::glints(pen, m, &[(40.0, 34.0), (60.0, 62.0), (18.0, 60.0)]),
        Subject::Glass => air::glints(pen, m, &[(31.0, 22.0)]),
        Subject::Bottle => air::glints(pen, m, &[(34.0, 50.0)]),
        Subject::Bell => air::glints(pen, m, &[(38.0, 44.0)]),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
