//! The desert: table mountains far away, dunes with sharp crests, lit from one side.

use super::heavens::Orb;
use super::noise::value;
use super::sky;
use super::trees::Crest;
use super::{Plane, Stage, cast};
use crate::colour::{Rgb, smooth};
use crate::lexicon::Hour;

pub(super) fn desert(stage: &mut Stage<'_>) {
    let horizon = stage.height * if stage.tall() { 0.56 } else { 0.58 };
    let orb = sky::sky(stage, horizon);
    mesas(stage, horizon);
    sky::bloom(stage, orb, 0.6);
    cast::fliers(stage, horizon, orb);
    for (near, share) in [(0.0, 0.05), (0.35, 0.17), (0.7, 0.34)] {
        let base = horizon + (stage.height - horizon) * share;
        let _skyline = dune(stage, base, near, orb);
    }
    let base = horizon + (stage.height - horizon) * 0.56;
    let crest = dune(stage, base, 1.0, orb);
    cast::walkers_on(stage, &*crest);
}

fn mesas(stage: &mut Stage<'_>, horizon: f32) {
    stage.rng.part("mesas", 0.0);
    let (unit, palette) = (stage.unit, stage.palette);
    let mut rng = stage.rng.fork("mesa");
    let tone = palette.lit(palette.sand.mix(palette.rock, 0.4).lift(-0.08), 0.72);
    stage.plane(
        Plane::new(0.16, horizon - unit * 0.35, horizon + unit * 0.1),
        |pen, left, right| {
            for _ in 0..5 {
                let (x, half) = (rng.range(left, right), unit * rng.range(0.06, 0.2));
                let tall = unit * rng.range(0.05, 0.14);
                let (top, foot) = (horizon - tall, horizon + unit * 0.05);
                pen.shape(
                    &[
                        (x - half * 1.35, foot),
                        (x - half * 0.85, top + tall * 0.25),
                        (x - half * 0.8, top),
                        (x + half * 0.7, top - tall * 0.04),
                        (x + half * 0.78, top + tall * 0.3),
                        (x + half * 1.3, foot),
                    ],
                    tone.lift(rng.signed() * 0.02),
                );
            }
        },
    );
}

/// A dune with a sharp crest line, lit on one side; answers its skyline.
fn dune(stage: &mut Stage<'_>, base: f32, near: f32, orb: Orb) -> Crest {
    stage.rng.part("dune", near);
    let seed = stage.rng.next();
    let (unit, palette) = (stage.unit, stage.palette);
    let depth = 0.3 + 0.7 * near;
    let distance = 0.55 * (1.0 - near);
    let wide = unit * (0.5 + 0.5 * near);
    let swell = unit * (0.06 + 0.09 * near);
    let crest = move |x: f32| {
        let long = value(seed, x / wide, 0.0);
        base - swell * (1.0 - long.abs() * 1.4)
            + swell * 0.3 * value(seed ^ 1, x / (wide * 2.2), 0.0)
    };
    let warm = if palette.hour == Hour::Day {
        0.04
    } else {
        0.16
    };
    let lit = palette
        .lit(palette.sand.lift(0.05), distance)
        .mix(palette.glow, warm);
    let shade = palette
        .lit(palette.sand.lift(-0.14).saturate(0.9), distance)
        .mix(palette.sky_top, 0.14);
    let side = if orb.x > stage.width * 0.5 { 1.0 } else { -1.0 };
    let bottom = stage.height * 1.2;
    let plane = Plane {
        brush: 0.035,
        ..Plane::new(depth, base - swell * 1.5, bottom)
    };
    stage.field(plane, |x, y| {
        let below = y - crest(x);
        if below < -1.0 {
            return (lit, 0.0);
        }
        // The shaded side runs down from each crest in a curve.
        let run = x + side * below * 0.9 + (below / unit * 9.0).sin() * unit * 0.012;
        let lean = crest(run + 2.0) - crest(run - 2.0);
        let face = smooth(-0.5, 0.5, lean * side * 1.4);
        let ripple = ((below * 1.0
            + value(seed ^ 4, x / (unit * 0.2), y / (unit * 0.07)) * unit * 0.03)
            / (unit * 0.007))
            .sin()
            * 0.018
            * near
            * face;
        let colour = shade.mix_plain(lit, face);
        let deep = smooth(0.0, unit * 0.5, below) * 0.25;
        let tone = colour.mix_plain(shade, deep);
        let tone = Rgb {
            r: tone.r + ripple,
            g: tone.g + ripple,
            b: tone.b + ripple,
        };
        (tone, (below + 0.5).clamp(0.0, 1.0))
    });
    Box::new(crest)
}
