//! The sky: gradient, sun or moon, stars, clouds, and the glow that lies over the land.

use super::heavens::{self, SkyOrb};
use super::{cast, particles};
use crate::lexicon::{Framing, Hour, Weather};
use crate::raster::colour::smooth;
use crate::raster::noise::cloudy;
use crate::raster::particles::ParticleKind;
use crate::raster::wash::WashBlend;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder};

/// Paints the sky down to `horizon` (stage pixels) and returns the position of the light.
pub(super) fn paint_sky(stage: &mut SceneBuilder<'_>, horizon: f32) -> SkyOrb {
    stage.rng.switch_to("sky", 0.0);
    // First: the gradient brightens around it.
    let orb = place_orb(stage, horizon);
    let palette = stage.palette;
    let reach = stage.unit * 0.8;
    let strength = match palette.hour {
        Hour::Day => 0.35,
        Hour::Night => 0.3,
        _ => 0.75,
    };
    stage.add_wash(0.04, WashBlend::Cover, 0.0, |x, y| {
        let v = (y / horizon).clamp(0.0, 1.0);
        let base = if v < 0.6 {
            palette
                .sky_top
                .mix(palette.sky_middle, smooth(0.0, 0.62, v))
        } else {
            palette
                .sky_middle
                .mix(palette.sky_low, smooth(0.52, 1.0, v))
        };
        let away = ((x - orb.x) * 0.8).hypot(y - orb.y) / reach;
        base.mix(palette.glow, strength * (-away * away * 3.2).exp())
    });
    let covered = [Weather::Rain, Weather::Storm, Weather::Fog, Weather::Clouds];
    if palette.is_dark() && !has_any_weather(stage, &covered) {
        stage.rng.switch_to("stars", 0.0);
        let night = palette.hour == Hour::Night;
        add_stars(stage, horizon, if night { 1.0 } else { 0.3 });
    }
    heavens::paint_orbs(stage, orb, horizon);
    clouds(stage, horizon);
    heavens::weather_lights(stage, horizon, orb);
    orb
}

fn place_orb(stage: &mut SceneBuilder<'_>, horizon: f32) -> SkyOrb {
    let side = if stage.rng.chance(0.5) { 0.68 } else { 0.3 };
    let x = stage.width * (side + stage.rng.signed() * 0.07);
    let asked = stage.reading.roles.iter().any(|role| role.subject.is_orb());
    // A sky that is covered hides sun and moon, unless the words name them.
    let grey = [
        Weather::Rain,
        Weather::Storm,
        Weather::Fog,
        Weather::Blizzard,
    ];
    let grey = has_any_weather(stage, &grey);
    let (height, radius, usual) = match stage.palette.hour {
        Hour::Dawn => (0.74, 0.055, true),
        Hour::Golden => (0.8, 0.075, true),
        Hour::Dusk => (0.93, 0.06, true),
        Hour::Day => (0.2, 0.05, asked),
        Hour::Night => (0.28, 0.052, true),
    };
    SkyOrb {
        x,
        y: horizon * height,
        radius: stage.unit * radius,
        shows: asked || (usual && !grey),
    }
}

pub(super) fn add_stars(stage: &mut SceneBuilder<'_>, bottom: f32, share: f32) {
    let sky = stage.width * bottom / (stage.unit * stage.unit);
    let count = (260.0 * share * sky) as usize;
    let colour = stage.palette.orb.mix(stage.palette.glow, 0.2);
    // A little wider than the frame, because the camera pans.
    let pad = -stage.unit * 0.05;
    let area = [pad, pad, stage.width * 1.05, bottom];
    let stars = particles(stage, ParticleKind::Star, count, area, colour);
    stage.add_particles(stars.at_depth(0.04));
}

fn has_any_weather(stage: &SceneBuilder<'_>, wanted: &[Weather]) -> bool {
    let mut wanted = wanted.iter();
    wanted.any(|weather| stage.reading.has_weather(*weather))
}

fn clouds(stage: &mut SceneBuilder<'_>, horizon: f32) {
    stage.rng.switch_to("clouds", 0.0);
    let reading = stage.reading;
    if reading.has_weather(Weather::Clear) {
        return;
    }
    let chance = stage.rng.range(-0.16, 0.02);
    let heavy = [
        Weather::Clouds,
        Weather::Rain,
        Weather::Storm,
        Weather::Snowfall,
    ];
    let closed = [Weather::Blizzard, Weather::Downpour, Weather::Storm];
    let amount = if has_any_weather(stage, &closed) {
        0.45
    } else if reading.has_weather(Weather::Aurora) {
        -0.3
    } else if has_any_weather(stage, &heavy) {
        0.2
    } else {
        chance
    };
    let windy = has_any_weather(stage, &[Weather::Wind, Weather::Storm]);
    let wind = if windy { 2.2 } else { 1.0 };
    let lapse = reading.has_framing(Framing::Timelapse);
    let lapse = if lapse { 9.0 } else { 1.0 };
    for (depth, size, speed) in [(0.08, 0.36, 0.006), (0.14, 0.62, 0.011)] {
        let seed = stage.rng.next();
        let (unit, palette) = (stage.unit, stage.palette);
        let drift = unit * speed * wind * lapse;
        let plane = PlaneLayout {
            pitch: 2.0,
            drift,
            brush: 0.02,
            ..PlaneLayout::new(depth, -unit * 0.1, horizon)
        };
        let night = palette.hour == Hour::Night;
        let night = if night { 0.55 } else { 0.92 };
        stage.add_field(plane, |x, y| {
            let v = (y / horizon).clamp(0.0, 1.0);
            // Clouds lie flatter and closer together towards the horizon.
            let flat = 1.0 + 2.4 * v;
            let (u, w) = (x / (unit * size), y * flat / (unit * size * 0.42));
            // Noise shifted by other noise frays the edges of clouds.
            let warp = cloudy(seed ^ 77, u * 0.7, w * 0.7, 2) * 0.5;
            let body = cloudy(seed, u + warp, w, 5) + amount - 0.06 - 0.22 * (v - 0.5).abs();
            let alpha = smooth(0.0, 0.2, body) * smooth(1.0, 0.8, v) * night;
            if alpha <= 0.002 {
                return (palette.cloud, 0.0);
            }
            // The noise a little higher up: where a cloud has more of itself above, it lies in its
            // own shade.
            let above = cloudy(seed, u + warp, w - 0.16, 3) + amount - 0.1;
            let shade = smooth(-0.12, 0.3, above);
            (palette.cloud.mix_plain(palette.cloud_shade, shade), alpha)
        });
    }
}

/// Light from sun or moon lying over everything painted so far.
pub(super) fn add_bloom(stage: &mut SceneBuilder<'_>, (orb_x, orb_y): (f32, f32), strength: f32) {
    let (palette, reach) = (stage.palette, stage.unit * 0.62);
    let strength = strength
        * match palette.hour {
            Hour::Day => 0.5,
            Hour::Night => 0.35,
            _ => 1.0,
        };
    stage.add_wash(0.1, WashBlend::Light, 0.12, |x, y| {
        let away = (x - orb_x).hypot((y - orb_y) * 1.2) / reach;
        let share = strength * (-away * away * 2.2).exp();
        palette.glow.scaled(share)
    });
}

/// Paints the view above a sea of clouds.
pub(super) fn paint_above_clouds(stage: &mut SceneBuilder<'_>) {
    let horizon = stage.height * 0.62;
    let orb = paint_sky(stage, horizon);
    let (unit, palette) = (stage.unit, stage.palette);
    for bank in 0..4 {
        let near = bank as f32 / 3.0;
        let depth = 0.2 + near * 0.9;
        let top = horizon - unit * 0.05 + (stage.height - horizon) * near * 0.8;
        let seed = stage.rng.next();
        let drift = unit * (0.008 + 0.02 * near);
        let plane = PlaneLayout {
            pitch: 2.0,
            drift,
            ..PlaneLayout::new(depth, top - unit * 0.22, stage.height * 1.2)
        };
        stage.add_field(plane, |x, y| {
            let size = unit * (0.3 + 0.4 * near);
            let crest = cloudy(seed, x / size, 0.3, 4).abs() * unit * 0.16;
            let below = y - (top - crest)
                + cloudy(seed ^ 5, x / size * 4.0, y / size * 4.0, 3) * unit * 0.03;
            let alpha = smooth(0.0, unit * 0.012, below);
            let shade = smooth(0.0, unit * 0.2, below);
            let lit = palette
                .cloud
                .mix_plain(palette.cloud_shade, 0.15 + 0.75 * shade);
            (lit.mix_plain(palette.haze, 0.4 * (1.0 - near)), alpha)
        });
        if bank == 1 {
            add_bloom(stage, (orb.x, orb.y), 0.5);
            cast::place_fliers(stage, horizon, orb.x);
        }
    }
}
