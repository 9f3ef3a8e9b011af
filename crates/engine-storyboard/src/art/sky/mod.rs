//! Objects in the sky: planets, the turning Earth, comets, black holes and fireworks. Most emit light, so the scene's
//! light does not dim them. The scene's sky draws the sun and the moon.

use std::f32::consts::TAU;

use tiny_skia::Transform;

use super::effects::chance;
use super::rig::PartPose;
use super::{ActMoment, SubjectColours};
use crate::raster::colour::Rgb;
use crate::raster::pen::{Ink, Pen};
use crate::subject::Subject;

pub(super) fn draw(pen: &mut Pen, subject: Subject, look: &SubjectColours, m: &ActMoment) {
    match subject {
        Subject::Planet => {
            let look = SubjectColours {
                main: own_light(look, subject),
                ..*look
            };
            super::plain(pen, subject, &look, &|name| spot(name, m.t));
        }
        Subject::Earth => earth(pen, look, m.t),
        Subject::Comet => comet(pen, look, m.t),
        Subject::BlackHole => black_hole(pen, look, m.t),
        Subject::Fireworks => fireworks(pen, look, m),
        _ => {}
    }
}

/// Storms on a turning planet: they cross its disc and become narrower towards its edge.
fn spot(name: &str, t: f32) -> PartPose {
    let Some(nth) = name.strip_prefix("spot-") else {
        return PartPose::REST;
    };
    let nth: f32 = nth.parse().unwrap_or(0.0);
    let turn = t * 0.35 + nth * 2.2;
    if turn.cos() < 0.12 {
        return PartPose::HIDDEN;
    }
    let half = [24.0, 23.0, 20.6][(nth as usize).min(2)];
    PartPose {
        shift: (half * turn.sin(), 0.0),
        ..PartPose::scaled(turn.cos(), 1.0)
    }
}

/// Whether the words name a colour that `subject` does not have by nature.
fn is_named(look: &SubjectColours, subject: Subject) -> bool {
    let natural = look.under_light(subject.facts().colour.unwrap_or(look.main));
    let main = look.main;
    (main.r - natural.r).abs() + (main.g - natural.g).abs() + (main.b - natural.b).abs() > 0.02
}

/// The main colour of an object that emits light or has its own sun: the scene's light does not dim it.
fn own_light(look: &SubjectColours, subject: Subject) -> Rgb {
    match subject.facts().colour {
        Some(natural) if !is_named(look, subject) => natural,
        _ => look.main.lift(0.08),
    }
}

/// A comet that flies to the right and a little down; its tails point back.
fn comet(pen: &mut Pen, look: &SubjectColours, t: f32) {
    let main = own_light(look, Subject::Comet);
    pen.within(Transform::from_rotate_at(16.0, 50.0, 50.0), |pen| {
        let head = (78.0, 50.0);
        let blue = Rgb::hex(0x6a_a8ff);
        let wave = 1.2 * (t * 2.1).sin();
        for (end, half, wide, colour, alpha) in [
            ((-42.0, 62.0 + wave), 4.0, 12.0, main, 0.4),
            ((-46.0, 46.0 - wave), 3.0, 4.0, blue, 0.6),
            ((-10.0, 51.0), 4.4, 3.0, main, 0.7),
        ] {
            let fade = [(head.0, head.1, colour, alpha), (end.0, end.1, colour, 0.0)];
            let wedge = [
                (head.0 + half * 0.4, head.1 - half),
                (head.0 + half * 0.4, head.1 + half),
                (end.0, end.1 + wide),
                (end.0, end.1 - wide),
            ];
            pen.shape(&wedge, Ink::Line(fade));
        }
        for nth in 0..16_u32 {
            let age = (t * (0.25 + 0.2 * chance(nth)) + chance(nth + 50)).rem_euclid(1.0);
            let x = head.0 - 110.0 * age;
            let y = head.1 + (chance(nth + 90) - 0.42) * 22.0 * age;
            let ink = Ink::Flat(main, 0.9 * (1.0 - age));
            pen.circle(x, y, 0.9 * (1.0 - 0.5 * age), ink);
        }
        pen.glow(head.0, head.1, 17.0, main, 0.75);
        pen.circle(head.0, head.1, 5.4, main);
        pen.circle(head.0 + 0.8, head.1 - 0.6, 3.4, Ink::Flat(Rgb::WHITE, 0.9));
    });
}

/// Radius of the black disc.
const SHADOW: f32 = 17.0;

/// A black hole with its disc. It bends the light from behind over the top and under the bottom; the side that moves
/// towards the viewer is brighter.
fn black_hole(pen: &mut Pen, look: &SubjectColours, t: f32) {
    let main = own_light(look, Subject::BlackHole);
    pen.within(Transform::from_rotate_at(-12.0, 50.0, 50.0), |pen| {
        pen.glow(50.0, 50.0, 44.0, main, 0.4);
        for (radius, width, alpha) in [(23.6, 5.6, 0.4), (19.6, 4.0, 0.9)] {
            let halo: Vec<(f32, f32)> = (0..=60)
                .map(|n| (n as f32 / 60.0 * TAU).sin_cos())
                .map(|(sin, cos)| (50.0 + radius * cos, 50.0 + radius * 0.98 * sin))
                .collect();
            pen.stroke(&halo, width, disc_ink(main, alpha));
        }
        disc(pen, t, false, main);
        pen.circle(50.0, 50.0, SHADOW, Rgb::BLACK);
        disc(pen, t, true, main);
    });
}

/// Hotter on one side.
fn disc_ink(main: Rgb, alpha: f32) -> Ink {
    let hot = main.mix(Rgb::hex(0xff_f6e0), 0.7);
    Ink::Line([
        (8.0, 50.0, hot, alpha),
        (92.0, 50.0, main.lift(-0.18), alpha * 0.85),
    ])
}

/// One half of the disc, behind the hole or in front of it. Its inner rings turn faster (Kepler's third
/// law: the square of the period goes as the cube of the radius).
fn disc(pen: &mut Pen, t: f32, front: bool, main: Rgb) {
    let (from, flat) = if front { (0.0, 0.2) } else { (0.5, 0.16) };
    // A flat ring: a circle squashed together with its lines.
    let press = Transform::from_translate(0.0, 50.0 * (1.0 - flat)).pre_scale(1.0, flat);
    pen.within(press, |pen| {
        let rings = [
            (44.0, 5.0, 0.3),
            (38.5, 7.0, 0.55),
            (31.5, 8.0, 0.8),
            (24.0, 8.0, 0.95),
        ];
        for (radius, width, alpha) in rings {
            let half = circle_arc(radius, from, from + 0.5);
            pen.stroke(&half, width, disc_ink(main, alpha));
        }
        for nth in 0..14_u32 {
            let radius = 23.0 + 22.0 * chance(nth);
            // Kepler: the rate goes as the radius to the power -3/2.
            let speed = 0.5 * (23.0 / radius).powf(1.5);
            let start = (chance(nth + 30) - t * speed).rem_euclid(1.0);
            // Only the part of a streak on this half.
            let (low, high) = (start.max(from), (start + 0.09).min(from + 0.5));
            if low < high {
                let glint = Ink::Flat(Rgb::WHITE, 0.55);
                pen.stroke(&circle_arc(radius, low, high), 1.6, glint);
            }
        }
    });
}

/// Part of a circle around the middle, between shares of a turn.
fn circle_arc(radius: f32, from: f32, to: f32) -> Vec<(f32, f32)> {
    (0..=30)
        .map(|n| (from + (to - from) * n as f32 / 30.0) * TAU)
        .map(|angle| (50.0 + radius * angle.cos(), 50.0 + radius * angle.sin()))
        .collect()
}

const RADIUS: f32 = 32.0;
/// Degrees per second.
const TURN: f32 = 9.0;
/// The latitude in the middle of the view.
const TILT: f32 = 16.0;

/// Coastlines: longitude and latitude of one point after the other, degrees.
const LANDS: &[&[i16]] = &[
    &[
        -17, 15, -6, 35, 10, 37, 32, 31, 43, 12, 51, 12, 40, -5, 40, -16, 33, -28, 20, -35, 14,
        -22, 9, 0, 8, 4, -8, 5,
    ],
    &[
        -9, 37, -9, 43, -1, 44, -4, 48, 4, 52, 8, 57, 5, 61, 14, 67, 25, 71, 40, 67, 60, 69, 75,
        73, 105, 77, 140, 73, 170, 69, 178, 65, 163, 60, 156, 52, 142, 59, 135, 54, 140, 48, 128,
        42, 127, 35, 122, 38, 119, 35, 121, 29, 110, 21, 106, 11, 100, 14, 103, 2, 98, 9, 94, 17,
        88, 22, 80, 14, 77, 8, 73, 18, 67, 25, 57, 26, 60, 22, 52, 16, 44, 13, 35, 28, 36, 36, 27,
        37, 22, 37, 18, 40, 13, 45, 16, 38, 10, 44, 3, 42, -2, 37,
    ],
    &[
        -166, 66, -156, 71, -128, 70, -110, 68, -95, 72, -82, 68, -94, 60, -82, 54, -78, 62, -65,
        60, -56, 52, -66, 45, -75, 39, -81, 31, -81, 25, -84, 30, -97, 27, -97, 20, -90, 21, -87,
        16, -78, 8, -83, 9, -92, 15, -105, 20, -115, 31, -124, 41, -125, 49, -135, 58, -152, 60,
        -165, 62,
    ],
    &[
        -77, 8, -71, 12, -60, 9, -50, 1, -35, -6, -39, -16, -48, -26, -58, -36, -65, -42, -69, -52,
        -74, -50, -72, -32, -70, -18, -80, -6, -80, 2,
    ],
    &[
        114, -22, 122, -18, 131, -12, 136, -15, 142, -11, 146, -19, 153, -27, 149, -37, 140, -38,
        131, -32, 116, -35,
    ],
    &[-5, 50, 1, 52, -3, 58, -6, 56],
    &[44, -17, 49, -14, 47, -25, 44, -24],
    &[96, 5, 103, 0, 106, -6, 100, -1],
    &[109, 1, 117, 6, 118, 0, 114, -4],
    &[131, -1, 141, -3, 150, -10, 138, -8],
    &[131, 32, 136, 35, 141, 41, 140, 36],
    &[168, -46, 173, -41, 178, -38, 174, -42],
];
const ICE: &[&[i16]] = &[
    &[-55, 82, -25, 82, -20, 72, -42, 60, -52, 68, -60, 76],
    &[
        -180, -74, -140, -74, -100, -73, -62, -66, -40, -78, 0, -70, 45, -67, 90, -66, 135, -66,
        170, -74,
    ],
];
/// Banks of clouds: longitude, latitude, half their length and breadth.
const CLOUDS: &[(f32, f32, f32, f32)] = &[
    (-150.0, 24.0, 7.0, 1.3),
    (-110.0, -14.0, 9.0, 1.6),
    (-60.0, 36.0, 8.0, 1.4),
    (-30.0, 6.0, 9.0, 1.3),
    (-12.0, -38.0, 8.0, 1.5),
    (30.0, 52.0, 7.0, 1.2),
    (62.0, -8.0, 9.0, 1.5),
    (96.0, 34.0, 7.0, 1.2),
    (120.0, -46.0, 9.0, 1.4),
    (160.0, 12.0, 9.0, 1.6),
];

/// The position of a point of the globe in the picture, and whether it is on the near side. Points of the far side
/// move to the rim.
fn project(longitude: f32, latitude: f32) -> ((f32, f32), bool) {
    let (lon, lat) = (longitude.to_radians(), latitude.to_radians());
    let tilt = TILT.to_radians();
    // A point of the unit sphere; then the globe tilts towards the viewer about the horizontal
    // axis.
    let (x, up, near) = (lat.cos() * lon.sin(), lat.sin(), lat.cos() * lon.cos());
    let (y, z) = (
        up * tilt.cos() - near * tilt.sin(),
        up * tilt.sin() + near * tilt.cos(),
    );
    let out = if z < 0.0 {
        1.0 / x.hypot(y).max(0.01)
    } else {
        1.0
    };
    ((50.0 + RADIUS * x * out, 50.0 - RADIUS * y * out), z >= 0.0)
}

fn coasts(pen: &mut Pen, lands: &[&[i16]], turn: f32, colour: Rgb) {
    for land in lands {
        let (points, _) = land.as_chunks::<2>();
        let mut shape = Vec::with_capacity(points.len() * 3);
        let mut any_near = false;
        for (nth, from) in points.iter().enumerate() {
            let to = points[(nth + 1) % points.len()];
            // Long coasts bend with the globe.
            for part in 0..3 {
                let [longitude, latitude] = [0, 1].map(|at| {
                    f32::from(from[at]) + f32::from(to[at] - from[at]) * part as f32 / 3.0
                });
                let (point, near) = project(longitude + turn, latitude);
                any_near |= near;
                shape.push(point);
            }
        }
        if any_near {
            pen.shape(&shape, colour);
        }
    }
}

fn earth(pen: &mut Pen, look: &SubjectColours, t: f32) {
    let air = Rgb::hex(0x8a_c4ff);
    for (out, alpha) in [(1.14, 0.1), (1.08, 0.2), (1.035, 0.45)] {
        pen.circle(50.0, 50.0, RADIUS * out, Ink::Flat(air, alpha));
    }
    pen.circle(50.0, 50.0, RADIUS, own_light(look, Subject::Earth));
    let turn = t * TURN % 360.0;
    coasts(pen, LANDS, turn, Rgb::hex(0x6a_a452));
    coasts(pen, ICE, turn, Rgb::hex(0xf2_f6f8));
    for (longitude, latitude, long, broad) in CLOUDS {
        // Clouds move a little faster than the ground.
        let ((x, y), near) = project(longitude + turn * 1.2, *latitude);
        let edge = (x - 50.0).hypot(y - 50.0) / RADIUS;
        if near && edge < 0.93 {
            let flat = (1.0 - edge * edge).sqrt();
            for (aside, down, size) in [(0.0, 0.0, 1.0), (-0.5, 0.8, 0.6), (0.6, -0.7, 0.5)] {
                let (x, y) = (x + aside * long * flat, y + down * broad);
                let across = long * size * flat.max(0.2);
                pen.ellipse(x, y, across, *broad, Ink::Flat(Rgb::WHITE, 0.78));
            }
        }
    }
    night(pen);
}

/// The night side: three crescents, each darker, on the side away from the sun.
fn night(pen: &mut Pen) {
    let sun = Transform::from_translate(50.0, 50.0).pre_concat(Transform::from_rotate(34.0));
    pen.within(sun, |pen| {
        for narrow in [0.86, 0.62, 0.3] {
            let edge = |across: f32| {
                (-20..=20_i8).map(move |n| {
                    let (sin, cos) = (f32::from(n) * 4.5).to_radians().sin_cos();
                    (RADIUS * across * cos, RADIUS * sin)
                })
            };
            let crescent: Vec<(f32, f32)> = edge(1.0).chain(edge(narrow).rev()).collect();
            pen.shape(&crescent, Ink::Flat(Rgb::BLACK, 0.26));
        }
    });
}

/// Time between two launches of a mortar, seconds.
const PERIOD_S: f32 = 2.7;
/// Time from a launch to its burst, seconds.
const RISE_S: f32 = 0.75;
const MORTARS: u32 = 6;
const SPARKS: u32 = 30;
const COLOURS: [u32; 6] = [
    0xff_5a5a, 0xff_d24a, 0x6a_e08a, 0x6a_b4ff, 0xe0_7aff, 0xff_9a4a,
];

fn fireworks(pen: &mut Pen, look: &SubjectColours, m: &ActMoment) {
    for mortar in 0..MORTARS {
        // Mortars fire in turn. The whole part numbers the shot, the fraction is its age: any frame
        // can be drawn alone.
        let turn = m.t / PERIOD_S + mortar as f32 / MORTARS as f32 + f32::from(m.nth) * 0.31;
        let shot = (turn.floor() as i32 as u32)
            .wrapping_mul(MORTARS)
            .wrapping_add(mortar)
            .wrapping_add(u32::from(m.nth) * 1000);
        let seconds = turn.rem_euclid(1.0) * PERIOD_S;
        // Side by side, so that bursts fill the sky evenly.
        let lane = (mortar * 5 % MORTARS) as f32 / (MORTARS as f32 - 1.0) - 0.5;
        let top = (
            50.0 + lane * 150.0 + (chance(shot * 7) - 0.5) * 24.0,
            58.0 - 62.0 * chance(shot * 7 + 1),
        );
        if seconds < RISE_S {
            rise(pen, top, seconds / RISE_S);
        } else {
            let age = (seconds - RISE_S) / (PERIOD_S - RISE_S);
            burst(pen, top, colour(look, shot), shot, age);
        }
    }
}

/// The colour of a burst: shades of the colour that the words name, otherwise any colour.
fn colour(look: &SubjectColours, shot: u32) -> Rgb {
    if is_named(look, Subject::Fireworks) {
        // Fire emits light: the scene's light does not dim it.
        return look.main.lift(0.06 + 0.12 * chance(shot * 7 + 3));
    }
    Rgb::hex(COLOURS[shot as usize % COLOURS.len()])
}

/// A rising rocket, which slows down.
fn rise(pen: &mut Pen, top: (f32, f32), share: f32) {
    let glow = Rgb::hex(0xff_e0a0);
    for step in 0..5_u8 {
        let step = f32::from(step);
        let back = step * 0.035;
        let trail = [share - back, share - back - 0.035].map(|share| {
            let left = (1.0 - share).max(0.0);
            (top.0 + 4.0 * left, top.1 + (150.0 - top.1) * left * left)
        });
        let ink = Ink::Flat(glow, 0.9 - 0.18 * step);
        pen.stroke(&trail, 1.5 - 0.2 * step, ink);
    }
}

/// Sparks at `age`, 0.0 to 1.0, after the burst.
fn burst(pen: &mut Pen, top: (f32, f32), colour: Rgb, shot: u32, age: f32) {
    let size = 30.0 + 18.0 * chance(shot * 7 + 2);
    let bright = (1.0 - age * age).max(0.0);
    let flash = (1.0 - age * 4.0).max(0.0);
    if flash > 0.0 {
        pen.glow(top.0, top.1, size * 0.8, colour, 0.8 * flash);
    }
    let hue = colour.mix(Rgb::WHITE, (0.7 - 2.4 * age).max(0.0));
    for spark in 0..SPARKS {
        let inner = spark.is_multiple_of(3);
        let angle = (spark as f32 + 0.5 * chance(shot ^ spark)) / SPARKS as f32 * TAU;
        let reach = if inner {
            0.55
        } else {
            0.92 + 0.12 * chance(shot + spark * 11)
        };
        // Air slows the sparks down, then they sink.
        let tail = [(age - 0.1 - 0.1 * age).max(0.0), age].map(|age| {
            // Drag: the speed falls exponentially, so that sparks come to rest at `size * reach`.
            let out = size * reach * (1.0 - (-3.4 * age).exp());
            (
                top.0 + out * angle.cos(),
                top.1 + out * angle.sin() + 22.0 * age * age,
            )
        });
        // Sparks twinkle before they go out.
        let twinkle = if age > 0.5 && (spark + (age * 40.0) as u32).is_multiple_of(3) {
            0.35
        } else {
            1.0
        };
        let colour = if inner { Rgb::hex(0xff_f0c0) } else { hue };
        let ink = Ink::Flat(colour, bright * twinkle);
        streak(pen, tail, 1.5 - 0.7 * age, ink);
    }
}

/// A streak of light: a point behind, `half` as wide on each side ahead.
fn streak(pen: &mut Pen, [tail, head]: [(f32, f32); 2], half: f32, ink: Ink) {
    let (x, y) = (head.0 - tail.0, head.1 - tail.1);
    let long = x.hypot(y).max(0.01);
    let (ahead, aside) = (
        (x / long * half, y / long * half),
        (y / long * half, -x / long * half),
    );
    let shape = [
        tail,
        (head.0 + aside.0, head.1 + aside.1),
        (head.0 + ahead.0, head.1 + ahead.1),
        (head.0 - aside.0, head.1 - aside.1),
    ];
    pen.shape(&shape, ink);
}

#[cfg(test)]
mod tests;
