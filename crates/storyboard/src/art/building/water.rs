//! Falling water: the jets of a fountain, and a waterfall with its foam and spray.

use crate::art::Look;
use crate::art::effects::{Puffs, chance};
use crate::colour::Rgb;
use crate::pen::{Ink, Pen};

fn white(look: &Look) -> Rgb {
    look.shown(Rgb::hex(0xf2_fafd))
}

/// A jet: from a point, over a height, to a point.
struct Jet {
    from: (f32, f32),
    over: f32,
    to: (f32, f32),
}

impl Jet {
    /// The position of its water after `share` of its path.
    fn at(&self, share: f32) -> (f32, f32) {
        let x = self.from.0 + (self.to.0 - self.from.0) * share;
        let line = self.from.1 + (self.to.1 - self.from.1) * share * share;
        (x, line - self.over * 4.0 * share * (1.0 - share))
    }

    fn draw(&self, pen: &mut Pen, look: &Look, t: f32, phase: f32) {
        const DROPS: u8 = 6;
        let arc: Vec<(f32, f32)> = (0..=12).map(|n| self.at(n as f32 / 12.0)).collect();
        let blue = look.shown(Rgb::hex(0xa8_d8ee));
        pen.stroke(&arc, 1.5, Ink::Flat(blue, 0.75));
        for nth in 0..DROPS {
            let share = (t * 1.1 + f32::from(nth) / f32::from(DROPS) + phase).rem_euclid(1.0);
            let (x, y) = self.at(share);
            pen.circle(x, y, 0.7 + 0.5 * share, Ink::Flat(white(look), 0.95));
        }
    }
}

pub(super) fn fountain(pen: &mut Pen, look: &Look, t: f32) {
    // Rings spread in the basin from the falling water.
    for nth in 0..4_u8 {
        let age = (t * 0.6 + f32::from(nth) * 0.25).rem_euclid(1.0);
        let x = if nth.is_multiple_of(2) { 14.0 } else { 86.0 };
        let ring = Ink::Flat(white(look), 0.5 * (1.0 - age));
        pen.ellipse(x, 83.4, 2.0 + 7.0 * age, 0.5 + 1.0 * age, ring);
    }
    let breath = (t * 2.3).sin();
    let top = [(50.0, 38.0), (50.0, 17.0 + 1.2 * breath)];
    let blue = look.shown(Rgb::hex(0xa8_d8ee));
    pen.stroke(&top, 2.2, Ink::Flat(blue, 0.85));
    pen.stroke(&top, 0.8, Ink::Flat(white(look), 0.9));
    for (nth, side) in [-1.0, 1.0].into_iter().enumerate() {
        let phase = nth as f32 * 0.37;
        for (reach, over) in [(9.0, 15.0), (19.0, 19.0)] {
            let jet = Jet {
                from: (50.0, 36.0),
                over: over + breath,
                to: (50.0 + side * reach, 55.6),
            };
            jet.draw(pen, look, t, phase + reach * 0.07);
        }
        for (reach, out) in [(13.0, 22.0), (25.0, 36.0)] {
            let jet = Jet {
                from: (50.0 + side * reach, 57.4),
                over: 0.6,
                to: (50.0 + side * out, 83.0),
            };
            jet.draw(pen, look, t, phase + reach * 0.11);
        }
    }
}

/// The falling water, between the cliffs behind and before it.
pub(super) fn fall(pen: &mut Pen, look: &Look, t: f32) {
    const STREAKS: u32 = 26;
    let sheet = [
        (33.0, 19.0),
        (36.0, 16.4),
        (64.0, 16.4),
        (67.0, 19.0),
        (71.0, 98.0),
        (29.0, 98.0),
    ];
    pen.shape(&sheet, look.main.mix(look.shown(Rgb::hex(0x5a_a8cc)), 0.45));
    for nth in 0..STREAKS {
        let lane = (nth as f32 + 0.5) / STREAKS as f32;
        let speed = 0.75 + 0.5 * chance(nth * 3);
        let age = (t * speed + chance(nth * 3 + 1)).rem_euclid(1.0);
        let long = 10.0 + 16.0 * chance(nth * 3 + 2);
        // Falling water gathers speed.
        let y = 14.0 + 92.0 * age * (0.55 + 0.45 * age);
        let x = 34.0 + 32.0 * lane + (lane - 0.5) * 6.0 * age;
        let (from, to) = (y.max(17.0), (y + long).min(97.0));
        if from < to {
            let ink = Ink::Flat(
                if nth.is_multiple_of(3) {
                    look.main
                } else {
                    white(look)
                },
                0.7,
            );
            pen.stroke(&[(x, from), (x, to)], 0.8 + 0.9 * chance(nth * 5), ink);
        }
    }
    pen.stroke(
        &[(34.4, 16.8), (65.6, 16.8)],
        1.2,
        Ink::Flat(white(look), 0.8),
    );
}

/// Foam and spray at the foot of the fall.
pub(super) fn spray(pen: &mut Pen, look: &Look, t: f32) {
    let pool = look.shown(Rgb::hex(0x5a_a8cc));
    pen.ellipse(50.0, 97.6, 40.0, 3.4, pool);
    for nth in 0..4_u8 {
        let age = (t * 0.5 + f32::from(nth) * 0.25).rem_euclid(1.0);
        let ring = Ink::Flat(white(look), 0.5 * (1.0 - age));
        pen.ellipse(50.0, 97.8, 18.0 + 22.0 * age, 1.2 + 1.6 * age, ring);
    }
    for nth in 0..11_u32 {
        let beat = (t * (3.0 + 2.0 * chance(nth)) + nth as f32 * 1.7).sin();
        let x = 31.0 + nth as f32 * 3.8;
        let radius = 2.6 + 1.6 * chance(nth + 40) + 0.7 * beat;
        pen.circle(x, 95.8 - 0.8 * beat, radius, Ink::Flat(white(look), 0.9));
    }
    for (nth, x) in [42.0, 58.0].into_iter().enumerate() {
        let mist = Puffs {
            from: (x, 94.0),
            drift: ((x - 50.0) * 0.8, -22.0),
            radius: (7.0, 14.0),
            count: 4,
            life_s: 2.4,
            colour: white(look),
            alpha: 0.55,
            soft: true,
        };
        mist.draw(pen, t + nth as f32 * 0.7);
    }
}
