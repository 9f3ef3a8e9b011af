//! A table top in close-up, with a kitchen or café out of focus behind it. Small things stand on
//! it; people and other large subjects are behind it.

use super::{cast, particles, room, weather};
use crate::lexicon::Hour;
use crate::raster::colour::{Rgb, smooth};
use crate::raster::noise::cloudy;
use crate::raster::particles::ParticleKind;
use crate::raster::pen::Ink;
use crate::raster::wash::WashBlend;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder};
use crate::subject::{BodyKind, Stance, Subject};

/// Magnification compared with other scenes.
const NEARNESS: f32 = 1.5;
const WOODS: [u32; 4] = [0x9a_6a42, 0x7a_5034, 0xb8_8a5c, 0x8a_5c48];
/// Jars and boxes on the shelf behind.
const JARS: [u32; 6] = [
    0xc8_6a4a, 0x5a_8a7a, 0xd8_a850, 0x6a_7aa0, 0xb0_5a6a, 0x8a_9a58,
];

/// Whether `subject` has room on a table.
fn fits_on_table(subject: Subject) -> bool {
    let facts = subject.facts();
    match facts.body {
        BodyKind::Person | BodyKind::Vehicle => false,
        BodyKind::Quadruped => facts.size < 0.33 || facts.stance == Stance::Lies,
        _ => true,
    }
}

pub(super) fn paint_table(stage: &mut SceneBuilder<'_>) {
    stage.nearness *= NEARNESS;
    let (width, height) = (stage.width, stage.height);
    let edge = height * if stage.is_portrait() { 0.66 } else { 0.62 };
    let left = stage.rng.chance(0.5);
    let light = width * if left { 0.24 } else { 0.76 };
    backdrop(stage, edge, light);
    bokeh(stage, edge);
    cast::place_fliers(stage, edge, light);
    let mut seats = cast::standing_figures(stage);
    // People behind the table are seen from close by, as the things on it are.
    cast::enlarge_figures(stage, &mut seats, &|one| !fits_on_table(one), 0.84);
    let floor = height * 1.08;
    cast::place_standing(stage, &seats, &|one| !fits_on_table(one), 0.7, &|_| floor);
    top(stage, edge, light);
    let near = height * 0.83;
    cast::place_standing(stage, &seats, &fits_on_table, 1.0, &|_| near);
    shine(stage, light);
}

/// 1.0 between `low` and `high`, 0.0 outside, blurred by `soft`.
fn band(low: f32, high: f32, soft: f32, at: f32) -> f32 {
    smooth(low - soft, low + soft, at) * smooth(high + soft, high - soft, at)
}

/// The wall, a window and a shelf, out of focus.
fn backdrop(stage: &mut SceneBuilder<'_>, edge: f32, light: f32) {
    let (unit, palette, width) = (stage.unit, stage.palette, stage.width);
    let (wall, wood) = room::colours(stage);
    let seed = stage.rng.next();
    let (half, soft) = (unit * 0.34, unit * 0.035);
    let (top, sill) = (-unit * 0.1, edge * 0.82);
    let garden = palette.lit(palette.leaf, 0.35);
    let shelf = width - light;
    let lamp = palette.lamp;
    let dark = palette.is_dark();
    stage.add_wash(0.15, WashBlend::Cover, 0.0, |x, y| {
        let away = (x - light) / unit;
        // All of the backdrop is one coarse wash with soft edges: out of focus without any blur.
        let mut colour = wall.lift(-0.1).mix(wall, (-away * away * 1.2).exp());
        let v = (y / sill).clamp(0.0, 1.0);
        let sky = palette.sky_middle.mix(palette.sky_low, v);
        let bank = smooth(0.5, 0.8, v + 0.14 * cloudy(seed, x / (unit * 0.16), 0.5, 2));
        let view = sky.mix(garden, bank * 0.8);
        let frame = band(light - half * 1.1, light + half * 1.1, soft, x)
            * band(top, sill + unit * 0.03, soft, y);
        colour = colour.mix(wood, frame * 0.7);
        let pane = band(light - half, light - half * 0.04, soft, x)
            + band(light + half * 0.04, light + half, soft, x);
        colour = colour.mix(view, pane.min(1.0) * band(top, sill, soft, y));
        for (row, level) in [0.34, 0.68].into_iter().enumerate() {
            let board = edge * level;
            let along = (x - shelf) / unit;
            let inside = band(-0.36, 0.36, 0.04, along);
            let plank = band(board, board + unit * 0.02, unit * 0.012, y) * inside;
            colour = colour.mix(wood.lift(-0.28), plank * 0.8);
            let nth = ((along + 0.36) / 0.12).floor();
            // A pseudo-random jar for each place on a shelf, the same in every frame and at every
            // resolution.
            let pick =
                (seed.rotate_left(row as u32 * 9) as usize).wrapping_add(nth.max(0.0) as usize);
            let tall = unit * (0.08 + 0.02 * (pick % 4) as f32);
            let middle = (nth + 0.5) * 0.12 - 0.36;
            let jar = band(middle - 0.034, middle + 0.034, 0.014, along)
                * band(board - tall, board, unit * 0.014, y);
            let hue = Rgb::hex(JARS[pick % JARS.len()]).mix(wall, 0.35);
            let hue = if dark { hue.lift(-0.2) } else { hue };
            colour = colour.mix(hue, jar * inside * 0.8);
        }
        let from = (x - shelf).hypot(y - edge * 0.1) / (unit * 0.6);
        let warm = if dark { 0.55 } else { 0.12 };
        colour.mix(lamp, warm * (-from * from * 2.0).exp())
    });
    let pane = [light - half, top, light + half, sill];
    weather::paint_behind_window(stage, pane, (240, 150), 0.2);
}

/// Discs of light out of focus.
fn bokeh(stage: &mut SceneBuilder<'_>, edge: f32) {
    let (unit, palette) = (stage.unit, stage.palette);
    let mut rng = stage.rng.fork("bokeh");
    let dark = palette.is_dark();
    let (count, strong) = if dark { (26, 0.3) } else { (12, 0.14) };
    let plane = PlaneLayout::new(0.25, -unit * 0.1, edge).brushed(0.0);
    stage.add_plane(plane, |pen, left, right| {
        for _ in 0..count {
            let (x, y) = (rng.range(left, right), rng.range(-0.05, 0.85) * edge);
            let r = unit * rng.range(0.014, 0.05);
            let lamp = rng.chance(0.6);
            let hue = if lamp { palette.lamp } else { palette.glow };
            let alpha = strong * rng.range(0.35, 1.0);
            let ink = Ink::Round(x, y, r, [(hue, alpha * 0.75), (hue.lift(0.08), alpha)]);
            pen.circle(x, y, r, ink);
        }
    });
}

/// The table itself: boards that run towards the viewer, with the window's light on them.
fn top(stage: &mut SceneBuilder<'_>, edge: f32, light: f32) {
    let (unit, palette, height) = (stage.unit, stage.palette, stage.height);
    let wood = Rgb::hex(WOODS[stage.rng.below(WOODS.len())]);
    let seed = stage.rng.next();
    let lamp = palette.light.mix(Rgb::WHITE, 0.35);
    let dim = if palette.is_dark() { 0.6 } else { 0.9 };
    let base = wood
        .under(lamp)
        .mix(Rgb::BLACK, 1.0 - dim)
        .mix(palette.lamp, 0.05);
    let (bright, deep) = (base.lift(0.07), base.lift(-0.1));
    let gleam = palette.sky_low.mix(palette.glow, 0.5).mix(bright, 0.3);
    let (vanish, rise) = (stage.width * 0.5, edge - height * 0.5);
    let bottom = height * 1.2;
    let plane = PlaneLayout::new(0.95, edge - 2.0, bottom).brushed(0.03);
    let strong = if palette.is_dark() { 0.16 } else { 0.42 };
    stage.add_field(plane, |x, y| {
        let far = y - rise;
        // Columns of the table top as they would be at the lower edge of the frame.
        let u = (x - vanish) / far * (height - rise) / (unit * 0.3);
        let (board, across) = (u.floor(), u - u.floor());
        let salt = seed ^ (board as i64).cast_unsigned();
        let along = height / far * 7.0;
        let grain = cloudy(salt, across * 9.0, along, 3) * 0.6
            + cloudy(salt ^ 3, across * 34.0, along * 0.6, 2) * 0.4;
        let tone = deep.mix_plain(bright, (0.55 + grain * 0.7).clamp(0.0, 1.0));
        let seam = smooth(0.025, 0.0, across.min(1.0 - across)) * 0.45;
        let v = ((y - edge) / (height - edge)).clamp(0.0, 1.2);
        let side = (x - light) / (unit * 0.42);
        let lit = strong * (-side * side).exp() * smooth(1.1, 0.0, v);
        let tone = tone.mix_plain(Rgb::BLACK, seam).mix_plain(gleam, lit);
        let rim = smooth(3.0, 0.0, y - edge) * 0.25;
        let shade = smooth(0.3, 1.2, v) * 0.3;
        let tone = tone.mix_plain(Rgb::WHITE, rim).mix_plain(Rgb::BLACK, shade);
        (tone, (y - edge + 0.5).clamp(0.0, 1.0))
    });
}

/// Light from the window, or in the dark from a lamp, over everything, and dust in it.
fn shine(stage: &mut SceneBuilder<'_>, light: f32) {
    let (unit, palette, height) = (stage.unit, stage.palette, stage.height);
    let (strength, colour, x, y) = match palette.hour {
        Hour::Night | Hour::Dusk => (0.12, palette.lamp, stage.width - light, height * 0.45),
        Hour::Dawn | Hour::Golden => (0.28, palette.glow, light, height * 0.2),
        Hour::Day => (0.2, palette.glow, light, height * 0.2),
    };
    stage.add_wash(0.6, WashBlend::Light, 0.08, |px, py| {
        let away = ((px - x) * 0.9).hypot(py - y) / (unit * 0.85);
        let share = strength * smooth(1.2, 0.0, away);
        colour.scaled(share)
    });
    let area = [light - unit * 0.5, 0.0, light + unit * 0.5, height * 0.8];
    let dust = particles(stage, ParticleKind::Dust, 34, area, palette.orb);
    stage.add_particles(dust);
}
