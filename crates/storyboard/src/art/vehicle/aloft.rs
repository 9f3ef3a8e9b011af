//! Aircraft and balloons: rotors, flames, baskets, tails and trails, and the attitude in the air.

use tiny_skia::Transform;

use super::state::shown;
use crate::art::effects::{Puffs, flame, smoke};
use crate::art::rig::Pose;
use crate::art::{Look, Moment};
use crate::colour::Rgb;
use crate::pen::{Ink, Pen};
use crate::subject::{Act, Subject};

/// Its attitude: nose up, nose down, or along its flight.
pub(super) fn attitude(subject: Subject, m: &Moment) -> Transform {
    let sway = (m.t * 0.9).sin();
    let degrees = match (subject, m.act) {
        (Subject::Plane, Act::Rise) => -14.0,
        (Subject::Plane, Act::Land) => -5.0 * (1.0 - m.share),
        (Subject::Plane, Act::Fall) => 24.0,
        // A rocket flies where its nose points.
        (Subject::Rocket, Act::Fly | Act::Move) => 62.0,
        (Subject::Helicopter, Act::Fly | Act::Move) => 5.0 + sway,
        (Subject::Drone, Act::Fly | Act::Move) => 4.0 + 2.0 * sway,
        (Subject::Satellite, _) => -18.0 + 4.0 * (m.t * 0.4).sin(),
        (Subject::Kite, _) => 14.0 + 4.0 * (m.t * 1.7).sin(),
        _ => 0.0,
    };
    Transform::from_rotate_at(degrees, 50.0, 50.0)
}

pub(super) fn pose(name: &str, m: &Moment) -> Option<Pose> {
    let parked = m.act == Act::Stand;
    Some(match name {
        // From the side, a blade that turns about an upright axis lengthens and shortens.
        "rotor" if parked => Pose::REST,
        "rotor" => Pose::scaled((m.t * 19.0).cos(), 1.0),
        "blur" => shown(!parked),
        "tail-rotor" if parked => Pose::REST,
        "tail-rotor" => Pose::turned(m.t * 1130.0 % 360.0),
        "basket" => Pose::turned(2.4 * (m.t * 1.1).sin()),
        "riders" => Pose::shifted(0.25 * (m.t * 0.7).sin(), 0.2 * (m.t * 1.9).sin()),
        "panels" => Pose::scaled(1.0, 0.86 + 0.14 * (m.t * 0.5).cos()),
        "dish" => Pose::turned(7.0 * (m.t * 0.7).sin()),
        "eye" => Pose::turned(9.0 * (m.t * 0.8).sin()),
        "pilot" => Pose::shifted(0.8 * (m.t * 1.1).sin(), 0.0),
        _ if name.starts_with("spin-") => {
            let nth = name.bytes().last().map_or(0.0, f32::from);
            Pose::scaled((m.t * 23.0 + nth).cos(), 1.0)
        }
        // The lights of a saucer run around it.
        _ if name.starts_with("light-") => {
            let nth = name.bytes().last().map_or(0, u32::from);
            let step = (m.t * 5.0).rem_euclid(3.0) as u32;
            shown(!(nth + 3 - step).is_multiple_of(3))
        }
        _ => return None,
    })
}

/// Parts behind the drawing.
pub(super) fn before(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    match subject {
        Subject::Plane if m.act != Act::Stand => pen.within(attitude(subject, m), trail),
        Subject::Rocket if m.act != Act::Stand => {
            pen.within(attitude(subject, m), |pen| thrust(pen, look, m));
        }
        Subject::Saucer => hover(pen, look, m),
        Subject::Kite => kite_tail(pen, look, m.t),
        Subject::ToyBalloon => string(pen, look, m.t),
        Subject::Balloon => burner(pen, look, m),
        _ => {}
    }
}

/// Parts in front of the drawing.
pub(super) fn after(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    if subject == Subject::Sled {
        scarf(pen, look, m);
    }
}

/// Two vapour trails, which fade behind the plane.
fn trail(pen: &mut Pen) {
    for (y, alpha) in [(55.0, 0.5), (65.6, 0.7)] {
        let from = if y > 60.0 { 44.0 } else { 4.0 };
        let fade = [(from, y, Rgb::WHITE, alpha), (-50.0, y, Rgb::WHITE, 0.0)];
        let wedge = [
            (from, y - 0.6),
            (-50.0, y - 2.0),
            (-50.0, y + 2.0),
            (from, y + 0.6),
        ];
        pen.shape(&wedge, Ink::Line(fade));
    }
}

fn thrust(pen: &mut Pen, look: &Look, m: &Moment) {
    let burn = if m.act == Act::Rise { 1.25 } else { 0.9 };
    let cloud = Puffs {
        from: (50.0, 98.0),
        drift: (0.0, 46.0),
        radius: (4.0, 10.0),
        count: 9,
        life_s: 1.1,
        colour: smoke(look, 0.1).mix(Rgb::hex(0xff_c890), 0.3),
        alpha: 0.5,
        soft: false,
    };
    cloud.draw(pen, m.t);
    pen.glow(50.0, 88.0, 32.0, look.lamp, 0.45);
    flame(pen, (50.0, 79.0), 7.4, 24.0 * burn, 1.0, m.t);
}

/// The glow under a saucer, and a cone of light when it comes down.
fn hover(pen: &mut Pen, look: &Look, m: &Moment) {
    if look.lit {
        pen.glow(50.0, 64.0, 44.0, look.lamp, 0.22);
    }
    if !matches!(m.act, Act::Land | Act::Open) {
        return;
    }
    let flicker = 0.4 + 0.06 * (m.t * 9.0).sin();
    let fade = [
        (50.0, 68.0, look.lamp, flicker),
        (50.0, 140.0, look.lamp, 0.0),
    ];
    let cone = [(40.0, 68.0), (60.0, 68.0), (84.0, 140.0), (16.0, 140.0)];
    pen.shape(&cone, Ink::Line(fade));
}

fn kite_tail(pen: &mut Pen, look: &Look, t: f32) {
    let line = [(46.0, 50.0), (20.0, 92.0), (-18.0, 150.0)];
    pen.stroke(&line, 0.5, Ink::Flat(look.pale, 0.7));
    let ribbon: Vec<(f32, f32)> = (0..=26)
        .map(|n| n as f32 / 26.0)
        .map(|at| {
            let wave = 7.0 * at * (t * 3.0 - at * 8.0).sin();
            (43.0 + wave - 10.0 * at, 74.0 + at * 42.0)
        })
        .collect();
    pen.stroke(&ribbon, 0.9, look.trim);
    for (x, y) in ribbon.iter().copied().skip(6).step_by(6) {
        pen.shape(&[(x, y), (x - 4.0, y - 2.0), (x - 4.0, y + 3.0)], look.main);
        pen.shape(&[(x, y), (x + 4.0, y - 2.0), (x + 4.0, y + 3.0)], look.trim);
    }
}

/// The string of a toy balloon, which lags behind it.
fn string(pen: &mut Pen, look: &Look, t: f32) {
    let string: Vec<(f32, f32)> = (0..=20)
        .map(|n| n as f32 / 20.0)
        .map(|at| {
            let wave = 3.0 * (t * 1.6 - at * 2.6).sin() * at;
            (50.0 + wave, 68.0 + at * 34.0)
        })
        .collect();
    pen.stroke(&string, 0.7, look.dark.mix(look.pale, 0.5));
}

/// The burner of a hot-air balloon, lit from time to time, and always when the balloon rises.
fn burner(pen: &mut Pen, look: &Look, m: &Moment) {
    let lit = m.act == Act::Rise || (m.t * 0.7).sin() > -0.2;
    if lit {
        pen.glow(50.0, 84.0, 14.0, look.lamp, 0.5);
        flame(pen, (50.0, 90.0), 1.8, 9.0, -1.0, m.t);
    }
}

/// The scarf of the child on a sled, in the wind.
fn scarf(pen: &mut Pen, look: &Look, m: &Moment) {
    let wind = if m.gone > 0.0 { 1.0 } else { 0.35 };
    let edge: Vec<(f32, f32)> = (0..=8)
        .map(|n| n as f32 / 8.0)
        .map(|at| {
            let wave = 3.0 * at * (m.t * 7.0 - at * 5.0).sin();
            (
                40.0 - 22.0 * at * wind,
                55.0 + wave + 16.0 * at * (1.0 - wind),
            )
        })
        .collect();
    pen.stroke(&edge, 4.0, look.shown(Rgb::hex(0xc8_3a3a)));
}
