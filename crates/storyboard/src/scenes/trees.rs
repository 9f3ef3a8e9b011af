//! Woods and copses: pines and round trees in groups along the crests of the land, by season. Single trees
//! that the words name are subjects, not these.

use super::noise::value;
use super::pen::{Ink, Pen, smooth as curve};
use super::{Plane, Stage, rng::Rng};
use crate::colour::Rgb;

/// The crest of a piece of ground: stage row by stage column.
pub(super) type Crest = Box<dyn Fn(f32) -> f32>;

/// A pine with its foot at `(x, foot)`, `tall` pixels high, with `snow` on its tiers where it lies.
fn pine(
    pen: &mut Pen,
    (x, foot, tall): (f32, f32, f32),
    colour: Rgb,
    snow: Option<Rgb>,
    rng: &mut Rng,
) {
    pen.rect(
        x - tall * 0.02,
        foot - tall * 0.15,
        tall * 0.04,
        tall * 0.16,
        colour,
    );
    let tiers = 6;
    for tier in 0..tiers {
        let share = tier as f32 / tiers as f32;
        let (y, half) = (
            foot - tall * (0.08 + 0.74 * share),
            tall * 0.21 * (1.0 - share * 0.86),
        );
        let lean = rng.signed() * tall * 0.012;
        let tip = y - tall * 0.27 * (1.0 - share * 0.35);
        pen.shape(
            &[
                (x + lean, tip),
                (x + half, y),
                (x + half * 0.3, y - tall * 0.02),
                (x, y + tall * 0.012),
                (x - half * 0.3, y - tall * 0.02),
                (x - half, y),
            ],
            colour,
        );
        if let Some(white) = snow {
            let low = y - (y - tip) * 0.3;
            pen.shape(
                &[
                    (x + lean, tip),
                    (x + half * 0.7, low),
                    (x + half * 0.1, low - (y - tip) * 0.12),
                    (x - half * 0.25, low - (y - tip) * 0.02),
                    (x - half * 0.68, low),
                ],
                Ink::Flat(white, 0.85),
            );
        }
    }
}

/// A wood of pines along a crest.
pub(super) fn pines(stage: &mut Stage<'_>, depth: f32, crest: &Crest, count: usize, size: f32) {
    let (unit, palette) = (stage.unit, stage.palette);
    stage.rng.part("pines", depth);
    let mut rng = stage.rng.fork("pines");
    let mut tone = palette.lit(Rgb::hex(0x2b_4a3c).tinted(palette.ground, 0.3), 0.12);
    if stage.reading.is_snowy() {
        tone = tone.mix(palette.lit(Rgb::hex(0xdf_e8f0), 0.2), 0.25);
    }
    let snow = (stage.reading.is_snowy()).then(|| palette.lit(Rgb::hex(0xf2_f6fb), 0.15));
    let (top, bottom) = (crest(0.0) - unit * (size + 0.2), crest(0.0) + unit * 0.3);
    let seed = rng.next();
    stage.plane(
        Plane {
            brush: 0.05,
            ..Plane::new(depth, top, bottom)
        },
        |pen, left, right| {
            let count = (count as f32 * (right - left) / (unit * 1.6)) as usize;
            for _ in 0..count {
                let x = rng.range(left, right);
                // They stand in groups.
                if value(seed, x / (unit * 0.22), 0.0) < -0.05 {
                    continue;
                }
                let tall = unit * size * rng.range(0.45, 1.0);
                let shade = tone.lift(rng.signed() * 0.018);
                pine(
                    pen,
                    (x, crest(x) + unit * 0.012, tall),
                    shade,
                    snow,
                    &mut rng,
                );
            }
        },
    );
}

/// A few large dark pines at the sides of the frame, nearer than everything.
pub(super) fn pines_edge(stage: &mut Stage<'_>) {
    let (unit, width, height) = (stage.unit, stage.width, stage.height);
    stage.rng.part("pines_edge", 0.0);
    let mut rng = stage.rng.fork("edge");
    let tone = stage
        .palette
        .lit(Rgb::hex(0x1e_332c).tinted(stage.palette.ground, 0.2), 0.0)
        .lift(-0.05);
    let side = rng.chance(0.5);
    let white = stage.palette.lit(Rgb::hex(0xd8_e2ec), 0.0);
    let snow = (stage.reading.is_snowy()).then_some(white);
    stage.plane(Plane::new(1.35, height * 0.2, height * 1.2), |pen, _, _| {
        for n in 0..4 {
            let inward = width * (-0.05 + 0.065 * n as f32) + rng.signed() * unit * 0.02;
            let x = if side { inward } else { width - inward };
            let tall = unit * (0.78 - 0.15 * n as f32) * rng.range(0.85, 1.1);
            let shade = tone.lift(rng.signed() * 0.012);
            pine(pen, (x, height * 1.08, tall), shade, snow, &mut rng);
        }
    });
}

/// Round trees in loose groups along a crest.
pub(super) fn copses(stage: &mut Stage<'_>, depth: f32, crest: &Crest, size: f32, distance: f32) {
    let (unit, palette) = (stage.unit, stage.palette);
    stage.rng.part("copses", depth);
    let mut rng = stage.rng.fork("copse");
    let seed = rng.next();
    let tone = palette.lit(palette.leaf.lift(-0.07).saturate(0.9), distance);
    let light = palette
        .lit(palette.leaf.lift(0.02), distance)
        .mix(palette.glow, 0.14);
    let other = palette.lit(palette.blossom.lift(-0.03), distance);
    let snow = (stage.reading.is_snowy()).then(|| palette.lit(Rgb::hex(0xf2_f6fb), distance));
    let (top, bottom) = (crest(0.0) - unit * (size + 0.25), crest(0.0) + unit * 0.35);
    stage.plane(
        Plane {
            brush: 0.06,
            ..Plane::new(depth, top, bottom)
        },
        |pen, left, right| {
            let count = ((right - left) / (unit * size * 0.5)) as usize;
            for _ in 0..count {
                let x = rng.range(left, right);
                if value(seed, x / (unit * 0.3), 0.0) < 0.12 {
                    continue;
                }
                let r = unit * size * rng.range(0.3, 0.6);
                let y = crest(x) + unit * size * 0.15 - r * 0.7;
                pen.rect(x - r * 0.09, y, r * 0.18, r * 1.2, tone.lift(-0.05));
                let blob: Vec<(f32, f32)> = (0..9)
                    .map(|n| n as f32 / 9.0 * std::f32::consts::TAU)
                    .map(|a| (a, r * rng.range(0.85, 1.15)))
                    .map(|(a, r)| (x + r * a.cos(), y + r * 1.1 * a.sin()))
                    .collect();
                let leaves = if rng.chance(0.3) { other } else { tone };
                pen.fill(curve(&blob), leaves);
                let (across, down) = (r * 0.55, r * 0.5);
                match snow {
                    Some(white) => pen.ellipse(x, y - r * 0.72, across * 1.25, down * 0.7, white),
                    None => {
                        let ink = Ink::Flat(light, 0.3);
                        pen.ellipse(x - r * 0.2, y - r * 0.35, across, down, ink);
                    }
                }
            }
        },
    );
}
