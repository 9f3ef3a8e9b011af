//! Effects in the air around things, as functions of time: steam, smoke, glow, sparks, glints and notes. They are not
//! parts of drawings.

use crate::art::{Look, Moment};
use crate::colour::Rgb;
use crate::pen::{Ink, Pen};

/// A flame's light, around 1.0.
pub(super) fn flicker(m: &Moment) -> f32 {
    1.0 + 0.05 * (m.t * 7.3).sin() + 0.04 * (m.t * 12.1 + 1.0).sin()
}

/// Lamplight around a point, in `alpha` at its middle.
pub(super) fn glow(pen: &mut Pen, look: &Look, at: (f32, f32), radius: f32, alpha: f32) {
    if alpha > 0.01 {
        pen.glow(at.0, at.1, radius, look.lamp, alpha);
        pen.glow(at.0, at.1, radius * 0.5, look.lamp, alpha * 0.6);
    }
}

/// Three wisps of steam that rise `tall` from a point and thin out.
pub(super) fn steam(pen: &mut Pen, m: &Moment, from: (f32, f32), tall: f32) {
    for wisp in 0..3_u8 {
        let own = f32::from(wisp);
        let x = from.0 + (own - 1.0) * tall * 0.24;
        let strength = 0.6 + 0.4 * (m.t * 0.7 + own * 2.1).sin();
        let height = tall * (0.86 + 0.14 * (m.t * 0.9 + own * 1.3).sin());
        let points: Vec<(f32, f32)> = (0..=12_u8)
            .map(|n| f32::from(n) / 12.0)
            .map(|s| {
                let sway = (s * 6.5 - m.t * 2.2 + own * 1.9).sin() * (0.02 + 0.11 * s) * tall;
                (x + sway, from.1 - s * height)
            })
            .collect();
        let fade = |alpha: f32| {
            Ink::Line([
                (0.0, from.1, Rgb::WHITE, alpha * strength),
                (0.0, from.1 - height, Rgb::WHITE, 0.0),
            ])
        };
        pen.stroke(&points, tall * 0.17, fade(0.14));
        pen.stroke(&points, tall * 0.09, fade(0.24));
        pen.stroke(&points, tall * 0.035, fade(0.34));
    }
}

/// Puffs of smoke that grow as they rise.
pub(super) fn smoke(pen: &mut Pen, look: &Look, m: &Moment, from: (f32, f32)) {
    let colour = look.shown(Rgb::hex(0xb8_b4b4));
    for puff in 0..5_u8 {
        let own = f32::from(puff) * 0.2;
        let way = (m.t * 0.16 + own).fract();
        let x = from.0 + 5.0 * (m.t * 0.7 + own * 9.0).sin() * way + way * 12.0;
        let alpha = 0.26 * (1.0 - way) * (way * 5.0).min(1.0);
        pen.glow(x, from.1 - way * 34.0, 7.0 + way * 13.0, colour, alpha);
    }
}

/// Sparks that rise from a fire and die.
pub(super) fn sparks(pen: &mut Pen, look: &Look, m: &Moment, from: (f32, f32)) {
    let colour = look.lamp.mix(Rgb::hex(0xff_9040), 0.5);
    for spark in 0..12_u8 {
        let own = f32::from(spark) * 0.618_034;
        let way = (m.t * (0.3 + 0.25 * own.fract()) + own * 5.0).fract();
        let x = from.0
            + 38.0 * ((own * 3.1).fract() - 0.5) * (0.5 + way)
            + 3.0 * (m.t * 3.0 + own * 20.0).sin();
        let alpha = (1.0 - way) * (way * 8.0).min(1.0);
        pen.circle(x, from.1 - way * 60.0, 1.0, Ink::Flat(colour, alpha));
    }
}

/// A four-pointed star of light.
fn star(pen: &mut Pen, x: f32, y: f32, size: f32, ink: Ink) {
    let thin = size * 0.16;
    pen.shape(
        &[
            (x, y - size),
            (x + thin, y - thin),
            (x + size, y),
            (x + thin, y + thin),
            (x, y + size),
            (x - thin, y + thin),
            (x - size, y),
            (x - thin, y - thin),
        ],
        ink,
    );
}

/// Glints that come and go at shiny points.
pub(super) fn glints(pen: &mut Pen, m: &Moment, places: &[(f32, f32)]) {
    for ((x, y), own) in places.iter().zip(0_u8..) {
        let at = (m.t * 0.4 + f32::from(own) * 0.37 + f32::from(m.nth) * 0.21).fract();
        let shine = (1.0 - ((at - 0.5) * 6.0).abs()).max(0.0);
        if shine > 0.02 {
            star(pen, *x, *y, 7.0 * shine, Ink::Flat(Rgb::WHITE, 0.9 * shine));
        }
    }
}

/// Glitter from a thing that has just opened.
pub(super) fn burst(pen: &mut Pen, look: &Look, m: &Moment, from: (f32, f32), open: f32) {
    let colours = [look.lamp, look.trim, Rgb::WHITE];
    for (n, colour) in (0..12_u8).zip(colours.iter().cycle()) {
        let own = f32::from(n) * 0.618_034;
        let way = (m.t * 0.45 + own * 3.0).fract();
        let angle = -1.57 + 1.9 * ((own * 2.7).fract() - 0.5);
        let far = 10.0 + way * 40.0;
        let alpha = open * (1.0 - way) * (way * 6.0).min(1.0);
        let (x, y) = (from.0 + far * angle.cos(), from.1 + far * angle.sin());
        star(
            pen,
            x,
            y,
            2.2 + 1.6 * own.fract(),
            Ink::Flat(*colour, alpha),
        );
    }
}

/// Rising musical notes.
pub(super) fn notes(pen: &mut Pen, look: &Look, m: &Moment, from: (f32, f32)) {
    for n in 0..3_u8 {
        let own = f32::from(n) / 3.0;
        let way = (m.t * 0.28 + own).fract();
        let x = from.0 + 26.0 * (own - 0.33) + 4.0 * (m.t * 2.0 + own * 7.0).sin() + way * 10.0;
        let y = from.1 - way * 24.0;
        let ink = Ink::Flat(look.accent(n), (way * (1.0 - way) * 6.0).min(1.0));
        pen.ellipse(x, y, 3.0, 2.3, ink);
        pen.stroke(
            &[(x + 2.6, y), (x + 2.6, y - 10.0), (x + 6.0, y - 7.0)],
            1.2,
            ink,
        );
    }
}

impl Look {
    fn accent(&self, nth: u8) -> Rgb {
        if nth.is_multiple_of(2) {
            self.dark
        } else {
            self.trim
        }
    }
}
