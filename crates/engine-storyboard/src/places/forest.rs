//! The forest: trunks behind trunks, mist between them, light falling through.

use super::{cast, land, particles, weather};
use crate::lexicon::{Hour, Weather};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::noise::value;
use crate::raster::particles::ParticleKind;
use crate::raster::pen::{Ink, Pen, smooth as curve};
use crate::raster::wash::WashBlend;
use crate::rng::Rng;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder};

pub(super) fn paint_forest(stage: &mut SceneBuilder<'_>) {
    let horizon = stage.height * 0.66;
    let (unit, palette, width) = (stage.unit, stage.palette, stage.width);
    let glade = width * stage.rng.range(0.38, 0.62);
    let mist = palette.haze.mix(palette.sky_low, 0.5);
    let high = palette.haze.mix(palette.lit(palette.ground, 0.3), 0.55);
    let reach = unit * 0.75;
    stage.add_wash(0.05, WashBlend::Cover, 0.0, |x, y| {
        let away = (x - glade).hypot((y - horizon * 0.55) * 0.8) / reach;
        high.mix(mist, (-away * away * 1.4).exp())
            .mix(palette.glow, 0.35 * (-away * away * 4.0).exp())
    });
    let rows = [
        (0.2, 0.86, 26, 0.02),
        (0.4, 0.66, 16, 0.032),
        (0.65, 0.4, 10, 0.05),
    ];
    for (index, (depth, distance, count, thick)) in rows.into_iter().enumerate() {
        let ground = horizon + unit * (0.02 + 0.09 * index as f32);
        trunks(stage, depth, distance, count, thick, ground);
        let floor = land::paint_meadow(stage, depth + 0.05, ground, 0.04, distance * 0.9);
        ferns(stage, depth + 0.06, &floor, distance);
        if index == 1 {
            shafts(stage, glade, horizon);
            cast::place_fliers(stage, horizon * 0.95, glade);
        }
        if index < 2 && stage.reading.has_weather(Weather::Fog) {
            stage.rng.switch_to("mist", depth);
            weather::paint_fog(stage, 0.35);
        }
    }
    let front = stage.height * 0.82;
    let ground = land::paint_meadow(stage, 1.0, front, 0.04, 0.05);
    cast::place_walkers_on(stage, &*ground);
    let area = [0.0, horizon * 0.45, width, stage.height * 0.95];
    let fireflies = matches!(palette.hour, Hour::Night | Hour::Dusk);
    let (mark, colour, count) = if fireflies {
        (ParticleKind::Firefly, Rgb::hex(0xff_e98a), 46.0)
    } else {
        (ParticleKind::Dust, palette.orb, 70.0)
    };
    let count = (count * width / unit) as usize;
    stage.rng.switch_to("lights", 0.0);
    let lights = particles(stage, mark, count, area, colour);
    stage.add_particles(lights);
}

fn trunks(
    stage: &mut SceneBuilder<'_>,
    depth: f32,
    distance: f32,
    count: usize,
    thick: f32,
    ground: f32,
) {
    stage.rng.switch_to("trunks", depth);
    let (unit, palette) = (stage.unit, stage.palette);
    let mut rng = stage.rng.fork("trunks");
    let bark = Rgb::hex(0x4a_4038).tinted(palette.ground, 0.25);
    let upper = palette.lit(bark, distance);
    let lower = upper.mix(palette.haze, 0.35);
    let light = palette
        .lit(bark.lift(0.12), distance)
        .mix(palette.glow, 0.25);
    let leaf = palette.lit(palette.leaf.lift(-0.02), distance);
    let middle = stage.width * 0.5;
    let plane = PlaneLayout::new(depth, -unit * 0.1, ground + unit * 0.12).brushed(0.07);
    stage.add_plane(plane, |pen, left, right| {
        // Counts are for a plane of usual width; wider ones get more trunks, not sparser ones.
        let count = (count as f32 * (right - left) / (unit * 1.9)).max(4.0) as usize;
        for n in 0..count {
            let x = left + (right - left) * (n as f32 + rng.range(0.1, 0.9)) / count as f32;
            let w = unit * thick * rng.range(0.55, 1.15);
            let lean = rng.signed() * unit * 0.05;
            let foot = ground + unit * rng.range(0.02, 0.08);
            let top = -unit * 0.12;
            let ink = Ink::down(top, upper, foot, lower);
            let trunk = [
                (x + lean - w * 0.32, top),
                (x + lean + w * 0.32, top),
                (x + w * 0.5, foot - w),
                (x + w * 0.95, foot),
                (x - w * 0.95, foot),
                (x - w * 0.5, foot - w),
            ];
            pen.shape(&trunk, ink);
            let side = if x < middle { 0.3 } else { -0.3 };
            let edge = [(x + lean + w * side * 0.7, top), (x + w * side, foot - w)];
            pen.stroke(&edge, w * 0.16, Ink::Flat(light, 0.6));
            for _ in 0..3 {
                let (y, out) = (rng.range(-0.02, 0.4) * unit, rng.signed());
                let from = (x + lean * (1.0 - y / foot), y + unit * 0.05);
                let middle = (from.0 + out * unit * 0.07, y);
                let tip = (from.0 + out * unit * 0.13, y - unit * 0.03);
                pen.stroke(&[from, middle, tip], w * 0.2, upper);
            }
        }
        let size = unit * (0.6 + depth);
        crowns(pen, (left, right), count, size, leaf, &mut rng);
    });
}

/// Leaves in clumps along the top.
fn crowns(pen: &mut Pen, span: (f32, f32), count: usize, size: f32, leaf: Rgb, rng: &mut Rng) {
    // Bounded, because each clump is a curve of its own and the far rows have many trunks.
    let clumps = (count * 5).min(160);
    for _ in 0..clumps {
        let x = rng.range(span.0, span.1);
        let y = rng.range(-0.08, 0.2) * size * rng.unit().sqrt() * 1.4;
        let r = size * rng.range(0.04, 0.1);
        let blob: Vec<(f32, f32)> = (0..10)
            .map(|n| n as f32 / 10.0 * std::f32::consts::TAU)
            .map(|a| (a, r * rng.range(0.7, 1.2)))
            .map(|(a, r)| (x + r * 1.3 * a.cos(), y + r * 0.7 * a.sin()))
            .collect();
        let ink = Ink::Flat(leaf.lift(rng.signed() * 0.03), 0.82);
        pen.fill(curve(&blob), ink);
    }
}

fn ferns(stage: &mut SceneBuilder<'_>, depth: f32, floor: &land::GroundCrest, distance: f32) {
    stage.rng.switch_to("ferns", depth);
    let (unit, palette) = (stage.unit, stage.palette);
    let mut rng = stage.rng.fork("ferns");
    let tone = palette.lit(palette.ground.lift(-0.06), distance * 0.9);
    let top = floor(0.0) - unit * 0.16;
    let seed = rng.next();
    let plane = PlaneLayout::new(depth, top, floor(0.0) + unit * 0.15).brushed(0.04);
    stage.add_plane(plane, |pen, left, right| {
        let count = ((right - left) / unit * 40.0) as usize;
        for _ in 0..count {
            let x = rng.range(left, right);
            if value(seed, x / (unit * 0.2), 0.0) < -0.1 {
                continue;
            }
            let foot = floor(x) + unit * 0.015;
            let size = unit * (0.02 + 0.045 * depth) * rng.range(0.6, 1.1);
            let shade = tone.lift(rng.signed() * 0.03);
            for blade in -3..=3_i32 {
                let out = blade as f32 / 3.0;
                let tip = (x + out * size * 1.3, foot - size * (1.15 - 0.6 * out.abs()));
                let (half, bend) = (size * 0.06, (x + out * size * 0.55, foot - size * 0.85));
                pen.shape(&[(x - half, foot), bend, tip, (x + half, foot)], shade);
            }
        }
    });
}

/// Slanting light from above the glade.
fn shafts(stage: &mut SceneBuilder<'_>, glade: f32, horizon: f32) {
    stage.rng.switch_to("shafts", 0.0);
    let (unit, palette) = (stage.unit, stage.palette);
    let strength = match palette.hour {
        Hour::Night => 0.12,
        Hour::Dusk => 0.2,
        _ => 0.34,
    };
    let seed = stage.rng.next();
    // Above and beside the glade, outside the frame.
    let source = (glade + unit * 0.25, -unit * 0.5);
    stage.add_wash(0.4, WashBlend::Light, 0.25, |x, y| {
        let angle = (x - source.0).atan2(y - source.1);
        // Noise by angle around a point above the frame: light falls in rays from there.
        let beams = smooth(
            0.05,
            0.7,
            value(seed, angle * 13.0, 0.0) * 0.7 + value(seed ^ 1, angle * 31.0, 0.0) * 0.3,
        );
        let spread = (-(angle + 0.2).powi(2) * 5.0).exp();
        let fade = smooth(horizon * 1.25, 0.0, y);
        let share = strength * beams * spread * fade;
        palette.glow.scaled(share)
    });
}
