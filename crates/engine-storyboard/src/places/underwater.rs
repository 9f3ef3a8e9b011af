//! Under water: light from above, the sea bed, kelp in the current, fish and bubbles.

use super::{cast, particles};
use crate::lexicon::Hour;
use crate::raster::colour::{Rgb, smooth};
use crate::raster::layer::Sway;
use crate::raster::noise::{cloudy, value};
use crate::raster::particles::ParticleKind;
use crate::raster::pen::{Ink, smooth as curve};
use crate::raster::wash::WashBlend;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder};
use crate::subject::Subject;

pub(super) fn paint_underwater(stage: &mut SceneBuilder<'_>) {
    let (unit, width, height) = (stage.unit, stage.width, stage.height);
    let mut palette = stage.palette;
    let dim = match palette.hour {
        Hour::Night => 0.42,
        Hour::Dusk => 0.65,
        _ => 1.0,
    };
    let base = Rgb::hex(0x1a_6e96).tinted(palette.water, 0.7);
    let [top, middle, deep] = [base.lift(0.32), base, base.lift(-0.22)]
        .map(|colour| colour.mix(Rgb::hex(0x03_0d1e), 1.0 - dim));
    let x = width * stage.rng.range(0.35, 0.65);
    let reach = unit * 0.9;
    stage.add_wash(0.05, WashBlend::Cover, 0.0, |px, py| {
        let v = (py / height).clamp(0.0, 1.0);
        let column = if v < 0.4 {
            top.mix(middle, smooth(-0.1, 0.42, v))
        } else {
            middle.mix(deep, smooth(0.3, 1.0, v))
        };
        let away = (px - x).hypot(py + unit * 0.1) / reach;
        column.mix(top.lift(0.12), 0.7 * (-away * away * 3.0).exp())
    });
    // Water takes the place of the air: everything that follows fades into it and is lit through
    // it.
    palette.haze = middle.mix(deep, 0.35);
    palette.light = Rgb::hex(0x9f_d0d8)
        .mix(middle, 0.35)
        .mix(Rgb::BLACK, 0.6 * (1.0 - dim));
    stage.palette = palette;
    rays(stage, x, dim);
    bed(stage, 0.25, height * 0.8, 0.8);
    // Without any subject a school of fish keeps the scene alive.
    if stage.reading.roles.is_empty() {
        let at = (width * 0.3, height * 0.4);
        cast::place_extra(stage, Subject::School, at, unit * 0.4, 0.5, unit * 0.02);
    }
    cast::place_fliers(stage, height * 0.95, width * 0.2);
    bed(stage, 0.55, height * 0.86, 0.45);
    kelp(stage, 0.6, 0.45, height * 0.97);
    let floor = height * 0.93;
    bed(stage, 1.0, floor, 0.12);
    cast::place_walkers(stage, 1.0, &move |_| floor);
    // In front of the figures and rooted below the frame, as a frame within it.
    kelp(stage, 1.2, 0.05, height * 1.1);
    let area = [0.0, -unit * 0.05, width, height * 1.05];
    let count = (70.0 * width / unit) as usize;
    stage.rng.switch_to("bubbles", 0.0);
    let bubbles = particles(stage, ParticleKind::Bubble, count, area, top.lift(0.15));
    stage.add_particles(bubbles);
}

/// Shafts of light from the surface.
fn rays(stage: &mut SceneBuilder<'_>, x: f32, dim: f32) {
    stage.rng.switch_to("rays", 0.0);
    let (unit, height) = (stage.unit, stage.height);
    let seed = stage.rng.next();
    let colour = Rgb::hex(0xb8_eef0);
    for (depth, salt) in [(0.2, 0), (0.5, 5)] {
        stage.add_wash(depth, WashBlend::Light, 0.35, |px, py| {
            let angle = (px - x).atan2(py + unit * 0.7);
            let beam = smooth(
                0.0,
                0.8,
                value(seed ^ salt, angle * 11.0, 0.0) * 0.7
                    + value(seed ^ salt ^ 1, angle * 27.0, 0.0) * 0.35,
            );
            let share =
                0.3 * dim * beam * smooth(height * 0.95, 0.0, py) * (-angle * angle * 2.0).exp();
            colour.scaled(share)
        });
    }
}

fn bed(stage: &mut SceneBuilder<'_>, depth: f32, base: f32, distance: f32) {
    stage.rng.switch_to("bed", depth);
    let seed = stage.rng.next();
    let (unit, palette) = (stage.unit, stage.palette);
    let tone = palette.lit(palette.sand.lift(-0.05), distance);
    let dark = palette.lit(palette.rock.lift(-0.12), distance);
    let mut rng = stage.rng.fork("coral");
    let crest = move |x: f32| base + unit * 0.05 * cloudy(seed, x / (unit * 0.6), 0.3, 3);
    let bottom = stage.height * 1.2;
    let corals = [
        palette.accent,
        palette.second_accent,
        Rgb::hex(0xe0_7088),
        Rgb::hex(0xe8_a050),
    ];
    let plane = PlaneLayout::new(depth, base - unit * 0.3, bottom).brushed(0.08);
    stage.add_plane(plane, |pen, left, right| {
        let count = ((right - left) / unit * 7.0) as usize;
        for _ in 0..count {
            let x = rng.range(left, right);
            let foot = crest(x) + unit * 0.02;
            let r = unit * (0.02 + 0.05 * depth) * rng.range(0.6, 1.3);
            if rng.chance(0.55) {
                let blob: Vec<(f32, f32)> = (0..9)
                    .map(|n| n as f32 / 9.0 * std::f32::consts::TAU)
                    .map(|a| (a, r * rng.range(0.8, 1.2)))
                    .map(|(a, r)| (x + r * 1.3 * a.cos(), foot + r * 0.8 * a.sin()))
                    .collect();
                pen.fill(curve(&blob), dark.lift(rng.signed() * 0.02));
            } else {
                let hue = palette.lit(corals[rng.below(4)], distance);
                for n in -2..=2_i32 {
                    let out = n as f32 * 0.4;
                    let tip = (x + out * r * 1.5, foot - r * 1.9);
                    let twig = [(x, foot), (x + out * r * 0.6, foot - r), tip];
                    pen.stroke(&twig, r * 0.24, hue);
                    pen.circle(tip.0, tip.1, r * 0.19, hue.lift(0.05));
                }
            }
        }
        let line = SceneBuilder::profile(left, right, 4.0, bottom + 9.0, crest);
        let ink = Ink::down(base - unit * 0.04, tone, base + unit * 0.3, dark);
        pen.shape(&line, ink);
    });
}

/// Ribbons of kelp rooted at `foot`.
fn kelp(stage: &mut SceneBuilder<'_>, depth: f32, distance: f32, foot: f32) {
    stage.rng.switch_to("kelp", depth);
    let (unit, palette, width) = (stage.unit, stage.palette, stage.width);
    let mut rng = stage.rng.fork("kelp");
    let tone = palette
        .lit(Rgb::hex(0x3f_6a3c).tinted(palette.ground, 0.4), distance)
        .lift(-0.04);
    let tall = unit * (0.32 + 0.35 * depth);
    let sway = Sway {
        reach: unit * 0.03,
        root: foot,
        rate: 0.9,
        bend: 4.5 / unit,
    };
    let plane = PlaneLayout {
        sway: Some(sway),
        brush: 0.03,
        ..PlaneLayout::new(depth, foot - tall * 1.05, foot + unit * 0.1)
    };
    stage.add_plane(plane, |pen, left, right| {
        let count = ((right - left) / unit * 9.0) as usize;
        for _ in 0..count {
            let x = rng.range(left, right);
            // The middle stays free for the subject.
            let aside = ((x / width - 0.5).abs() * 2.0).min(1.0);
            let high = tall * rng.range(0.4, 1.0) * (0.25 + 0.75 * aside * aside);
            let (w, turn) = (unit * (0.006 + 0.008 * depth), rng.range(0.0, 6.0));
            let curl = |s: f32| x + (s * 7.0 + turn).sin() * unit * 0.014 * s;
            let up = (0..=18).map(|n| n as f32 / 18.0);
            let side = |s: f32, w: f32| (curl(s) + w * (1.0 - s), foot - high * s);
            let back = up.clone().rev().map(|s| side(s, w));
            let line: Vec<(f32, f32)> = up.map(|s| side(s, -w)).chain(back).collect();
            let shade = tone.lift(rng.signed() * 0.03);
            pen.shape(&line, shade);
            for n in 2..9 {
                let s = n as f32 / 9.0;
                let side = if n % 2 == 0 { 1.0 } else { -1.0 };
                let (lx, ly) = (curl(s), foot - high * s);
                let leaf = unit * (0.02 + 0.02 * depth) * (1.1 - s);
                let leaf = [
                    (lx, ly),
                    (lx + side * leaf, ly - leaf * 0.9),
                    (lx + side * leaf * 1.5, ly - leaf * 2.0),
                    (lx + side * leaf * 0.3, ly - leaf),
                ];
                pen.shape(&leaf, shade);
            }
        }
    });
}
