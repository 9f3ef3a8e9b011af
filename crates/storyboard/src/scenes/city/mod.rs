//! The city: three rows of houses, windows that light up, signs, and a wet street.

mod street;

use super::pen::{Ink, Pen};
use super::rng::Rng;
use super::sky;
use super::{Plane, Stage, cast};
use crate::colour::Rgb;
use crate::subject::Stance;
use street::{Lane, Street};

/// One row of buildings.
#[derive(Clone, Copy, Debug)]
struct Row {
    depth: f32,
    foot: f32,
    tall: (f32, f32),
    wide: (f32, f32),
    distance: f32,
    signs: bool,
}

pub(super) fn city(stage: &mut Stage<'_>) {
    let seats = cast::standing(stage);
    let walkers = stage.reading.roles.iter().any(|role| {
        role.subject.facts().stance != Stance::Flies && street::lane(role.subject) == Lane::Pavement
    });
    let walkers = cast::paved(stage).unwrap_or(walkers);
    stage.paved = walkers;
    let street = Street::of(stage, walkers);
    let orb = sky::sky(stage, street.foot * 0.92);
    let unit = stage.unit;
    let up = if stage.tall() { 1.3 } else { 1.0 };
    let rows = [
        (0.15, (0.28, 0.6), (0.07, 0.13), 0.8),
        (0.32, (0.24, 0.5), (0.1, 0.18), 0.52),
        (0.55, (0.16, 0.42), (0.14, 0.26), 0.2),
    ];
    for (index, (depth, tall, wide, distance)) in rows.into_iter().enumerate() {
        if index == 2 {
            sky::bloom(stage, orb, 0.45);
            cast::fliers(stage, street.foot * 0.86, orb);
        }
        let row = Row {
            depth,
            foot: street.foot + unit * 0.004,
            tall: (tall.0 * unit * up, tall.1 * unit * up),
            wide: (wide.0 * unit, wide.1 * unit),
            distance,
            signs: index > 0,
        };
        buildings(stage, row);
    }
    street.lay(stage);
    let height = stage.height;
    for (lane, depth) in [
        (Lane::House, 0.6),
        (Lane::Road, 0.85),
        (Lane::Pavement, 1.0),
    ] {
        let row = street.row(lane, height);
        let here = |subject| street::lane(subject) == lane;
        cast::stand(stage, &seats, &here, depth, &|_| row);
    }
    lamps(stage, street.foot);
}

fn buildings(stage: &mut Stage<'_>, row: Row) {
    stage.rng.part("row", row.depth);
    let (unit, palette) = (stage.unit, stage.palette);
    let neon = stage.reading.neon;
    let mut rng = stage.rng.fork("row");
    let night = palette.is_dark();
    let signs = [
        palette.accent,
        palette.second_accent,
        Rgb::hex(0xff_4fa0),
        Rgb::hex(0x37_d6e0),
        palette.lamp,
    ];
    let plane = Plane {
        brush: 0.05,
        ..Plane::new(
            row.depth,
            row.foot - row.tall.1 - unit * 0.15,
            row.foot + 2.0,
        )
    };
    let wall = palette.wall;
    let snow = (stage.reading.is_snowy()).then(|| palette.lit(Rgb::hex(0xf2_f6fb), row.distance));
    stage.plane(plane, |pen, left, right| {
        let mut x = left - rng.range(0.0, row.wide.0);
        while x < right {
            let (wide, tall) = (
                rng.range(row.wide.0, row.wide.1),
                rng.range(row.tall.0, row.tall.1),
            );
            let tone = wall
                .lift(rng.signed() * 0.07)
                .mix(palette.sand, rng.unit() * 0.3);
            let dim = if night { 0.72 } else { 1.0 };
            let face = palette.lit(tone, row.distance).mix(Rgb::BLACK, 1.0 - dim);
            let top = row.foot - tall;
            let haze = face.mix(palette.haze, 0.3 + 0.25 * row.distance);
            pen.rect(
                x,
                top,
                wide,
                tall + 2.0,
                Ink::down(top, face, row.foot, haze),
            );
            pen.rect(
                x + wide * 0.72,
                top,
                wide * 0.28,
                tall,
                Ink::Flat(Rgb::BLACK, 0.1),
            );
            // Lights and signs by night move no house.
            let mut own = rng.fork("house");
            roof(pen, x, top, wide, face, &mut own);
            if let Some(white) = snow {
                let thick = unit * 0.006;
                pen.rect(x - 1.0, top - thick, wide + 2.0, thick * 1.8, white);
            }
            windows(pen, &palette, (x, top, wide, tall), row, face, &mut own);
            if row.signs && (neon || (night && own.chance(0.25))) {
                let colour = signs[own.below(signs.len())];
                sign(pen, (x, top, wide, tall), unit, colour, &mut own);
            }
            x += wide + unit * rng.range(-0.004, 0.012);
        }
    });
}

fn roof(pen: &mut Pen, x: f32, top: f32, wide: f32, face: Rgb, rng: &mut Rng) {
    match rng.below(4) {
        0 => {
            pen.rect(
                x + wide * 0.2,
                top - wide * 0.16,
                wide * 0.6,
                wide * 0.17,
                face,
            );
            pen.rect(
                x + wide * 0.49,
                top - wide * 0.5,
                wide * 0.025,
                wide * 0.36,
                face,
            );
        }
        1 => pen.rect(
            x + wide * 0.12,
            top - wide * 0.1,
            wide * 0.22,
            wide * 0.11,
            face,
        ),
        2 => pen.shape(
            &[
                (x, top + 0.5),
                (x + wide, top + 0.5),
                (x + wide, top - wide * 0.14),
            ],
            face,
        ),
        _ => {
            pen.rect(
                x + wide * 0.6,
                top - wide * 0.12,
                wide * 0.14,
                wide * 0.13,
                face,
            );
            pen.rect(
                x + wide * 0.25,
                top - wide * 0.2,
                wide * 0.02,
                wide * 0.2,
                face,
            );
        }
    }
}

fn windows(
    pen: &mut Pen,
    palette: &super::palette::Palette,
    (x, top, wide, tall): (f32, f32, f32, f32),
    row: Row,
    face: Rgb,
    rng: &mut Rng,
) {
    let columns = (wide / (row.wide.0 * 0.17)).floor().max(2.0) as usize;
    let cell = wide / (columns as f32 + 0.6);
    let (w, h) = (cell * 0.52, cell * rng.range(0.5, 0.85));
    let storeys = (tall / (h * 1.9)).floor().max(1.0) as usize;
    let night = palette.is_dark();
    let share = if night { 0.42 } else { 0.0 };
    let dark = if night {
        face.lift(-0.05)
    } else {
        face.mix(palette.sky_middle, 0.3).lift(-0.06)
    };
    let warm = palette.lamp.mix(palette.haze, row.distance * 0.55);
    for storey in 0..storeys {
        for column in 0..columns {
            let (wx, wy) = (
                x + cell * (0.55 + column as f32),
                top + h * (0.9 + storey as f32 * 1.9),
            );
            if wy + h > row.foot - h {
                continue;
            }
            let lit = rng.chance(share);
            let tone = if lit {
                warm.lift(rng.signed() * 0.05 - 0.03)
            } else {
                dark
            };
            pen.rect(wx, wy, w, h, tone);
        }
    }
}

fn sign(
    pen: &mut Pen,
    (x, top, wide, tall): (f32, f32, f32, f32),
    unit: f32,
    colour: Rgb,
    rng: &mut Rng,
) {
    let bright = colour.mix(Rgb::WHITE, 0.35);
    let upright = rng.chance(0.6);
    let (w, h) = if upright {
        (wide * 0.14, tall * rng.range(0.2, 0.4))
    } else {
        (wide * 0.6, wide * 0.13)
    };
    let sx = x + rng.range(0.05, 0.8) * (wide - w);
    let sy = top + tall * rng.range(0.25, 0.62);
    pen.glow(sx + w * 0.5, sy + h * 0.5, w.max(h) * 1.1, colour, 0.4);
    pen.rect(
        sx - unit * 0.003,
        sy - unit * 0.003,
        w + unit * 0.006,
        h + unit * 0.006,
        colour.lift(-0.2),
    );
    pen.rect(sx, sy, w, h, Ink::Flat(colour, 0.85));
    let count = if upright {
        (h / w).max(2.0) as usize
    } else {
        (w / h).max(2.0) as usize
    };
    for n in 0..count {
        let share = (n as f32 + 0.5) / count as f32;
        let (cx, cy) = if upright {
            (sx + w * 0.5, sy + h * share)
        } else {
            (sx + w * share, sy + h * 0.5)
        };
        let r = w.min(h) * 0.26;
        match rng.below(3) {
            0 => pen.rect(cx - r, cy - r, r * 2.0, r * 0.6, bright),
            1 => pen.circle(cx, cy, r * 0.8, bright),
            _ => pen.rect(cx - r * 0.3, cy - r, r * 0.6, r * 2.0, bright),
        }
    }
}

fn lamps(stage: &mut Stage<'_>, street: f32) {
    stage.rng.part("lamps", 0.0);
    let (unit, palette, height, width) = (stage.unit, stage.palette, stage.height, stage.width);
    let mut rng = stage.rng.fork("lamps");
    let tone = palette.lit(Rgb::hex(0x22_242c), 0.0);
    let lit = palette.is_dark();
    let plane = Plane {
        brush: 0.0,
        ..Plane::new(1.25, street - unit * 0.75, height * 1.2)
    };
    let first = if rng.chance(0.5) { 0.06 } else { 0.94 };
    stage.plane(plane, |pen, _, _| {
        for x in [
            first * width,
            (1.0 - first) * width
                + if first < 0.5 {
                    width * 0.55
                } else {
                    -width * 0.55
                },
        ] {
            let (top, arm) = (
                street - unit * 0.5,
                if x < width * 0.5 { 1.0 } else { -1.0 },
            );
            pen.rect(
                x - unit * 0.006,
                top,
                unit * 0.012,
                height * 1.2 - top,
                tone,
            );
            pen.stroke(
                &[
                    (x, top),
                    (x + arm * unit * 0.03, top - unit * 0.025),
                    (x + arm * unit * 0.1, top - unit * 0.03),
                ],
                unit * 0.009,
                tone,
            );
            let bulb = (x + arm * unit * 0.1, top - unit * 0.018);
            pen.ellipse(
                bulb.0,
                bulb.1 - unit * 0.008,
                unit * 0.026,
                unit * 0.01,
                tone,
            );
            if lit {
                pen.glow(bulb.0, bulb.1, unit * 0.2, palette.lamp, 0.42);
                pen.ellipse(
                    bulb.0,
                    bulb.1,
                    unit * 0.018,
                    unit * 0.008,
                    palette.lamp.mix(Rgb::WHITE, 0.4),
                );
            }
        }
    });
}
