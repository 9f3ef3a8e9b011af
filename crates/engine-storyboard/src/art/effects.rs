//! Small moving effects: puffs, flags, flames, smoke. Each is a function of time without state, so that every frame
//! can be drawn alone.

use super::SubjectColours;
use crate::raster::colour::Rgb;
use crate::raster::pen::{Ink, Pen, smooth};

/// A pseudo-random number from 0.0 to 1.0, the same for the same `n`.
pub(super) fn chance(n: u32) -> f32 {
    // The finaliser of MurmurHash3 (Austin Appleby, public domain).
    let mut h = n.wrapping_add(0x9e37_79b9);
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    ((h ^ (h >> 16)) >> 8) as f32 / (1 << 24) as f32
}

/// Puffs from one point, which drift away, grow and fade.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmokePuffs {
    pub(super) from: (f32, f32),
    /// The end of a puff's path, relative to `from`.
    pub(super) drift: (f32, f32),
    /// Radius at the start and at the end.
    pub(super) radius: (f32, f32),
    pub(super) count: u8,
    /// Lifetime of a puff, seconds.
    pub(super) life_s: f32,
    pub(super) colour: Rgb,
    pub(super) alpha: f32,
    /// Mist without an edge, instead of smoke with one.
    pub(super) soft: bool,
}

impl SmokePuffs {
    pub(super) fn draw(&self, pen: &mut Pen, t: f32) {
        let count = f32::from(self.count);
        for nth in 0..self.count {
            let turn = t / self.life_s + f32::from(nth) / count;
            let age = turn.rem_euclid(1.0);
            // Number of the puff's life: each time it is born it sways its own way, without any
            // state.
            let birth = turn.floor() as i32 as u32;
            let sway = chance(birth.wrapping_mul(31) ^ u32::from(nth)) - 0.5;
            // Air slows it down.
            let way = age * (1.6 - 0.6 * age);
            let radius = self.radius.0 + (self.radius.1 - self.radius.0) * age.sqrt();
            let x = self.from.0 + self.drift.0 * way + sway * radius * 1.6 * age;
            let y = self.from.1 + self.drift.1 * way + (0.5 - age) * sway * radius;
            let alpha = self.alpha * (age * 8.0).min(1.0) * (2.0 - 2.0 * age).min(1.0);
            if self.soft {
                pen.glow(x, y, radius, self.colour, alpha);
            } else {
                pen.circle(x, y, radius, Ink::Flat(self.colour, alpha));
            }
        }
    }
}

/// A flag on a pole whose top is `pole`, `size` across (negative: to the left) and down.
pub(super) fn flag(pen: &mut Pen, pole: (f32, f32), size: (f32, f32), t: f32, colour: Rgb) {
    const PARTS: usize = 8;
    let wave = |n: usize| {
        let at = n as f32 / PARTS as f32;
        let lift = (t * 5.0 - at * 5.2).sin() * at * size.1 * 0.3;
        (pole.0 + size.0 * at, pole.1 + lift)
    };
    // All of the cloth, and a shade over its outer half.
    for (from, ink) in [(0, colour.into()), (PARTS / 2, Ink::Flat(Rgb::BLACK, 0.1))] {
        let upper = (from..=PARTS).map(wave);
        let lower = upper.clone().rev().map(|(x, y)| (x, y + size.1));
        let cloth: Vec<(f32, f32)> = upper.chain(lower).collect();
        pen.shape(&cloth, ink);
    }
}

/// A flame with its foot at `at`, `half` as wide on each side and `long`, to the `down` (1.0) or up (-1.0).
pub(super) fn flame(pen: &mut Pen, at: (f32, f32), half: f32, long: f32, down: f32, t: f32) {
    let flare = 1.0 + 0.12 * (t * 17.0).sin() + 0.07 * (t * 29.0).sin();
    let lick = half * 0.3 * (t * 11.0).sin();
    for (share, length, colour) in [
        (1.0, long, 0xff_8a3c),
        (0.62, long * 0.66, 0xff_c85a),
        (0.34, long * 0.4, 0xff_f4d0),
    ] {
        let (half, length) = (half * share, length * flare * down);
        let tongue = smooth(&[
            (at.0 - half * 0.8, at.1),
            (at.0 + half * 0.8, at.1),
            (at.0 + half, at.1 + length * 0.34),
            (at.0 + lick * share, at.1 + length),
            (at.0 - half, at.1 + length * 0.34),
        ]);
        pen.fill(tongue, Rgb::hex(colour));
    }
}

/// The colour of smoke in the scene's light; `dark` 0.0 is steam, 1.0 soot.
pub(super) fn smoke(look: &SubjectColours, dark: f32) -> Rgb {
    look.under_light(Rgb::hex(0xf2_f2f0).mix(Rgb::hex(0x40_3c40), dark))
}
