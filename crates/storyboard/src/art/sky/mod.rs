//! What hangs in the sky: planets, comets, black holes, fireworks. The sun and the moon are of the sky
//! itself and are not drawn here.

mod deep;
mod earth;
mod fireworks;

use super::super::colour::Rgb;
use super::super::pen::Pen;
use super::super::subject::Subject;
use super::rig::Pose;
use super::{Look, Moment};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    match subject {
        Subject::Planet => {
            let look = Look {
                main: own_light(look, subject),
                ..*look
            };
            super::plain(pen, subject, &look, &|name| spot(name, m.t));
        }
        Subject::Earth => earth::draw(pen, look, m.t),
        Subject::Comet => deep::comet(pen, look, m.t),
        Subject::BlackHole => deep::black_hole(pen, look, m.t),
        Subject::Fireworks => fireworks::draw(pen, look, m),
        _ => {}
    }
}

/// Whether the words name a colour that `subject` does not have by nature.
fn is_named(look: &Look, subject: Subject) -> bool {
    let natural = look.shown(subject.facts().colour.unwrap_or(look.main));
    let main = look.main;
    (main.r - natural.r).abs() + (main.g - natural.g).abs() + (main.b - natural.b).abs() > 0.02
}

/// The main colour of what shines by itself or in a sun of its own: the scene's light does not dim it.
fn own_light(look: &Look, subject: Subject) -> Rgb {
    match subject.facts().colour {
        Some(natural) if !is_named(look, subject) => natural,
        _ => look.main.lift(0.08),
    }
}

/// Storms on a planet that turns: they cross its disc, narrower towards its edge.
fn spot(name: &str, t: f32) -> Pose {
    let Some(nth) = name.strip_prefix("spot-") else {
        return Pose::REST;
    };
    let nth: f32 = nth.parse().unwrap_or(0.0);
    let turn = t * 0.35 + nth * 2.2;
    if turn.cos() < 0.12 {
        return Pose::HIDDEN;
    }
    let half = [24.0, 23.0, 20.6][(nth as usize).min(2)];
    Pose {
        shift: (half * turn.sin(), 0.0),
        ..Pose::scaled(turn.cos(), 1.0)
    }
}

#[cfg(test)]
mod tests;
