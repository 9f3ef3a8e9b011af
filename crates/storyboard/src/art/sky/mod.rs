//! Objects in the sky: planets, comets, black holes, fireworks. The scene's sky draws the sun and the moon.

mod deep;
mod earth;
mod fireworks;
mod light;

use super::rig::Pose;
use super::{Look, Moment};
use crate::pen::Pen;
use crate::subject::Subject;
use light::own_light;

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

/// Storms on a turning planet: they cross its disc and become narrower towards its edge.
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
