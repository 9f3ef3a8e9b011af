//! Boats and submarines: sails, paddles and propellers, and the water that they move.

use super::state::under_way;
use crate::art::effects::{Puffs, flag};
use crate::art::rig::Pose;
use crate::art::{Look, Moment};
use crate::colour::Rgb;
use crate::pen::{Ink, Pen};
use crate::subject::Subject;

/// Strokes of a paddle per second, as an angle.
const STROKE: f32 = 2.6;

pub(super) fn pose(name: &str, m: &Moment) -> Option<Pose> {
    let wind = (m.t * 1.3).sin();
    Some(match name {
        "sail" => Pose::scaled(1.0 + 0.025 * wind, 1.0 + 0.006 * wind),
        "sail-main" => Pose::scaled(1.0 + 0.03 * (m.t * 1.1 + 1.9).sin(), 1.0),
        "jib" => Pose::scaled(1.0 + 0.035 * (m.t * 1.3 + 0.7).sin(), 1.0),
        "paddle" if under_way(m) => Pose {
            shift: (0.0, -2.4 - 2.4 * (m.t * STROKE).cos()),
            ..Pose::turned(24.0 * (m.t * STROKE).sin())
        },
        "paddle" => Pose::turned(3.0 * wind - 62.0),
        "paddler" if under_way(m) => Pose::turned(-5.0 * (m.t * STROKE).sin()),
        "paddler" => Pose::turned(1.2 * wind),
        "prop" => Pose::scaled(1.0, (m.t * 11.0).cos()),
        _ => return None,
    })
}

/// Parts in front of the hull: foam, bubbles, a pennant.
pub(super) fn after(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    match subject {
        Subject::Boat => {
            flag(pen, (50.0, 5.4), (-11.0, 4.6), m.t, look.main);
            foam(pen, look, m, (14.0, 88.0));
        }
        Subject::Ship => {
            flag(pen, (4.0, 57.0), (-8.0, 5.0), m.t, look.trim);
            foam(pen, look, m, (12.0, 90.0));
        }
        Subject::SailingShip => {
            for pole in [(24.0, 15.0), (50.0, 5.0), (74.0, 13.0)] {
                flag(pen, pole, (9.0, 4.0), m.t + pole.0, look.trim);
            }
            foam(pen, look, m, (14.0, 84.0));
        }
        Subject::Canoe => foam(pen, look, m, (10.0, 90.0)),
        Subject::Submarine => bubbles(look, m).draw(pen, m.t),
        _ => {}
    }
}

/// Foam along the waterline, which the hull leaves behind when it moves.
fn foam(pen: &mut Pen, look: &Look, m: &Moment, (stern, bow): (f32, f32)) {
    const COUNT: u8 = 9;
    let white = look.shown(Rgb::hex(0xf4_fafc));
    let moves = m.gone > 0.0;
    let long = if moves {
        bow - stern + 34.0
    } else {
        bow - stern
    };
    for nth in 0..COUNT {
        let turn = f32::from(nth) / f32::from(COUNT);
        let age = if moves {
            (turn + m.gone * 100.0 / long).fract()
        } else {
            turn
        };
        let lap = (m.t * 1.7 + f32::from(nth) * 2.1).sin();
        let x = bow - age * long;
        let across = 5.0 + 3.0 * age + lap;
        let alpha = if moves { 0.75 * (1.0 - age) } else { 0.3 };
        let y = 91.6 + 0.5 * lap + if x < stern { 0.8 } else { 0.0 };
        pen.ellipse(x, y, across, 0.9, Ink::Flat(white, alpha));
    }
    if moves {
        let crest = 0.8 * (m.t * 6.0).sin();
        let bow_wave = [
            (bow - 9.0, 92.4),
            (bow - 1.0, 88.6 + crest),
            (bow + 3.4, 91.0),
            (bow + 6.0, 92.4),
        ];
        pen.shape(&bow_wave, Ink::Flat(white, 0.8));
    }
}

fn bubbles(look: &Look, m: &Moment) -> Puffs {
    Puffs {
        from: (4.0, 50.0),
        drift: (if under_way(m) { -26.0 } else { -6.0 }, -26.0),
        radius: (1.0, 2.4),
        count: 9,
        life_s: 2.4,
        colour: look.shown(Rgb::hex(0xd8_f0fa)),
        alpha: 0.7,
        soft: false,
    }
}
