//! The city: three rows of houses, windows that light up, signs, and a wet street.

use super::super::colour::Rgb;
use super::super::lexicon::Weather;
use super::super::stage::Element;
use super::pen::{Ink, Pen};
use super::rng::Rng;
use super::sky;
use super::water::Water;
use super::{Plane, Stage, cast};

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
    let street = stage.height * if stage.tall() { 0.76 } else { 0.72 };
    let orb = sky::sky(stage, street * 0.92);
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
            cast::fliers(stage, street * 0.62, orb);
        }
        let row = Row {
            depth,
            foot: street + unit * 0.004,
            tall: (tall.0 * unit * up, tall.1 * unit * up),
            wide: (wide.0 * unit, wide.1 * unit),
            distance,
            signs: index > 0,
        };
        buildings(stage, row);
    }
    street_level(stage, street);
    let ground = street + (stage.height - street) * 0.36;
    cast::walkers(stage, 1.0, &move |_| ground);
    lamps(stage, street);
}

fn buildings(stage: &mut Stage<'_>, row: Row) {
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
            roof(pen, x, top, wide, face, &mut rng);
            windows(pen, &palette, (x, top, wide, tall), row, face, &mut rng);
            if row.signs && (neon || (night && rng.chance(0.25))) {
                let colour = signs[rng.below(signs.len())];
                sign(pen, (x, top, wide, tall), unit, colour, &mut rng);
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

fn street_level(stage: &mut Stage<'_>, street: f32) {
    let (unit, palette) = (stage.unit, stage.palette);
    let wet = stage.reading.has(Weather::Rain) || stage.reading.has(Weather::Storm);
    let bottom = stage.height * 1.12;
    let asphalt = palette.lit(Rgb::hex(0x5a_5f6c), 0.08);
    let near = asphalt.lift(-0.1);
    let night = palette.is_dark();
    let shine = if wet {
        0.34
    } else if night {
        0.68
    } else {
        0.86
    };
    stage.elements.push(Element::Water(Water {
        horizon: street,
        bottom,
        depth: 0.55,
        far: asphalt.lift(0.03),
        near,
        cover: (shine, (shine + 0.16).min(0.95)),
        reach: unit * 0.006,
        rate: if wet { 2.0 } else { 0.0 },
    }));
    markings(stage, street);
}

/// The kerb and the dashed line of the road.
fn markings(stage: &mut Stage<'_>, street: f32) {
    let (unit, palette) = (stage.unit, stage.palette);
    let kerb = palette.lit(Rgb::hex(0x8c_8f98), 0.1);
    let line = palette.lit(Rgb::hex(0xe8_e2d0), 0.1);
    let height = stage.height;
    stage.plane(
        Plane {
            brush: 0.0,
            ..Plane::new(0.6, street - 4.0, street + unit * 0.03)
        },
        |pen, left, right| {
            pen.rect(
                left,
                street - unit * 0.004,
                right - left,
                unit * 0.011,
                kerb.lift(-0.12),
            );
            pen.rect(
                left,
                street - unit * 0.006,
                right - left,
                unit * 0.006,
                kerb,
            );
        },
    );
    stage.plane(
        Plane {
            brush: 0.0,
            ..Plane::new(0.9, street, height * 1.1)
        },
        |pen, left, right| {
            let y = street + (height - street) * 0.66;
            let mut x = left;
            while x < right {
                let (w, h) = (unit * 0.13, unit * 0.011);
                pen.shape(
                    &[
                        (x + w * 0.06, y),
                        (x + w, y),
                        (x + w * 0.96, y + h),
                        (x, y + h),
                    ],
                    Ink::Flat(line, 0.5),
                );
                x += unit * 0.27;
            }
        },
    );
}

fn lamps(stage: &mut Stage<'_>, street: f32) {
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
