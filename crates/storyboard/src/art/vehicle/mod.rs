//! Vehicles: their drawings, and how the parts move. Wheels turn with the distance covered. Aircraft and boats have
//! their own files.

mod afloat;
mod aloft;
mod rider;
mod state;

use tiny_skia::{PathBuilder, Rect};

use super::effects::{Puffs, smoke};
use super::rig::Pose;
use super::{Look, Moment};
use crate::colour::Rgb;
use crate::pen::Pen;
use crate::subject::Subject;
use state::{shown, under_way};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &Look, m: &Moment) {
    aloft::before(pen, subject, look, m);
    if matches!(subject, Subject::Train | Subject::SteamTrain) {
        rails(pen, look, m.gone);
    }
    if let Some(puffs) = exhaust(subject, look, m) {
        puffs.draw(pen, m.t);
    }
    let rides = subject == Subject::Bicycle && m.gone > 0.0;
    if rides {
        rider::behind(pen, look, cranked(m.gone));
    }
    pen.within(aloft::attitude(subject, m), |pen| {
        super::plain(pen, subject, look, &|name| pose(name, m));
    });
    if rides {
        rider::before(pen, look, cranked(m.gone));
    }
    afloat::after(pen, subject, look, m);
    aloft::after(pen, subject, look, m);
}

/// The pose of a part; other parts rest.
fn pose(name: &str, m: &Moment) -> Pose {
    if let Some(radius) = radius(name) {
        return Pose::turned(rolled(m.gone, radius));
    }
    let engine = if under_way(m) { 1.0 } else { 0.3 };
    match name {
        "body" => Pose::shifted(0.0, 0.3 * engine * (m.t * 21.0).sin()),
        _ if name.starts_with("wagon") => {
            let nth = name.bytes().last().map_or(0.0, f32::from);
            Pose::shifted(0.0, 0.24 * (engine - 0.3) * (m.t * 9.0 + nth * 1.7).sin())
        }
        // The rod joins the crank pins of the driving wheels, and stays level.
        "rod" => {
            let turn = rolled(m.gone, 6.6).to_radians();
            Pose::shifted(3.4 * turn.cos(), 3.4 * turn.sin())
        }
        "crank" => Pose::turned(cranked(m.gone)),
        "blink-a" => shown((m.t * 2.2).fract() < 0.5),
        "blink-b" => shown((m.t * 2.2).fract() >= 0.5),
        // A standing bicycle has no rider.
        "lamps" => shown(m.gone > 0.0),
        "kickstand" => shown(m.gone <= 0.0),
        "child" => Pose::turned(2.0 * engine * (m.t * 3.1).sin()),
        "head" => Pose::turned(3.0 * (m.t * 2.3 + 1.0).sin()),
        "driver" => Pose::shifted(0.0, 0.25 * engine * (m.t * 5.0).sin()),
        _ => afloat::pose(name, m)
            .or_else(|| aloft::pose(name, m))
            .unwrap_or(Pose::REST),
    }
}

/// The radius that a wheel's name ends with: `wheel-rear-9.4`.
fn radius(name: &str) -> Option<f32> {
    let (_, radius) = name.strip_prefix("wheel-")?.rsplit_once('-')?;
    radius.parse().ok().filter(|radius| *radius > 0.0)
}

/// Angle of a wheel of `radius`, degrees, after its subject has covered `gone` sides of its square without sliding.
fn rolled(gone: f32, radius: f32) -> f32 {
    (gone * 100.0 / radius).to_degrees() % 360.0
}

/// Angle of a bicycle's crank, degrees. It turns more slowly than the wheels.
fn cranked(gone: f32) -> f32 {
    (gone * 100.0 / 19.0).to_degrees() / 2.4 % 360.0
}

/// The exhaust of its engine, or the snow from its runners.
fn exhaust(subject: Subject, look: &Look, m: &Moment) -> Option<Puffs> {
    let moves = m.gone > 0.0;
    let back = if moves { -1.0 } else { -0.2 };
    let puffs = |from, drift: (f32, f32), radius, dark, alpha| Puffs {
        from,
        drift: (drift.0 * back, drift.1),
        radius,
        count: 6,
        life_s: 1.4,
        colour: smoke(look, dark),
        alpha,
        soft: false,
    };
    let faint = if moves { 0.3 } else { 0.16 };
    match subject {
        Subject::SteamTrain => Some(Puffs {
            count: 11,
            life_s: 2.6,
            ..puffs((83.5, 57.0), (74.0, -34.0), (4.0, 13.0), 0.12, 0.8)
        }),
        Subject::Tractor => Some(puffs((71.6, 39.0), (22.0, -20.0), (1.8, 6.0), 0.5, 0.5)),
        Subject::Ship => Some(Puffs {
            count: 8,
            life_s: 4.0,
            ..puffs((56.5, 31.0), (50.0, -16.0), (3.0, 9.0), 0.3, 0.5)
        }),
        Subject::Truck => Some(puffs((67.6, 45.0), (26.0, -10.0), (1.2, 4.0), 0.5, faint)),
        Subject::Car
        | Subject::Taxi
        | Subject::PoliceCar
        | Subject::Bus
        | Subject::Ambulance
        | Subject::FireEngine
        | Subject::Motorcycle => Some(puffs((4.0, 91.0), (16.0, -4.0), (1.2, 4.2), 0.2, faint)),
        // Runners throw up snow.
        Subject::Sled if moves => Some(puffs((12.0, 96.0), (22.0, -8.0), (1.4, 5.0), 0.0, 0.9)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

// The track under a train. It extends past the frame on both sides, and its sleepers do not move on
// the ground.

/// Its ends, in the coordinates of the train.
const ENDS: (f32, f32) = (-250.0, 350.0);
/// Distance between two sleepers.
const STEP: f32 = 6.0;

/// Draws rails, sleepers and their bed, after the train has covered `gone` sides of its square.
fn rails(pen: &mut Pen, look: &Look, gone: f32) {
    let (left, right) = ENDS;
    let bed = [(left, 100.6), (left, 98.4), (right, 98.4), (right, 100.6)];
    pen.shape(&bed, look.shown(Rgb::hex(0x7c_7268)));
    let first = left - (gone * 100.0) % STEP;
    let mut sleepers = PathBuilder::new();
    for nth in 0..=((right - left) / STEP) as u32 {
        if let Some(sleeper) = Rect::from_xywh(first + nth as f32 * STEP, 98.0, 3.0, 1.2) {
            sleepers.push_rect(sleeper);
        }
    }
    pen.fill(sleepers.finish(), look.shown(Rgb::hex(0x4a_3a30)));
    pen.rect(
        left,
        97.2,
        right - left,
        0.9,
        look.shown(Rgb::hex(0x9a_a0a8)),
    );
}
