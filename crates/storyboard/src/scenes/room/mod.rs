//! A quiet room: a wall, a window onto the hour and weather outside, curtains, a sill for what is small,
//! and a floor for everybody else.

mod floor;

use super::layer::Sway;
use super::particles::{Mark, Particles};
use super::pen::{Ink, Pen};
use super::sky;
use super::wash::Meeting;
use super::{Plane, Stage, cast, land, trees};
use crate::colour::{Rgb, smooth};
use crate::lexicon::{Hour, Weather};

/// The opening in the wall.
#[derive(Clone, Copy, Debug)]
struct Window {
    left: f32,
    top: f32,
    right: f32,
    bottom: f32,
}

/// Width of a curtain, in stage units.
const CURTAIN: f32 = 0.17;

pub(super) fn room(stage: &mut Stage<'_>) {
    let (unit, width, height) = (stage.unit, stage.width, stage.height);
    let floor = floor::needed(stage).then_some(height * if stage.tall() { 0.74 } else { 0.7 });
    let (sill, half, tall) = match floor {
        Some(line) => (line - unit * 0.24, unit * 0.3, unit * 0.36),
        None => {
            let sill = height * if stage.tall() { 0.72 } else { 0.76 };
            (sill, unit * 0.52, (unit * 0.66).min(sill * 0.88))
        }
    };
    let half = half.min(width * 0.4);
    let middle = width * (0.5 + stage.rng.signed() * 0.05);
    let window = Window {
        left: middle - half,
        top: sill - tall,
        right: middle + half,
        bottom: sill,
    };
    let orb = sky::sky(stage, sill);
    let far = land::meadow(stage, 0.25, sill - unit * 0.1, 0.05, 0.55);
    trees::pines(stage, 0.25, &far, 30, 0.06);
    sky::bloom(stage, orb, 0.5);
    outside(stage, window);
    let ground = sill + unit * 0.022;
    let paints = colours(stage);
    if let Some(line) = floor {
        stage.nearness *= floor::NEARNESS;
        wall(stage, window, paints);
        pot(stage, window, ground, false);
        curtains(stage, window);
        floor::floor(stage, line, paints.0, paints.1);
        floor::furniture(stage, line, paints.0);
        cast::fliers(stage, line * 0.8, orb);
        let stand = line + (height - line) * 0.46;
        cast::walkers(stage, 1.0, &move |_| stand);
    } else {
        cast::fliers(stage, sill * 0.9, orb);
        wall(stage, window, paints);
        let mut seats = cast::standing(stage);
        // Between the curtains, which hang before the sill.
        let inset = unit * CURTAIN * 0.4;
        let sides = (window.left + inset, window.right - inset);
        cast::gather(stage, &mut seats, sides);
        cast::stand(stage, &seats, &|_| true, 0.6, &|_| ground);
        if seats.len() < 2 {
            // Beside the person who sits there.
            let right = seats.first().is_some_and(|seat| seat.is_left_of(middle));
            pot(stage, window, ground, right);
        }
        curtains(stage, window);
    }
    light(stage, window);
}

fn outside(stage: &mut Stage<'_>, window: Window) {
    stage.rng.part("outside", 0.0);
    let area = [
        window.left - 20.0,
        window.top - 20.0,
        window.right + 20.0,
        window.bottom + 4.0,
    ];
    let share =
        (window.right - window.left) * (window.bottom - window.top) / (stage.unit * stage.unit);
    let wet = stage.reading.has(Weather::Rain) || stage.reading.has(Weather::Storm);
    let (mark, density) = if wet {
        (Mark::Rain, 700.0)
    } else if stage.reading.has(Weather::Snowfall) {
        (Mark::Snow, 400.0)
    } else {
        return;
    };
    let count = (density * share) as usize;
    let colour = stage.palette.haze.mix(Rgb::WHITE, 0.5);
    let fall = Particles::new(mark, count, area, stage.unit, colour, &mut stage.rng);
    stage.particles(fall.at_depth(0.4).in_wind(0.06));
}

/// Paper and woodwork, in the room's light.
pub(super) fn colours(stage: &mut Stage<'_>) -> (Rgb, Rgb) {
    stage.rng.part("paper", 0.0);
    const PAPERS: [u32; 4] = [0xc8_a58c, 0x9a_a68c, 0x8c_98a8, 0xb8_8c80];
    let palette = stage.palette;
    let paper = Rgb::hex(PAPERS[stage.rng.below(4)]).tinted(palette.wall, 0.3);
    let glow = if palette.is_dark() {
        palette.lamp
    } else {
        palette.glow
    };
    let dim = if palette.is_dark() { 0.45 } else { 0.72 };
    let lamp = palette.light.mix(Rgb::WHITE, 0.35);
    let wall = paper.under(lamp).mix(Rgb::BLACK, 1.0 - dim).mix(glow, 0.1);
    let wood = Rgb::hex(0xe8_ddcc)
        .under(lamp)
        .mix(Rgb::BLACK, (1.0 - dim) * 0.6);
    (wall, wood)
}

fn wall(stage: &mut Stage<'_>, window: Window, (near, wood): (Rgb, Rgb)) {
    let (unit, width, height) = (stage.unit, stage.width, stage.height);
    let dark = near.lift(-0.14);
    let accent = stage.palette.accent.mix(near, 0.4);
    let plane = Plane {
        brush: 0.05,
        ..Plane::new(0.6, -unit * 0.2, height * 1.2)
    };
    let Window {
        left,
        top,
        right,
        bottom,
    } = window;
    stage.plane(plane, |pen, from, to| {
        let (start, end) = (-unit * 0.2, height * 1.2);
        let ink = Ink::down(0.0, dark, bottom, near);
        pen.rect(from, start, left - from, end - start, ink);
        pen.rect(right, start, to - right, end - start, ink);
        pen.rect(left - 1.0, start, right - left + 2.0, top - start, ink);
        let below = Ink::down(bottom, near, height, dark);
        pen.rect(left - 1.0, bottom, right - left + 2.0, end - bottom, below);
        frame(pen, window, unit, wood);
        let space = width - right;
        let picture = (
            right + space * 0.3,
            top + unit * 0.06,
            space * 0.4,
            unit * 0.2,
        );
        if picture.2 > unit * 0.1 {
            let (x, y, w, h) = picture;
            let m = unit * 0.012;
            pen.rect(x, y, w, h, wood.lift(-0.2));
            pen.rect(x + m, y + m, w - m * 2.0, h - m * 2.0, near.lift(0.14));
            pen.circle(x + w * 0.6, y + h * 0.42, w.min(h) * 0.16, accent);
        }
    });
}

/// The window's bars and its sill.
fn frame(pen: &mut Pen, window: Window, unit: f32, wood: Rgb) {
    let Window {
        left,
        top,
        right,
        bottom,
    } = window;
    let (bar, wide, tall) = (unit * 0.026, right - left, bottom - top);
    let bars = [
        (left - bar, top - bar, wide + bar * 2.0, bar),
        (left - bar, top - bar, bar, tall + bar),
        (right, top - bar, bar, tall + bar),
        ((left + right) * 0.5 - bar * 0.3, top, bar * 0.6, tall),
        (left, top + tall * 0.36, wide, bar * 0.5),
    ];
    for (x, y, w, h) in bars {
        let edge = (h * 0.2).min(2.0);
        pen.rect(x, y, w, h, wood);
        pen.rect(x, y + h - edge, w, edge, Ink::Flat(Rgb::BLACK, 0.2));
    }
    let (board, out) = (unit * 0.05, unit * 0.09);
    pen.rect(left - out, bottom, wide + out * 2.0, board, wood.lift(0.03));
    pen.rect(
        left - out,
        bottom + board * 0.72,
        wide + out * 2.0,
        board * 0.28,
        wood.lift(-0.12),
    );
    let under = bottom + board;
    let shadow = [
        (0.0, under, Rgb::BLACK, 0.3),
        (0.0, under + board * 1.6, Rgb::BLACK, 0.0),
    ];
    pen.rect(
        left - out,
        under,
        wide + out * 2.0,
        board * 1.6,
        Ink::Line(shadow),
    );
}

/// A plant in a pot at the left or `right` end of the sill.
fn pot(stage: &mut Stage<'_>, window: Window, ground: f32, right: bool) {
    stage.rng.part("pot", 0.0);
    let (unit, palette) = (stage.unit, stage.palette);
    // Where somebody sits, a pot would stand in the way.
    if !stage.reading.roles.is_empty() {
        return;
    }
    let mut rng = stage.rng.fork("pot");
    let light = palette.light.mix(Rgb::WHITE, 0.3);
    let (clay, leaf) = (
        Rgb::hex(0xb8_6848).under(light),
        Rgb::hex(0x46_7a4c).under(light),
    );
    let x = if right {
        window.right - unit * 0.1
    } else {
        window.left + unit * 0.1
    };
    let sway = Sway {
        reach: unit * 0.004,
        root: ground,
        rate: 0.8,
        bend: 5.0 / unit,
    };
    let plane = Plane {
        sway: Some(sway),
        brush: 0.05,
        ..Plane::new(0.62, ground - unit * 0.36, ground + 4.0)
    };
    stage.plane(plane, |pen, _, _| {
        for n in 0..11 {
            let angle = (n as f32 / 10.0 - 0.5) * 2.3 + rng.signed() * 0.12;
            let long = unit * rng.range(0.12, 0.2);
            let foot = (x, ground - unit * 0.085);
            let tip = (foot.0 + long * angle.sin(), foot.1 - long * angle.cos());
            let side = (angle.cos() * long * 0.13, angle.sin() * long * 0.13);
            let mid = ((foot.0 + tip.0) * 0.5, (foot.1 + tip.1) * 0.5 - long * 0.08);
            pen.fill(
                super::pen::smooth(&[
                    foot,
                    (mid.0 - side.0, mid.1 - side.1),
                    tip,
                    (mid.0 + side.0, mid.1 + side.1),
                ]),
                leaf.lift(rng.signed() * 0.05),
            );
        }
        let w = unit * 0.062;
        pen.shape(
            &[
                (x - w, ground - unit * 0.1),
                (x + w, ground - unit * 0.1),
                (x + w * 0.72, ground),
                (x - w * 0.72, ground),
            ],
            clay,
        );
        pen.rect(
            x - w * 1.1,
            ground - unit * 0.11,
            w * 2.2,
            unit * 0.026,
            clay.lift(0.05),
        );
    });
}

fn curtains(stage: &mut Stage<'_>, window: Window) {
    stage.rng.part("curtains", 0.0);
    let (unit, palette, height) = (stage.unit, stage.palette, stage.height);
    let cloth = palette
        .accent
        .under(palette.light.mix(Rgb::WHITE, 0.4))
        .mix(Rgb::BLACK, 0.15);
    let wide = unit * CURTAIN;
    let top = window.top - unit * 0.07;
    let bottom = (window.bottom + unit * 0.24).min(height * 1.1);
    let sway = Sway {
        reach: unit * 0.004,
        root: top,
        rate: 0.7,
        bend: 3.0 / unit,
    };
    let plane = Plane {
        sway: Some(sway),
        brush: 0.05,
        ..Plane::new(0.75, top - unit * 0.04, bottom)
    };
    stage.plane(plane, |pen, _, _| {
        let rail = palette.lit(Rgb::hex(0x4a_3a30), 0.0);
        pen.rect(
            window.left - wide * 1.1,
            top - unit * 0.012,
            window.right - window.left + wide * 2.2,
            unit * 0.014,
            rail,
        );
        for (from, sign) in [
            (window.left - wide * 0.95, 1.0),
            (window.right + wide * 0.95, -1.0_f32),
        ] {
            for fold in 0..6 {
                let x = from + sign * wide * fold as f32 / 6.0;
                let w = wide / 6.0 * 1.3;
                let tone = cloth.lift(if fold % 2 == 0 { 0.025 } else { -0.045 });
                let flare = w * 0.25;
                let (a, b) = (x, x + sign * w);
                pen.shape(
                    &[
                        (a, top),
                        (b, top),
                        (b + sign * flare, bottom),
                        (a + sign * flare * 0.5, bottom),
                    ],
                    tone,
                );
            }
        }
    });
}

/// The window's light falling into the room.
fn light(stage: &mut Stage<'_>, window: Window) {
    stage.rng.part("dust", 0.0);
    let (unit, palette) = (stage.unit, stage.palette);
    let strength = match palette.hour {
        Hour::Night => 0.1,
        Hour::Dusk => 0.18,
        _ => 0.26,
    };
    let (x, y) = (
        (window.left + window.right) * 0.5,
        (window.top + window.bottom) * 0.5,
    );
    stage.wash(0.6, Meeting::Light, 0.1, |px, py| {
        let away = ((px - x) * 0.8).hypot(py - y) / (unit * 0.75);
        let share = strength * smooth(1.2, 0.0, away);
        Rgb {
            r: palette.glow.r * share,
            g: palette.glow.g * share,
            b: palette.glow.b * share,
        }
    });
    let area = [
        window.left,
        window.top,
        window.right,
        window.bottom + unit * 0.2,
    ];
    let dust = Particles::new(Mark::Dust, 40, area, unit, palette.orb, &mut stage.rng);
    stage.particles(dust);
}
