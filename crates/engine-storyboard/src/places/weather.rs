//! Weather in front of a scene: rain, snow, fog, leaves in the wind, dust in the light.

use super::particles;
use crate::lexicon::{Hour, Mood, Place, Reading, Season, Weather};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::lightning::Lightning;
use crate::raster::noise::cloudy;
use crate::raster::particles::{ParticleKind, Particles};
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder, SceneElement};

/// Paints what falls and drifts before a scene.
pub(crate) fn paint_weather(stage: &mut SceneBuilder<'_>) {
    if matches!(
        stage.place,
        Place::Space | Place::Underwater | Place::Room | Place::Table
    ) {
        return;
    }
    let reading = stage.reading;
    let wind = wind(reading);
    if reading.has_weather(Weather::Fog) {
        stage.rng.switch_to("fog", 0.0);
        paint_fog(stage, 0.6);
    // Heavy snow and rain hide the distance even without a word for fog.
    } else if reading.has_weather(Weather::Blizzard) {
        paint_fog(stage, 0.62);
    } else if reading.has_weather(Weather::Downpour) {
        paint_fog(stage, 0.22);
    }
    if reading.is_rainy() {
        let colour = stage.palette.haze.mix(Rgb::WHITE, 0.45);
        fall(
            stage,
            ParticleKind::Rain,
            rain_density(reading),
            colour,
            wind,
        );
    } else if reading.has_weather(Weather::Snowfall) {
        let blizzard = reading.has_weather(Weather::Blizzard);
        let density = if blizzard { 1_000.0 } else { 330.0 };
        let white = Rgb::hex(0xf6_f9ff);
        fall(stage, ParticleKind::Snow, (density, 1.0), white, wind);
    } else if season_leaves(stage, wind) {
        // Leaves and petals take the place of dust.
    } else if reading.mood == Some(Mood::Dreamy) || stage.palette.hour == Hour::Golden {
        let colour = stage.palette.orb;
        fall(stage, ParticleKind::Dust, (60.0, 1.0), colour, wind * 0.2);
    }
    leaves(stage, wind);
    if let Some(flashes) = Lightning::over(&stage.events, (stage.width, stage.unit)) {
        stage.elements.push(SceneElement::Lightning(flashes));
    }
}

/// Strength of the wind, which tilts and carries rain, snow and leaves.
fn wind(reading: &Reading) -> f32 {
    let strongest = [
        (Weather::Blizzard, 0.62),
        (Weather::Storm, 0.42),
        (Weather::Wind, 0.26),
        (Weather::Drizzle, 0.04),
    ];
    strongest
        .iter()
        .find(|(weather, _)| reading.has_weather(*weather))
        .map_or(0.07, |(_, wind)| *wind)
}

/// Streaks of rain on a square of one unit, and their size.
fn rain_density(reading: &Reading) -> (f32, f32) {
    if reading.has_weather(Weather::Downpour) {
        (1_050.0, 1.35)
    } else if reading.has_weather(Weather::Storm) {
        (760.0, 1.15)
    } else if reading.has_weather(Weather::Drizzle) {
        (380.0, 0.5)
    } else {
        (520.0, 1.0)
    }
}

/// Paints falling leaves in autumn and petals in spring where trees grow, and returns whether it
/// did.
fn season_leaves(stage: &mut SceneBuilder<'_>, wind: f32) -> bool {
    let wooded = matches!(
        stage.place,
        Place::Hills | Place::Forest | Place::City | Place::Lake | Place::Mountains
    );
    let (density, colour) = match stage.reading.season {
        Some(Season::Autumn) => (34.0, stage.palette.leaf.under(stage.palette.light)),
        Some(Season::Spring) => (22.0, stage.palette.blossom.under(stage.palette.light)),
        _ => return false,
    };
    if wooded {
        fall(stage, ParticleKind::Leaf, (density, 1.0), colour, wind);
    }
    wooded
}

fn fall(
    stage: &mut SceneBuilder<'_>,
    mark: ParticleKind,
    (density, size): (f32, f32),
    colour: Rgb,
    wind: f32,
) {
    stage.rng.switch_to("fall", 0.0);
    let unit = stage.unit;
    let pad = unit * 0.12;
    let area = [-pad, -pad, stage.width + pad, stage.height + pad];
    // By area in stage units: a wide frame has more drops, not denser rain.
    let count = (density * stage.width * stage.height / (unit * unit)) as usize;
    let marks = particles(stage, mark, count, area, colour).in_wind(wind);
    stage.add_particles(marks.sized(size));
}

/// Paints `rain` streaks or `snow` flakes into `area` behind a window, if it rains or snows.
pub(super) fn paint_behind_window(
    stage: &mut SceneBuilder<'_>,
    area: [f32; 4],
    (rain, snow): (usize, usize),
    depth: f32,
) {
    let (mark, count) = if stage.reading.is_rainy() {
        (ParticleKind::Rain, rain)
    } else if stage.reading.has_weather(Weather::Snowfall) {
        (ParticleKind::Snow, snow)
    } else {
        return;
    };
    let colour = stage.palette.haze.mix(Rgb::WHITE, 0.5);
    let fall = particles(stage, mark, count, area, colour);
    stage.add_particles(fall.at_depth(depth).in_wind(0.06));
}

/// Leaves that the wind carries where trees grow.
fn leaves(stage: &mut SceneBuilder<'_>, wind: f32) {
    let grown = matches!(
        stage.place,
        Place::Forest | Place::Hills | Place::Lake | Place::Mountains
    );
    let dry = stage.reading.has_weather(Weather::Snow) || !stage.reading.has_weather(Weather::Wind);
    if !grown || dry {
        return;
    }
    let palette = stage.palette;
    let (unit, pad) = (stage.unit, stage.unit * 0.1);
    let area = [-pad, -pad, stage.width + pad, stage.height + pad];
    let mut rng = stage.rng.fork("leaves");
    for ink in [Rgb::hex(0xb8_7a30), Rgb::hex(0x7a_8a3a)] {
        let colour = palette.lit(ink, 0.05);
        let marks = Particles::new(ParticleKind::Leaf, 16, area, unit, colour, &mut rng);
        stage.add_particles(marks.in_wind(wind * 1.6));
    }
}

/// Banks of mist at different depths, thickest low in the frame.
pub(super) fn paint_fog(stage: &mut SceneBuilder<'_>, strength: f32) {
    let (unit, height) = (stage.unit, stage.height);
    let tone = stage.palette.haze.lift(0.03);
    for (depth, size, speed) in [(0.6, 0.7, 0.012), (1.05, 1.1, 0.03)] {
        let seed = stage.rng.next();
        let drift = unit * speed;
        let top = height * 0.2;
        let plane = PlaneLayout {
            pitch: 4.0,
            drift,
            brush: 0.0,
            ..PlaneLayout::new(depth, top, height * 1.2)
        };
        stage.add_field(plane, |x, y| {
            let v = ((y - top) / (height - top)).clamp(0.0, 1.0);
            let body = cloudy(seed, x / (unit * size), y / (unit * size * 0.3), 4) + 0.45;
            let alpha =
                strength * smooth(0.1, 0.9, body) * smooth(0.0, 0.45, v) * smooth(1.4, 0.6, v);
            (tone, alpha)
        });
    }
}
