//! The Earth from space: coastlines on a turning globe, under clouds and its own shadow. The coastlines
//! are approximate.

use tiny_skia::Transform;

use super::light::own_light;
use crate::art::Look;
use crate::colour::Rgb;
use crate::pen::{Ink, Pen};
use crate::subject::Subject;

const RADIUS: f32 = 32.0;
/// Degrees per second.
const TURN: f32 = 9.0;
/// The latitude in the middle of the view.
const TILT: f32 = 16.0;

/// Coastlines as longitude and latitude, degrees.
const LANDS: &[&[(i16, i16)]] = &[
    &[
        (-17, 15),
        (-6, 35),
        (10, 37),
        (32, 31),
        (43, 12),
        (51, 12),
        (40, -5),
        (40, -16),
        (33, -28),
        (20, -35),
        (14, -22),
        (9, 0),
        (8, 4),
        (-8, 5),
    ],
    &[
        (-9, 37),
        (-9, 43),
        (-1, 44),
        (-4, 48),
        (4, 52),
        (8, 57),
        (5, 61),
        (14, 67),
        (25, 71),
        (40, 67),
        (60, 69),
        (75, 73),
        (105, 77),
        (140, 73),
        (170, 69),
        (178, 65),
        (163, 60),
        (156, 52),
        (142, 59),
        (135, 54),
        (140, 48),
        (128, 42),
        (127, 35),
        (122, 38),
        (119, 35),
        (121, 29),
        (110, 21),
        (106, 11),
        (100, 14),
        (103, 2),
        (98, 9),
        (94, 17),
        (88, 22),
        (80, 14),
        (77, 8),
        (73, 18),
        (67, 25),
        (57, 26),
        (60, 22),
        (52, 16),
        (44, 13),
        (35, 28),
        (36, 36),
        (27, 37),
        (22, 37),
        (18, 40),
        (13, 45),
        (16, 38),
        (10, 44),
        (3, 42),
        (-2, 37),
    ],
    &[
        (-166, 66),
        (-156, 71),
        (-128, 70),
        (-110, 68),
        (-95, 72),
        (-82, 68),
        (-94, 60),
        (-82, 54),
        (-78, 62),
        (-65, 60),
        (-56, 52),
        (-66, 45),
        (-75, 39),
        (-81, 31),
        (-81, 25),
        (-84, 30),
        (-97, 27),
        (-97, 20),
        (-90, 21),
        (-87, 16),
        (-78, 8),
        (-83, 9),
        (-92, 15),
        (-105, 20),
        (-115, 31),
        (-124, 41),
        (-125, 49),
        (-135, 58),
        (-152, 60),
        (-165, 62),
    ],
    &[
        (-77, 8),
        (-71, 12),
        (-60, 9),
        (-50, 1),
        (-35, -6),
        (-39, -16),
        (-48, -26),
        (-58, -36),
        (-65, -42),
        (-69, -52),
        (-74, -50),
        (-72, -32),
        (-70, -18),
        (-80, -6),
        (-80, 2),
    ],
    &[
        (114, -22),
        (122, -18),
        (131, -12),
        (136, -15),
        (142, -11),
        (146, -19),
        (153, -27),
        (149, -37),
        (140, -38),
        (131, -32),
        (116, -35),
    ],
    &[(-5, 50), (1, 52), (-3, 58), (-6, 56)],
    &[(44, -17), (49, -14), (47, -25), (44, -24)],
    &[(96, 5), (103, 0), (106, -6), (100, -1)],
    &[(109, 1), (117, 6), (118, 0), (114, -4)],
    &[(131, -1), (141, -3), (150, -10), (138, -8)],
    &[(131, 32), (136, 35), (141, 41), (140, 36)],
    &[(168, -46), (173, -41), (178, -38), (174, -42)],
];
const ICE: &[&[(i16, i16)]] = &[
    &[
        (-55, 82),
        (-25, 82),
        (-20, 72),
        (-42, 60),
        (-52, 68),
        (-60, 76),
    ],
    &[
        (-180, -74),
        (-140, -74),
        (-100, -73),
        (-62, -66),
        (-40, -78),
        (0, -70),
        (45, -67),
        (90, -66),
        (135, -66),
        (170, -74),
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
fn seen(longitude: f32, latitude: f32) -> ((f32, f32), bool) {
    let (lon, lat) = (longitude.to_radians(), latitude.to_radians());
    let tilt = TILT.to_radians();
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

fn coasts(pen: &mut Pen, lands: &[&[(i16, i16)]], turn: f32, colour: Rgb) {
    for land in lands {
        let mut shape = Vec::with_capacity(land.len() * 3);
        let mut any_near = false;
        for (nth, from) in land.iter().enumerate() {
            let to = land[(nth + 1) % land.len()];
            // Long coasts bend with the globe.
            for part in 0..3 {
                let at = |a: i16, b: i16| f32::from(a) + f32::from(b - a) * part as f32 / 3.0;
                let (point, near) = seen(at(from.0, to.0) + turn, at(from.1, to.1));
                any_near |= near;
                shape.push(point);
            }
        }
        if any_near {
            pen.shape(&shape, colour);
        }
    }
}

pub(super) fn draw(pen: &mut Pen, look: &Look, t: f32) {
    let air = Rgb::hex(0x8a_c4ff);
    for (out, alpha) in [(1.14, 0.1), (1.08, 0.2), (1.035, 0.45)] {
        pen.circle(50.0, 50.0, RADIUS * out, Ink::Flat(air, alpha));
    }
    pen.circle(50.0, 50.0, RADIUS, own_light(look, Subject::Earth));
    let turn = t * TURN % 360.0;
    coasts(pen, LANDS, turn, Rgb::hex(0x6a_a452));
    coasts(pen, ICE, turn, Rgb::hex(0xf2_f6f8));
    let white = Rgb::hex(0xff_ffff);
    for (longitude, latitude, long, broad) in CLOUDS {
        // Clouds move a little faster than the ground.
        let ((x, y), near) = seen(longitude + turn * 1.2, *latitude);
        let edge = (x - 50.0).hypot(y - 50.0) / RADIUS;
        if near && edge < 0.93 {
            let flat = (1.0 - edge * edge).sqrt();
            for (aside, down, size) in [(0.0, 0.0, 1.0), (-0.5, 0.8, 0.6), (0.6, -0.7, 0.5)] {
                let at = (x + aside * long * flat, y + down * broad);
                pen.ellipse(
                    at.0,
                    at.1,
                    long * size * flat.max(0.2),
                    *broad,
                    Ink::Flat(white, 0.78),
                );
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
