//! Objects of deep space: comets and black holes.

use std::f32::consts::TAU;

use tiny_skia::Transform;

use super::light::own_light;
use crate::art::Look;
use crate::art::effects::chance;
use crate::colour::Rgb;
use crate::pen::{Ink, Pen};
use crate::subject::Subject;

/// A comet that flies to the right and a little down; its tails point back.
pub(super) fn comet(pen: &mut Pen, look: &Look, t: f32) {
    let main = own_light(look, Subject::Comet);
    pen.within(Transform::from_rotate_at(16.0, 50.0, 50.0), |pen| {
        let head = (78.0, 50.0);
        let blue = Rgb::hex(0x6a_a8ff);
        let wave = 1.2 * (t * 2.1).sin();
        let tail = |pen: &mut Pen, end: (f32, f32), half: f32, wide: f32, colour, alpha| {
            let fade = [(head.0, head.1, colour, alpha), (end.0, end.1, colour, 0.0)];
            let wedge = [
                (head.0 + half * 0.4, head.1 - half),
                (head.0 + half * 0.4, head.1 + half),
                (end.0, end.1 + wide),
                (end.0, end.1 - wide),
            ];
            pen.shape(&wedge, Ink::Line(fade));
        };
        tail(pen, (-42.0, 62.0 + wave), 4.0, 12.0, main, 0.4);
        tail(pen, (-46.0, 46.0 - wave), 3.0, 4.0, blue, 0.6);
        tail(pen, (-10.0, 51.0), 4.4, 3.0, main, 0.7);
        for nth in 0..16_u32 {
            let age = (t * (0.25 + 0.2 * chance(nth)) + chance(nth + 50)).rem_euclid(1.0);
            let x = head.0 - 110.0 * age;
            let y = head.1 + (chance(nth + 90) - 0.42) * 22.0 * age;
            pen.circle(
                x,
                y,
                0.9 * (1.0 - 0.5 * age),
                Ink::Flat(main, 0.9 * (1.0 - age)),
            );
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
pub(super) fn black_hole(pen: &mut Pen, look: &Look, t: f32) {
    let main = own_light(look, Subject::BlackHole);
    let hot = main.mix(Rgb::hex(0xff_f6e0), 0.7);
    let sides = |alpha: f32| {
        Ink::Line([
            (8.0, 50.0, hot, alpha),
            (92.0, 50.0, main.lift(-0.18), alpha * 0.85),
        ])
    };
    pen.within(Transform::from_rotate_at(-12.0, 50.0, 50.0), |pen| {
        pen.glow(50.0, 50.0, 44.0, main, 0.4);
        for (radius, width, alpha) in [(23.6, 5.6, 0.4), (19.6, 4.0, 0.9)] {
            let halo: Vec<(f32, f32)> = (0..=60)
                .map(|n| n as f32 / 60.0 * TAU)
                .map(|angle| {
                    (
                        50.0 + radius * angle.cos(),
                        50.0 + radius * 0.98 * angle.sin(),
                    )
                })
                .collect();
            pen.stroke(&halo, width, sides(alpha));
        }
        disc(pen, t, false, &sides);
        pen.circle(50.0, 50.0, SHADOW, Rgb::BLACK);
        disc(pen, t, true, &sides);
    });
}

/// One half of the disc, behind the hole or in front of it. Its inner rings turn faster (Kepler's third
/// law: the square of the period goes as the cube of the radius).
fn disc(pen: &mut Pen, t: f32, front: bool, sides: &dyn Fn(f32) -> Ink) {
    let (from, flat) = if front { (0.0, 0.2) } else { (0.5, 0.16) };
    let arc = |radius: f32, from: f32, to: f32| -> Vec<(f32, f32)> {
        (0..=30)
            .map(|n| (from + (to - from) * n as f32 / 30.0) * TAU)
            .map(|angle| (50.0 + radius * angle.cos(), 50.0 + radius * angle.sin()))
            .collect()
    };
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
            pen.stroke(&arc(radius, from, from + 0.5), width, sides(alpha));
        }
        for nth in 0..14_u32 {
            let radius = 23.0 + 22.0 * chance(nth);
            let speed = 0.5 * (23.0 / radius).powf(1.5);
            let start = (chance(nth + 30) - t * speed).rem_euclid(1.0);
            // Only the part of a streak on this half.
            let (low, high) = (start.max(from), (start + 0.09).min(from + 0.5));
            if low < high {
                let glint = Ink::Flat(Rgb::WHITE, 0.55);
                pen.stroke(&arc(radius, low, high), 1.6, glint);
            }
        }
    });
}
