//! Vehicles on land, on water and in the air: their drawings, and how the parts move. Wheels turn with the distance
//! covered. The rider of a bicycle is drawn here too; other people are not.

use tiny_skia::{PathBuilder, Rect, Transform};

use super::effects::{SmokePuffs, flag, flame, smoke};
use super::rig::PartPose;
use super::{ActMoment, SubjectColours};
use crate::raster::colour::Rgb;
use crate::raster::pen::{Ink, Pen};
use crate::subject::{Act, Subject};

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    behind(pen, subject, look, m);
    if matches!(subject, Subject::Train | Subject::SteamTrain) {
        rails(pen, look, m.gone);
    }
    if let Some(puffs) = exhaust(subject, look, m) {
        puffs.draw(pen, m.t);
    }
    // Legs are drawn around the bicycle: one behind it, the rest of the rider in front.
    let rides = subject == Subject::Bicycle && m.gone > 0.0;
    if rides {
        leg(pen, look, foot(cranked(m.gone), false), -0.06);
    }
    pen.within(attitude(subject, m), |pen| {
        super::plain(pen, subject, look, &|name| pose(name, m));
    });
    if rides {
        rider_front(pen, look, cranked(m.gone));
    }
    in_front(pen, subject, look, m);
}

/// The pose of a part; other parts rest.
fn pose(name: &str, m: &ActMoment) -> PartPose {
    if let Some(radius) = radius(name) {
        return PartPose::turned(rolled(m.gone, radius));
    }
    let engine = if under_way(m) { 1.0 } else { 0.3 };
    match name {
        "body" => PartPose::shifted(0.0, 0.3 * engine * (m.t * 21.0).sin()),
        _ if name.starts_with("wagon") => {
            let nth = name.bytes().last().map_or(0.0, f32::from);
            PartPose::shifted(0.0, 0.24 * (engine - 0.3) * (m.t * 9.0 + nth * 1.7).sin())
        }
        // The rod joins the crank pins of the driving wheels, and stays level.
        "rod" => {
            let turn = rolled(m.gone, 6.6).to_radians();
            PartPose::shifted(3.4 * turn.cos(), 3.4 * turn.sin())
        }
        "crank" => PartPose::turned(cranked(m.gone)),
        "blink-a" => PartPose::shown_if((m.t * 2.2).fract() < 0.5),
        "blink-b" => PartPose::shown_if((m.t * 2.2).fract() >= 0.5),
        // A standing bicycle has no rider.
        "lamps" => PartPose::shown_if(m.gone > 0.0),
        "kickstand" => PartPose::shown_if(m.gone <= 0.0),
        "child" => PartPose::turned(2.0 * engine * (m.t * 3.1).sin()),
        "head" => PartPose::turned(3.0 * (m.t * 2.3 + 1.0).sin()),
        "driver" => PartPose::shifted(0.0, 0.25 * engine * (m.t * 5.0).sin()),
        _ => craft_pose(name, m),
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
fn exhaust(subject: Subject, look: &SubjectColours, m: &ActMoment) -> Option<SmokePuffs> {
    let moves = m.gone > 0.0;
    // Smoke stays behind a vehicle that moves; from a standing one it rises almost straight.
    let back = if moves { -1.0 } else { -0.2 };
    let puffs = |from, drift: (f32, f32), radius, dark, alpha| SmokePuffs {
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
        Subject::SteamTrain => Some(SmokePuffs {
            count: 11,
            life_s: 2.6,
            ..puffs((83.5, 57.0), (74.0, -34.0), (4.0, 13.0), 0.12, 0.8)
        }),
        Subject::Tractor => Some(puffs((71.6, 39.0), (22.0, -20.0), (1.8, 6.0), 0.5, 0.5)),
        Subject::Ship => Some(SmokePuffs {
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

/// Whether it is under way, and not parked, moored or hovering.
fn under_way(m: &ActMoment) -> bool {
    m.gone > 0.0 || matches!(m.act, Act::Move | Act::Run | Act::Fly | Act::Rise)
}

/// Strokes of a paddle per second, as an angle.
const STROKE: f32 = 2.6;

/// Parts in front of the drawing: foam, bubbles, a pennant, a scarf.
fn in_front(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
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
        Subject::Sled => scarf(pen, look, m),
        _ => {}
    }
}

/// Foam along the waterline, which the hull leaves behind when it moves.
fn foam(pen: &mut Pen, look: &SubjectColours, m: &ActMoment, (stern, bow): (f32, f32)) {
    const COUNT: u8 = 9;
    let white = look.under_light(Rgb::hex(0xf4_fafc));
    let moves = m.gone > 0.0;
    let long = bow - stern + if moves { 34.0 } else { 0.0 };
    for nth in 0..COUNT {
        let turn = f32::from(nth) / f32::from(COUNT);
        // A hull at rest has covered nothing, and its foam stays.
        let age = (turn + m.gone * 100.0 / long).fract();
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

fn bubbles(look: &SubjectColours, m: &ActMoment) -> SmokePuffs {
    SmokePuffs {
        from: (4.0, 50.0),
        drift: (if under_way(m) { -26.0 } else { -6.0 }, -26.0),
        radius: (1.0, 2.4),
        count: 9,
        life_s: 2.4,
        colour: look.under_light(Rgb::hex(0xd8_f0fa)),
        alpha: 0.7,
        soft: false,
    }
}

/// Its attitude: nose up, nose down, or along its flight.
fn attitude(subject: Subject, m: &ActMoment) -> Transform {
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

/// The pose of a part of a boat or an aircraft.
fn craft_pose(name: &str, m: &ActMoment) -> PartPose {
    let wind = (m.t * 1.3).sin();
    let parked = m.act == Act::Stand;
    let nth = name.bytes().last().unwrap_or_default();
    match name {
        "sail" => PartPose::scaled(1.0 + 0.025 * wind, 1.0 + 0.006 * wind),
        "sail-main" => PartPose::scaled(1.0 + 0.03 * (m.t * 1.1 + 1.9).sin(), 1.0),
        "jib" => PartPose::scaled(1.0 + 0.035 * (m.t * 1.3 + 0.7).sin(), 1.0),
        "paddle" if under_way(m) => PartPose::turned(24.0 * (m.t * STROKE).sin())
            .shift(0.0, -2.4 - 2.4 * (m.t * STROKE).cos()),
        "paddle" => PartPose::turned(3.0 * wind - 62.0),
        "paddler" if under_way(m) => PartPose::turned(-5.0 * (m.t * STROKE).sin()),
        "paddler" => PartPose::turned(1.2 * wind),
        "prop" => PartPose::scaled(1.0, (m.t * 11.0).cos()),
        // From the side, a blade that turns about an upright axis lengthens and shortens.
        "rotor" if !parked => PartPose::scaled((m.t * 19.0).cos(), 1.0),
        "blur" => PartPose::shown_if(!parked),
        "tail-rotor" if !parked => PartPose::turned(m.t * 1130.0 % 360.0),
        "basket" => PartPose::turned(2.4 * (m.t * 1.1).sin()),
        "riders" => PartPose::shifted(0.25 * (m.t * 0.7).sin(), 0.2 * (m.t * 1.9).sin()),
        "panels" => PartPose::scaled(1.0, 0.86 + 0.14 * (m.t * 0.5).cos()),
        "dish" => PartPose::turned(7.0 * (m.t * 0.7).sin()),
        "eye" => PartPose::turned(9.0 * (m.t * 0.8).sin()),
        "pilot" => PartPose::shifted(0.8 * (m.t * 1.1).sin(), 0.0),
        _ if name.starts_with("spin-") => {
            PartPose::scaled((m.t * 23.0 + f32::from(nth)).cos(), 1.0)
        }
        // Two of three lights of a saucer are on, and the dark one goes around.
        _ if name.starts_with("light-") => {
            let step = (m.t * 5.0).rem_euclid(3.0) as u32;
            PartPose::shown_if(!(u32::from(nth) + 3 - step).is_multiple_of(3))
        }
        _ => PartPose::REST,
    }
}

/// Parts behind the drawing.
fn behind(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
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

fn thrust(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let burn = if m.act == Act::Rise { 1.25 } else { 0.9 };
    let cloud = SmokePuffs {
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
fn hover(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
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

fn kite_tail(pen: &mut Pen, look: &SubjectColours, t: f32) {
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
fn string(pen: &mut Pen, look: &SubjectColours, t: f32) {
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
fn burner(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let lit = m.act == Act::Rise || (m.t * 0.7).sin() > -0.2;
    if lit {
        pen.glow(50.0, 84.0, 14.0, look.lamp, 0.5);
        flame(pen, (50.0, 90.0), 1.8, 9.0, -1.0, m.t);
    }
}

/// The scarf of the child on a sled, in the wind.
fn scarf(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    let wind = if m.gone > 0.0 { 1.0 } else { 0.35 };
    let edge: Vec<(f32, f32)> = (0..=8)
        .map(|n| n as f32 / 8.0)
        .map(|at| {
            let wave = 3.0 * at * (m.t * 7.0 - at * 5.0).sin();
            let y = 55.0 + wave + 16.0 * at * (1.0 - wind);
            (40.0 - 22.0 * at * wind, y)
        })
        .collect();
    pen.stroke(&edge, 4.0, look.under_light(Rgb::hex(0xc8_3a3a)));
}

const HIP: (f32, f32) = (37.0, 41.0);
const SHOULDER: (f32, f32) = (53.0, 19.0);
const GRIP: (f32, f32) = (72.0, 40.0);
/// The crank's axle and the length of its arms, as in the drawing.
const AXLE: (f32, f32) = (48.0, 79.0);
const CRANK: f32 = 8.0;
/// Length of thigh and shin.
const BONE: f32 = 24.5;

/// The position of the knee, in front of the line from hip to foot (law of cosines).
fn knee(foot: (f32, f32)) -> (f32, f32) {
    let (across, down) = (foot.0 - HIP.0, foot.1 - HIP.1);
    let span = across.hypot(down).clamp(1.0, 2.0 * BONE - 0.1);
    // Height of the isosceles triangle of thigh and shin over the line from hip to foot, as a share
    // of that line.
    let ahead = (BONE * BONE - span * span * 0.25).sqrt() / span;
    (
        HIP.0 + across * 0.5 + down * ahead,
        HIP.1 + down * 0.5 - across * ahead,
    )
}

/// A foot on the pedal of a crank that has turned by `degrees`; the `near` one starts below.
fn foot(degrees: f32, near: bool) -> (f32, f32) {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let arm = if near { CRANK } else { -CRANK };
    (AXLE.0 - arm * sin, AXLE.1 + arm * cos)
}

fn leg(pen: &mut Pen, look: &SubjectColours, foot: (f32, f32), lift: f32) {
    let cloth = look.dark.lift(0.12 + lift);
    pen.stroke(&[HIP, knee(foot), (foot.0, foot.1 - 4.0)], 5.6, cloth);
    let shoe = [(foot.0 - 2.4, foot.1 - 1.6), (foot.0 + 4.0, foot.1 - 1.0)];
    pen.stroke(&shoe, 3.2, look.trim.lift(lift - 0.1));
}

/// Draws the rest of the rider.
fn rider_front(pen: &mut Pen, look: &SubjectColours, degrees: f32) {
    leg(pen, look, foot(degrees, true), 0.0);
    let back = [HIP, (41.0, 29.0), SHOULDER];
    pen.stroke(&back, 10.0, look.trim);
    pen.circle(HIP.0 + 0.6, HIP.1 + 0.6, 4.6, look.dark.lift(0.12));
    let elbow = (61.0, 33.0);
    pen.stroke(&[SHOULDER, elbow, GRIP], 4.0, look.trim.lift(-0.07));
    pen.circle(GRIP.0, GRIP.1, 2.4, look.skin);
    let head = (58.6, 10.4);
    pen.stroke(&[SHOULDER, head], 4.0, look.skin);
    pen.circle(head.0, head.1, 6.6, look.skin);
    let helmet = [
        (head.0 - 7.0, head.1 - 0.4),
        (head.0 - 6.0, head.1 - 6.0),
        (head.0, head.1 - 8.6),
        (head.0 + 6.0, head.1 - 5.6),
        (head.0 + 7.2, head.1 - 1.8),
    ];
    pen.shape(&helmet, look.main);
    pen.circle(head.0 + 3.6, head.1 + 0.6, 0.9, look.dark);
}

// The track under a train. It extends past the frame on both sides, and its sleepers do not move on
// the ground.

/// Its ends, in the coordinates of the train.
const ENDS: (f32, f32) = (-250.0, 350.0);
/// Distance between two sleepers.
const STEP: f32 = 6.0;

/// Draws rails, sleepers and their bed, after the train has covered `gone` sides of its square.
fn rails(pen: &mut Pen, look: &SubjectColours, gone: f32) {
    let (left, right) = ENDS;
    let bed = [(left, 100.6), (left, 98.4), (right, 98.4), (right, 100.6)];
    pen.shape(&bed, look.under_light(Rgb::hex(0x7c_7268)));
    // The train stays in its square while the track slides back under it, a sleeper's distance at
    // most.
    let first = left - (gone * 100.0) % STEP;
    let mut sleepers = PathBuilder::new();
    for nth in 0..=((right - left) / STEP) as u32 {
        if let Some(sleeper) = Rect::from_xywh(first + nth as f32 * STEP, 98.0, 3.0, 1.2) {
            sleepers.push_rect(sleeper);
        }
    }
    pen.fill(sleepers.finish(), look.under_light(Rgb::hex(0x4a_3a30)));
    let steel = look.under_light(Rgb::hex(0x9a_a0a8));
    pen.rect(left, 97.2, right - left, 0.9, steel);
}

#[cfg(test)]
mod tests;
