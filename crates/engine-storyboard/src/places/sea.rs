//! Water under the sky: the sea with a beach or cliffs and the high waves of a storm, and lakes between hills. The level
//! water mirrors what is painted above it.

use super::heavens::SkyOrb;
use super::{cast, land, particles, sky};
use crate::lexicon::{Hour, Weather};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::layer::{Heave, Sway};
use crate::raster::noise::{cloudy, ridged, value};
use crate::raster::particles::ParticleKind;
use crate::raster::pen::Ink;
use crate::raster::water::Water;
use crate::scene::events::SURF_RATE;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder, SceneElement};
use crate::subject::Subject;

pub(super) fn paint_sea(stage: &mut SceneBuilder<'_>) {
    let horizon = stage.height * if stage.is_portrait() { 0.56 } else { 0.55 };
    let orb = sky::paint_sky(stage, horizon);
    headlands(stage, horizon);
    cast::place_fliers(stage, horizon, orb.x);
    sky::add_bloom(stage, (orb.x, orb.y), 0.55);
    let mut seats = cast::standing_figures(stage);
    let walks = cast::has_ground_figures(stage);
    let side = stage.rng.chance(0.5);
    // Also a lighthouse that an edit removed: its cliff stays.
    let cliffs = walks && cast::includes_subject(stage, Subject::Lighthouse);
    let shore = stage.height * if walks && !cliffs { 0.75 } else { 0.8 };
    if cliffs {
        let (near, far) = (stage.width * 0.1, stage.width * 0.52);
        let right = (stage.width - far, stage.width - near);
        cast::gather_figures(stage, &mut seats, if side { right } else { (near, far) });
    }
    sheet(stage, horizon, orb, 0.5);
    let stormy = stage.reading.has_weather(Weather::Storm);
    if stormy {
        surge(stage, [0.12, 0.3], (horizon, shore));
    }
    // With boats and nobody on land there is no beach: all of the frame is water.
    let open = !walks && cast::has_figures(stage, cast::FigureMedium::Water);
    let near = if open { 0.72 } else { 0.56 };
    let (deep, width) = (shore - horizon, stage.width);
    let pool = cast::WaterArea {
        rows: (horizon + deep * 0.16, horizon + deep * near),
        columns: match (cliffs, side) {
            (false, _) => (0.0, width),
            (true, true) => (0.0, width * 0.52),
            (true, false) => (width * 0.48, width),
        },
    };
    cast::place_floaters(stage, pool, orb.x, &seats);
    if stormy {
        surge(stage, [0.62, 0.95], (horizon, shore));
    }
    if cliffs {
        cliff(stage, shore, side, &seats);
    } else if !open {
        beach(stage, shore, &seats);
    }
}

pub(super) fn paint_lake(stage: &mut SceneBuilder<'_>) {
    let horizon = stage.height * 0.56;
    let orb = sky::paint_sky(stage, horizon);
    let snow = if stage.reading.is_snowy() { 0.9 } else { 0.5 };
    let unit = stage.unit;
    land::paint_range(stage, 0.0, (horizon, unit * 0.5), snow, orb.x);
    cast::place_fliers(stage, horizon * 0.9, orb.x);
    let near = (horizon + unit * 0.02, unit * 0.34);
    land::paint_range(stage, 0.4, near, snow - 0.3 * 0.4, orb.x);
    let bank = land::paint_meadow(stage, 0.45, horizon - unit * 0.012, 0.02, 0.42);
    land::paint_pines(stage, 0.45, &bank, 60, 0.07);
    sky::add_bloom(stage, (orb.x, orb.y), 0.5);
    let seats = cast::standing_figures(stage);
    if stage.reading.is_snowy() && !cast::has_figures(stage, cast::FigureMedium::Water) {
        ice(stage, horizon);
    } else {
        sheet(stage, horizon, orb, 0.3);
    }
    // Figures stay out of the far sixth, where they would be specks, and off the near shore.
    let deep = stage.height - horizon;
    let pool = cast::WaterArea {
        rows: (horizon + deep * 0.16, horizon + deep * 0.54),
        columns: (0.0, stage.width),
    };
    cast::place_floaters(stage, pool, orb.x, &seats);
    let front = stage.height * 0.84;
    let ground = land::paint_meadow(stage, 1.0, front, 0.04, 0.0);
    cast::place_standing(stage, &seats, &|_| true, 1.0, &|x| ground(x) + unit * 0.034);
    land::paint_grass(stage);
}

/// The water itself: mirror, wave strokes and glints.
fn sheet(stage: &mut SceneBuilder<'_>, horizon: f32, orb: SkyOrb, rough: f32) {
    stage.rng.switch_to("sheet", 0.0);
    let (unit, palette) = (stage.unit, stage.palette);
    let storm =
        stage.reading.has_weather(Weather::Storm) || stage.reading.has_weather(Weather::Wind);
    let rough = if storm { rough * 2.0 } else { rough };
    let body = palette.water.under(palette.light);
    let far = body.mix(palette.sky_low, 0.6);
    let near = body
        .mix(palette.sky_top, 0.35)
        .mix(palette.sky_middle, 0.2)
        .lift(-0.04);
    let bottom = stage.height * 1.12;
    stage.elements.push(SceneElement::Water(Water {
        horizon,
        bottom,
        depth: 0.3,
        far,
        near,
        cover: (0.12 + 0.16 * rough, 0.6),
        reach: unit * 0.012 * (0.4 + rough),
        rate: 1.3 + rough,
    }));
    waves(stage, horizon, bottom, rough);
    if orb.shows || palette.hour == Hour::Day {
        let colour = palette.orb.mix(palette.glow, 0.3);
        let (pad, top) = (unit * 0.1, horizon + unit * 0.004);
        let area = [-pad, top, stage.width + pad, stage.height * 0.95];
        let count = (620.0 * stage.width / unit) as usize;
        stage.rng.switch_to("glints", 0.0);
        let glints = particles(stage, ParticleKind::Glint, count, area, colour);
        // A low sun draws a path of glitter, a high one glitters everywhere.
        let tight = if palette.hour == Hour::Day { 0.0 } else { 0.55 };
        stage.add_particles(glints.gathered(orb.x, tight).at_depth(0.5));
    }
}

/// A frozen lake: a dull mirror with cracks and drifts of snow.
fn ice(stage: &mut SceneBuilder<'_>, horizon: f32) {
    let (unit, palette) = (stage.unit, stage.palette);
    let seed = stage.rng.next();
    let pale = palette.lit(Rgb::hex(0xc4_dcea), 0.1);
    let bottom = stage.height * 1.12;
    stage.elements.push(SceneElement::Water(Water {
        horizon,
        bottom,
        depth: 0.3,
        far: pale,
        near: pale.lift(-0.05),
        cover: (0.5, 0.72),
        reach: 0.0,
        rate: 0.0,
    }));
    let white = palette.lit(Rgb::hex(0xf4_f8fc), 0.05);
    let plane = PlaneLayout::new(0.45, horizon + 1.0, bottom).brushed(0.0);
    stage.add_field(plane, |x, y| {
        let away = ((y - horizon) / unit).max(0.002);
        let (u, v) = (x / (unit * (0.05 + away * 0.8)), away.ln() * 5.0);
        let drift = smooth(0.05, 0.4, cloudy(seed, u * 0.6, v, 3));
        let crack = smooth(0.028, 0.0, cloudy(seed ^ 5, u, v, 3).abs()) * 0.5;
        (white, (drift * 0.75).max(crack))
    });
}

/// Long dark and light strokes, denser and finer towards the horizon, sliding slowly.
fn waves(stage: &mut SceneBuilder<'_>, horizon: f32, bottom: f32, rough: f32) {
    let (unit, palette) = (stage.unit, stage.palette);
    let seed = stage.rng.next();
    let light = palette.sky_low.mix(palette.orb, 0.25);
    let dark = palette.water.under(palette.light).lift(-0.12);
    for (depth, speed, sign) in [(0.4, 0.006, 1.0), (0.7, -0.011, -1.0_f32)] {
        let drift = unit * speed * (0.6 + rough);
        let plane = PlaneLayout {
            pitch: 1.0,
            drift,
            brush: 0.0,
            ..PlaneLayout::new(depth, horizon + 1.0, bottom)
        };
        stage.add_field(plane, |x, y| {
            let away = ((y - horizon) / unit).max(0.002);
            // The logarithm crowds the waves towards the horizon, as perspective does.
            let (u, v) = (x / (unit * (0.03 + away * 0.34)), (away * 1.0).ln() * 13.0);
            let swell = cloudy(seed ^ u64::from(sign > 0.0), u, v, 2);
            let strength = smooth(0.0, 0.12, away) * (0.22 + 0.3 * rough.min(1.0));
            let band = smooth(0.13, 0.5, swell * sign.abs());
            (if sign > 0.0 { light } else { dark }, band * strength)
        });
    }
}

/// Far land on the horizon.
fn headlands(stage: &mut SceneBuilder<'_>, horizon: f32) {
    stage.rng.switch_to("headlands", 0.0);
    let (unit, palette, width) = (stage.unit, stage.palette, stage.width);
    let seed = stage.rng.next();
    let side = stage.rng.chance(0.5);
    for (depth, tall, reach, distance) in [(0.14, 0.09, 0.62, 0.78), (0.22, 0.14, 0.36, 0.6)] {
        let tone = palette.lit(palette.rock.tinted(palette.ground, 0.4), distance);
        let lower = tone.mix(palette.haze, 0.4);
        let salt = seed ^ (distance * 100.0) as u64;
        let plane = PlaneLayout::new(depth, horizon - unit * 0.3, horizon + 2.0);
        stage.add_plane(plane, |pen, left, right| {
            let line = SceneBuilder::profile(left, right, 3.0, horizon + 2.0, |x| {
                let at = if side { x / width } else { 1.0 - x / width };
                let fall = smooth(reach, reach * 0.25, at);
                horizon + 1.0
                    - fall * unit * tall * (0.9 + 0.7 * cloudy(salt, x / (unit * 0.3), 0.0, 4))
            });
            let ink = Ink::down(horizon - unit * tall, tone, horizon, lower);
            pen.shape(&line, ink);
        });
    }
}

/// Sand with a wet edge and a line of foam that comes and goes.
fn beach(stage: &mut SceneBuilder<'_>, shore: f32, seats: &[cast::FigurePlace]) {
    stage.rng.switch_to("beach", 0.0);
    let (unit, palette) = (stage.unit, stage.palette);
    let seed = stage.rng.next();
    let edge = move |x: f32| shore + unit * 0.045 * value(seed, x / (unit * 0.8), 0.0);
    let dry = palette
        .lit(palette.sand.lift(0.06), 0.05)
        .mix(palette.glow, 0.1);
    let wet = palette
        .lit(palette.sand.lift(-0.13), 0.05)
        .mix(palette.water.under(palette.light), 0.25);
    let foam = palette
        .lit(Rgb::hex(0xfa_fbfa), 0.0)
        .mix(palette.sky_low, 0.25);
    let bottom = stage.height * 1.2;
    let plane = PlaneLayout::new(0.95, shore - unit * 0.08, bottom);
    stage.add_field(plane, |x, y| {
        let below = y - edge(x);
        let shade = wet.mix_plain(dry, smooth(unit * 0.015, unit * 0.07, below));
        (shade, smooth(-unit * 0.004, unit * 0.006, below))
    });
    let sway = Sway {
        reach: unit * 0.012,
        root: bottom,
        rate: 0.8,
        bend: 14.0 / unit,
    };
    // It runs up the sand when the surf is heard to break.
    let heave = Heave {
        reach: unit * 0.014,
        rate: SURF_RATE,
        phase: 0.0,
    };
    let foamy = PlaneLayout {
        sway: Some(sway),
        heave: Some(heave),
        brush: 0.0,
        ..PlaneLayout::new(0.95, shore - unit * 0.08, shore + unit * 0.1)
    };
    stage.add_field(foamy, |x, y| {
        let below = (y - edge(x)) / unit + 0.008 * value(seed ^ 8, x / (unit * 0.05), 0.0);
        let lace = 0.55 + 0.45 * cloudy(seed ^ 2, x / (unit * 0.02), y / (unit * 0.012), 3);
        let first = smooth(0.012, 0.003, (below - 0.004).abs());
        let second = smooth(0.007, 0.001, (below + 0.026).abs()) * 0.5;
        (foam, (first + second) * lace.clamp(0.0, 1.0) * 0.9)
    });
    cast::place_standing(stage, seats, &|_| true, 1.0, &|x| edge(x) + unit * 0.07);
}

/// A rocky point at one side (`true`: the right) that carries the lighthouse and the figures beside it.
fn cliff(stage: &mut SceneBuilder<'_>, shore: f32, side: bool, seats: &[cast::FigurePlace]) {
    stage.rng.switch_to("cliff", 0.0);
    let (unit, palette, width) = (stage.unit, stage.palette, stage.width);
    let seed = stage.rng.next();
    let crest = move |x: f32| {
        let at = if side { 1.0 - x / width } else { x / width };
        let rise = smooth(0.75, 0.25, at);
        shore + unit * 0.3 - rise * unit * (0.42 + 0.1 * cloudy(seed, x / (unit * 0.2), 0.0, 4))
    };
    let lit = palette.lit(palette.rock.tinted(palette.ground, 0.35).lift(0.05), 0.08);
    let shade = palette.lit(palette.rock.lift(-0.16), 0.08);
    let white = palette.lit(Rgb::hex(0xf2_f6fb), 0.05);
    let snowy = stage.reading.is_snowy();
    let bottom = stage.height * 1.2;
    let plane = PlaneLayout::new(0.95, shore - unit * 0.3, bottom).brushed(0.08);
    stage.add_field(plane, |x, y| {
        let below = y - crest(x);
        let rough = cloudy(seed ^ 6, x / (unit * 0.05), y / (unit * 0.1), 4);
        let dark = smooth(-0.15, 0.2, rough + below / unit * 0.6 - 0.1);
        let lies = smooth(0.07, 0.02, below / unit + 0.04 * rough);
        let tone = lit.mix_plain(shade, dark);
        let tone = if snowy {
            tone.mix_plain(white, lies)
        } else {
            tone
        };
        (tone, (below + 0.5).clamp(0.0, 1.0))
    });
    cast::place_standing(stage, seats, &|_| true, 0.95, &|x| crest(x) + unit * 0.015);
}

/// High waves, far and near, behind boats or before them.
fn surge(stage: &mut SceneBuilder<'_>, nears: [f32; 2], water: (f32, f32)) {
    for near in nears {
        ridge(stage, near, water);
    }
}

fn ridge(stage: &mut SceneBuilder<'_>, near: f32, (horizon, shore): (f32, f32)) {
    let (unit, palette) = (stage.unit, stage.palette);
    let seed = stage.rng.next();
    let base = horizon + (shore - horizon) * near;
    let tall = unit * (0.028 + 0.085 * near);
    let size = unit * (0.16 + 0.42 * near);
    let body = palette.water.under(palette.light);
    let lit = body.mix(palette.sky_low, 0.42 - 0.22 * near);
    let dark = body.lift(-0.09 - 0.03 * near);
    let foam = palette
        .lit(Rgb::hex(0xf4_f8fa), 0.05)
        .mix(palette.sky_low, 0.2);
    // Not all ridges roll the same way.
    let even = ((near * 10.0) as u32).is_multiple_of(2);
    let side = if even { 1.0 } else { -1.0 };
    let plane = PlaneLayout {
        pitch: if near < 0.5 { 1.5 } else { 2.0 },
        drift: side * unit * (0.03 + 0.06 * near),
        heave: Some(Heave {
            reach: tall * 0.5,
            rate: 1.5 - 0.5 * near,
            phase: near * 9.0,
        }),
        brush: 0.04,
        ..PlaneLayout::new(0.3 + 0.6 * near, base - tall * 2.0, base + tall * 2.6)
    };
    stage.add_field(plane, |x, y| {
        let crest = base - tall * (1.5 * ridged(seed, x / size, 3) - 0.35);
        let below = (y - crest) / tall;
        if below < -0.1 {
            return (lit, 0.0);
        }
        let lace = cloudy(seed ^ 5, x / (size * 0.09), y / (tall * 0.3), 3);
        let cap = smooth(0.34 + 0.4 * lace, 0.02, below) * smooth(-0.02, 0.02, below);
        let long = cloudy(seed ^ 9, x / (size * 0.5), y / (tall * 0.22), 3);
        let streak = smooth(0.18, 0.4, long);
        let water = lit
            .mix_plain(dark, smooth(0.0, 1.5, below))
            .mix_plain(foam, streak * 0.22);
        // It sinks back into the level water below.
        let alpha = smooth(-0.04, 0.05, below) * smooth(2.7, 1.4, below);
        (water.mix_plain(foam, cap * 0.85), alpha)
    });
}
