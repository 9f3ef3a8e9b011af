//! Open land: mountains, hills, meadows and deserts, with woods and copses along their crests. Trees that the words name
//! are subjects, and not painted here.

use super::{cast, sky};
use crate::lexicon::{Hour, Place, Weather};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::layer::Sway;
use crate::raster::noise::{cloudy, ridged, value};
use crate::raster::pen::{Ink, Pen, smooth as curve};
use crate::rng::Rng;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder};
use crate::subject::Subject;

/// Paints a mountain range with a lit and a shaded side to every crest. `near` 0.0 is the farthest; `tall` above `base`
/// are its highest crests, of which the share `snow_share` is white. The light comes from column `light`.
pub(super) fn paint_range(
    stage: &mut SceneBuilder<'_>,
    near: f32,
    (base, tall): (f32, f32),
    snow_share: f32,
    light: f32,
) {
    stage.rng.switch_to("range", near);
    let seed = stage.rng.next();
    let (unit, palette) = (stage.unit, stage.palette);
    let depth = 0.12 + 0.5 * near;
    let width = unit * (0.62 + 0.2 * near);
    let distance = 0.72 - 0.5 * near;
    let shine = if palette.is_dark() { 0.3 } else { 0.14 };
    let rock = palette.rock.tinted(palette.ground, 0.25 * near);
    let lit = palette
        .lit(rock.lift(0.08), distance)
        .mix(palette.glow, shine);
    let shade = palette.lit(rock.lift(-0.12), distance);
    let white = Rgb::hex(0xf8_f9fc);
    let snow_lit = palette
        .lit(white, distance * 0.7)
        .mix(palette.glow, shine * 1.2);
    let snow_shade = palette.lit(Rgb::hex(0x9f_b4d2), distance * 0.8);
    let foot = palette.haze.mix(palette.lit(rock, distance), 0.25);
    let left_light = if light > stage.width * 0.5 { 1.0 } else { -1.0 };
    let bottom = base + unit * 0.3;
    let top = base - tall * 1.35;
    // A little more than the plane: slopes look to both sides of a texel.
    let margin = stage.margin(depth) + unit * 0.3;
    let columns = 0..(stage.width + 2.0 * margin) as usize + 2;
    // Heights once for each stage pixel: below, three of them are needed for every texel.
    let crests = columns.map(|n| {
        let x = n as f32 - margin;
        let shape = ridged(seed, x / width, 6) - 0.2;
        // Slow noise over the ridges, so that a range has high and low parts.
        let broad = 0.75 + 0.35 * value(seed ^ 9, x / (width * 1.7), 0.2);
        base - tall * shape.max(0.1) * 1.15 * broad
    });
    let crests: Vec<f32> = crests.collect();
    let height_at = |x: f32| {
        let at = (x + margin).clamp(0.0, (crests.len() - 2) as f32);
        let n = at as usize;
        crests[n] + (crests[n + 1] - crests[n]) * (at - n as f32)
    };
    let plane = PlaneLayout::new(depth, top, bottom).brushed(0.06);
    stage.add_field(plane, |x, y| {
        let edge = height_at(x);
        let below = y - edge;
        if below < -1.0 {
            return (shade, 0.0);
        }
        let rough = cloudy(seed ^ 3, x / (unit * 0.09), y / (unit * 0.13), 3);
        // The face that a point belongs to leans as the crest above it, displaced by roughness.
        let from = x + rough * (unit * 0.03 + below * 0.24);
        let slope =
            (height_at(from + unit * 0.018) - height_at(from - unit * 0.018)) / (unit * 0.036);
        let face = smooth(-0.3, 0.3, slope * left_light + rough * 0.35);
        let altitude = (base - y) / tall;
        // The snow line, ragged by the same roughness as the rock.
        let snow = smooth(0.0, 0.07, altitude - (1.0 - snow_share) - rough * 0.22);
        let bare = lit.mix_plain(shade, 1.0 - face);
        let cold = snow_lit.mix_plain(snow_shade, 1.0 - face);
        let colour = bare.mix_plain(cold, snow);
        // The foot of each range dissolves, so that the next one stands out against it.
        let mist = smooth(tall * 0.25, tall * 0.95 + unit * 0.1, below) * 0.75;
        (colour.mix_plain(foot, mist), (below + 0.5).clamp(0.0, 1.0))
    });
}

pub(super) fn paint_mountains(stage: &mut SceneBuilder<'_>) {
    let horizon = stage.height * if stage.is_portrait() { 0.66 } else { 0.7 };
    let orb = sky::paint_sky(stage, horizon);
    let winter = stage.reading.is_snowy();
    let lift = stage.height.min(stage.unit * 1.25);
    for (near, rise) in [(0.0, 0.66), (0.45, 0.56), (0.9, 0.4)] {
        let base = horizon + stage.unit * 0.12 * near;
        stage.rng.switch_to("rise", near);
        let height = lift * (rise + stage.rng.signed() * 0.05);
        let snow = if winter { 0.95 } else { 0.62 - 0.3 * near };
        paint_range(stage, near, (base, height), snow, orb.x);
        if near == 0.45 {
            sky::add_bloom(stage, (orb.x, orb.y), 0.5);
            cast::place_fliers(stage, horizon * 0.8, orb.x);
        }
    }
    let slope = stage.height * 0.75;
    let crest = paint_meadow(stage, 0.85, slope, 0.07, 0.2);
    paint_pines(stage, 0.86, &crest, 46, 0.13);
    let front = stage.height * 0.83;
    let ground = paint_meadow(stage, 1.0, front, 0.05, 0.05);
    cast::place_walkers_on(stage, &*ground);
    paint_edge_pines(stage);
}

/// Paints a rolling slope with its upper edge near `base`, and returns the crest.
pub(super) fn paint_meadow(
    stage: &mut SceneBuilder<'_>,
    depth: f32,
    base: f32,
    swell: f32,
    distance: f32,
) -> GroundCrest {
    stage.rng.switch_to("meadow", depth);
    let seed = stage.rng.next();
    let (unit, palette) = (stage.unit, stage.palette);
    let crest = move |x: f32| base + unit * swell * cloudy(seed, x / (unit * 0.9), 0.7, 3);
    let tone = palette.ground.lift(stage.rng.signed() * 0.03);
    let upper = palette
        .lit(tone.lift(0.06), distance)
        .mix(palette.glow, 0.1 + 0.1 * distance);
    let snowy = stage.reading.is_snowy();
    let deep = if snowy { -0.04 } else { -0.12 };
    let lower = palette.lit(tone.lift(deep), distance * 0.7);
    let bottom = stage.height * 1.2;
    let plane = PlaneLayout::new(depth, base - unit * swell, bottom).brushed(0.09);
    stage.add_plane(plane, |pen, left, right| {
        let line = SceneBuilder::profile(left, right, (unit / 120.0).max(2.0), bottom + 9.0, crest);
        let end = base + unit * (0.16 + 0.3 * depth);
        pen.shape(&line, Ink::down(base - unit * swell, upper, end, lower));
    });
    Box::new(crest)
}

pub(super) fn paint_hills(stage: &mut SceneBuilder<'_>) {
    let horizon = stage.height * 0.6;
    let orb = sky::paint_sky(stage, horizon);
    stage.rng.switch_to("hills", 0.0);
    if stage.reading.places.contains(&Place::Mountains) || stage.rng.chance(0.4) {
        let height = stage.unit * 0.32;
        let base = horizon + stage.unit * 0.05;
        paint_range(stage, 0.0, (base, height), 0.4, orb.x);
    }
    let far = paint_meadow(stage, 0.3, horizon + stage.unit * 0.01, 0.1, 0.62);
    paint_copses(stage, 0.3, &far, 0.028, 0.62);
    let middle = paint_meadow(stage, 0.5, horizon + stage.unit * 0.09, 0.11, 0.4);
    paint_copses(stage, 0.5, &middle, 0.05, 0.4);
    sky::add_bloom(stage, (orb.x, orb.y), 0.6);
    cast::place_fliers(stage, horizon * 0.92, orb.x);
    let near = paint_meadow(stage, 0.75, stage.height * 0.7, 0.1, 0.2);
    paint_copses(stage, 0.75, &near, 0.085, 0.2);
    let front = stage.height * 0.81;
    let ground = paint_meadow(stage, 1.0, front, 0.05, 0.05);
    cast::place_walkers_on(stage, &*ground);
    paint_grass(stage);
}

/// Blades and flower heads in front of everything, swaying.
pub(super) fn paint_grass(stage: &mut SceneBuilder<'_>) {
    if stage.reading.is_snowy() {
        return;
    }
    stage.rng.switch_to("grass", 0.0);
    let (unit, palette, height) = (stage.unit, stage.palette, stage.height);
    let mut rng = stage.rng.fork("grass");
    let windy = stage.reading.has_weather(Weather::Wind);
    let wind = if windy { 2.4 } else { 1.0 };
    let tall = unit * 0.15;
    let tone = palette.lit(palette.ground.lift(-0.17), 0.0);
    let bloom = palette.lit(palette.accent, 0.0).mix(palette.glow, 0.1);
    let other = palette.lit(palette.second_accent, 0.0);
    let flowers = stage.reading.shows(Subject::Flower);
    let many = if flowers { 0.3 } else { 0.07 };
    let sway = Sway {
        reach: unit * 0.007 * wind,
        root: height * 1.03,
        rate: 1.5,
        bend: 9.0 / unit,
    };
    let plane = PlaneLayout {
        sway: Some(sway),
        brush: 0.0,
        ..PlaneLayout::new(1.3, height - tall * 1.3, height * 1.2)
    };
    stage.add_plane(plane, |pen, left, right| {
        let count = ((right - left) / unit * 190.0) as usize;
        for _ in 0..count {
            let x = rng.range(left, right);
            let blade = tall * rng.range(0.35, 1.0);
            let lean = blade * rng.signed() * 0.35;
            let foot = height * 1.12;
            let tip = (x + lean, height - blade + tall * 0.28);
            let wide = unit * 0.0035;
            let shade = tone.lift(rng.signed() * 0.03);
            let bend = (x + lean * 0.35, height - blade * 0.3);
            pen.shape(&[(x - wide, foot), bend, tip, (x + wide, foot)], shade);
            if rng.chance(many) {
                let r = unit * rng.range(0.006, 0.012);
                pen.circle(tip.0, tip.1, r, if rng.chance(0.7) { bloom } else { other });
                let shine = Ink::Flat(palette.orb, 0.5);
                pen.circle(tip.0 - r * 0.2, tip.1 - r * 0.25, r * 0.4, shine);
            }
        }
    });
}

/// The crest of a piece of ground: stage row by stage column.
pub(super) type GroundCrest = Box<dyn Fn(f32) -> f32>;

/// A pine with its foot at `(x, foot)`, `tall` pixels high, with `snow` on its tiers where it lies.
fn pine(
    pen: &mut Pen,
    (x, foot, tall): (f32, f32, f32),
    colour: Rgb,
    snow: Option<Rgb>,
    rng: &mut Rng,
) {
    let (left, top) = (x - tall * 0.02, foot - tall * 0.15);
    pen.rect(left, top, tall * 0.04, tall * 0.16, colour);
    let tiers = 6;
    for tier in 0..tiers {
        let share = tier as f32 / tiers as f32;
        let y = foot - tall * (0.08 + 0.74 * share);
        let half = tall * 0.21 * (1.0 - share * 0.86);
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
pub(super) fn paint_pines(
    stage: &mut SceneBuilder<'_>,
    depth: f32,
    crest: &GroundCrest,
    count: usize,
    size: f32,
) {
    let (unit, palette) = (stage.unit, stage.palette);
    stage.rng.switch_to("pines", depth);
    let mut rng = stage.rng.fork("pines");
    let mut tone = palette.lit(Rgb::hex(0x2b_4a3c).tinted(palette.ground, 0.3), 0.12);
    if stage.reading.is_snowy() {
        tone = tone.mix(palette.lit(Rgb::hex(0xdf_e8f0), 0.2), 0.25);
    }
    let snow = (stage.reading.is_snowy()).then(|| palette.lit(Rgb::hex(0xf2_f6fb), 0.15));
    let (top, bottom) = (crest(0.0) - unit * (size + 0.2), crest(0.0) + unit * 0.3);
    let seed = rng.next();
    let plane = PlaneLayout::new(depth, top, bottom);
    stage.add_plane(plane, |pen, left, right| {
        let count = (count as f32 * (right - left) / (unit * 1.6)) as usize;
        for _ in 0..count {
            let x = rng.range(left, right);
            // They stand in groups.
            if value(seed, x / (unit * 0.22), 0.0) < -0.05 {
                continue;
            }
            let tall = unit * size * rng.range(0.45, 1.0);
            let shade = tone.lift(rng.signed() * 0.018);
            let at = (x, crest(x) + unit * 0.012, tall);
            pine(pen, at, shade, snow, &mut rng);
        }
    });
}

/// A few large dark pines at the sides of the frame, nearer than everything.
fn paint_edge_pines(stage: &mut SceneBuilder<'_>) {
    let (unit, width, height) = (stage.unit, stage.width, stage.height);
    stage.rng.switch_to("pines_edge", 0.0);
    let mut rng = stage.rng.fork("edge");
    let tone = stage
        .palette
        .lit(Rgb::hex(0x1e_332c).tinted(stage.palette.ground, 0.2), 0.0)
        .lift(-0.05);
    let side = rng.chance(0.5);
    let white = stage.palette.lit(Rgb::hex(0xd8_e2ec), 0.0);
    let snow = (stage.reading.is_snowy()).then_some(white);
    let plane = PlaneLayout::new(1.35, height * 0.2, height * 1.2);
    stage.add_plane(plane, |pen, _, _| {
        for n in 0..4 {
            // From beyond the edge inwards, each a little smaller: a natural frame.
            let inward = width * (-0.05 + 0.065 * n as f32) + rng.signed() * unit * 0.02;
            let x = if side { inward } else { width - inward };
            let tall = unit * (0.78 - 0.15 * n as f32) * rng.range(0.85, 1.1);
            let shade = tone.lift(rng.signed() * 0.012);
            pine(pen, (x, height * 1.08, tall), shade, snow, &mut rng);
        }
    });
}

/// Round trees in loose groups along a crest.
fn paint_copses(
    stage: &mut SceneBuilder<'_>,
    depth: f32,
    crest: &GroundCrest,
    size: f32,
    distance: f32,
) {
    let (unit, palette) = (stage.unit, stage.palette);
    stage.rng.switch_to("copses", depth);
    let mut rng = stage.rng.fork("copse");
    let seed = rng.next();
    let tone = palette.lit(palette.leaf.lift(-0.07).saturate(0.9), distance);
    let light = palette
        .lit(palette.leaf.lift(0.02), distance)
        .mix(palette.glow, 0.14);
    // Three of ten trees have the season's other colour.
    let other = palette.lit(palette.blossom.lift(-0.03), distance);
    let snow = (stage.reading.is_snowy()).then(|| palette.lit(Rgb::hex(0xf2_f6fb), distance));
    let (top, bottom) = (crest(0.0) - unit * (size + 0.25), crest(0.0) + unit * 0.35);
    let plane = PlaneLayout::new(depth, top, bottom).brushed(0.06);
    stage.add_plane(plane, |pen, left, right| {
        let count = ((right - left) / (unit * size * 0.5)) as usize;
        for _ in 0..count {
            let x = rng.range(left, right);
            // Copses: trees only where slow noise is high.
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
    });
}

pub(super) fn paint_desert(stage: &mut SceneBuilder<'_>) {
    let horizon = stage.height * if stage.is_portrait() { 0.56 } else { 0.58 };
    let orb = sky::paint_sky(stage, horizon);
    mesas(stage, horizon);
    sky::add_bloom(stage, (orb.x, orb.y), 0.6);
    cast::place_fliers(stage, horizon, orb.x);
    for (near, share) in [(0.0, 0.05), (0.35, 0.17), (0.7, 0.34)] {
        let base = horizon + (stage.height - horizon) * share;
        let _skyline = dune(stage, base, near, orb.x);
    }
    let base = horizon + (stage.height - horizon) * 0.56;
    let crest = dune(stage, base, 1.0, orb.x);
    cast::place_walkers_on(stage, &*crest);
}

fn mesas(stage: &mut SceneBuilder<'_>, horizon: f32) {
    stage.rng.switch_to("mesas", 0.0);
    let (unit, palette) = (stage.unit, stage.palette);
    let mut rng = stage.rng.fork("mesa");
    let tone = palette.lit(palette.sand.mix(palette.rock, 0.4).lift(-0.08), 0.72);
    let plane = PlaneLayout::new(0.16, horizon - unit * 0.35, horizon + unit * 0.1);
    stage.add_plane(plane, |pen, left, right| {
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
    });
}

/// Paints a dune with a sharp crest, lit on one side, and returns its skyline.
fn dune(stage: &mut SceneBuilder<'_>, base: f32, near: f32, light: f32) -> GroundCrest {
    stage.rng.switch_to("dune", near);
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
    let day = palette.hour == Hour::Day;
    let warm = if day { 0.04 } else { 0.16 };
    let lit = palette
        .lit(palette.sand.lift(0.05), distance)
        .mix(palette.glow, warm);
    let shade = palette
        .lit(palette.sand.lift(-0.14).saturate(0.9), distance)
        .mix(palette.sky_top, 0.14);
    let side = if light > stage.width * 0.5 { 1.0 } else { -1.0 };
    let bottom = stage.height * 1.2;
    let plane = PlaneLayout::new(depth, base - swell * 1.5, bottom).brushed(0.035);
    stage.add_field(plane, |x, y| {
        let below = y - crest(x);
        if below < -1.0 {
            return (lit, 0.0);
        }
        // The shaded side runs down from each crest in a curve.
        let run = x + side * below * 0.9 + (below / unit * 9.0).sin() * unit * 0.012;
        let lean = crest(run + 2.0) - crest(run - 2.0);
        let face = smooth(-0.5, 0.5, lean * side * 1.4);
        // Wind ripples: a wave along the slope, bent by noise, on the lit face and near dunes only.
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
