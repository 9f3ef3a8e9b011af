//! Weather in front of a scene: rain, snow, fog, dust in the light.

use super::super::colour::{Rgb, smooth};
use super::lexicon::{Hour, Mood, Place, Weather};
use super::noise::cloudy;
use super::particles::{Mark, Particles};
use super::{Plane, Stage};

pub(super) fn weather(stage: &mut Stage<'_>) {
    if matches!(stage.place, Place::Space | Place::Underwater | Place::Room) {
        return;
    }
    let reading = stage.reading;
    let wind = if reading.has(Weather::Storm) {
        0.42
    } else if reading.has(Weather::Wind) {
        0.26
    } else {
        0.07
    };
    if reading.has(Weather::Fog) {
        fog(stage, 0.6);
    }
    if reading.has(Weather::Rain) || reading.has(Weather::Storm) {
        let colour = stage.palette.haze.mix(Rgb::WHITE, 0.45);
        fall(stage, Mark::Rain, 520.0, colour, wind);
    } else if reading.has(Weather::Snowfall) {
        fall(stage, Mark::Snow, 330.0, Rgb::hex(0xf6_f9ff), wind);
    } else if reading.mood == Some(Mood::Dreamy) || stage.palette.hour == Hour::Golden {
        let colour = stage.palette.orb;
        fall(stage, Mark::Dust, 60.0, colour, wind * 0.2);
    }
}

fn fall(stage: &mut Stage<'_>, mark: Mark, density: f32, colour: Rgb, wind: f32) {
    let unit = stage.unit;
    let pad = unit * 0.12;
    let area = [-pad, -pad, stage.width + pad, stage.height + pad];
    let count = (density * stage.width * stage.height / (unit * unit)) as usize;
    let marks = Particles::new(mark, count, area, unit, colour, &mut stage.rng).in_wind(wind);
    stage.particles(marks);
}

/// Banks of mist at different depths, thickest low in the frame.
pub(super) fn fog(stage: &mut Stage<'_>, strength: f32) {
    let (unit, height) = (stage.unit, stage.height);
    let tone = stage.palette.haze.lift(0.03);
    for (depth, size, speed) in [(0.6, 0.7, 0.012), (1.05, 1.1, 0.03)] {
        let seed = stage.rng.next();
        let drift = unit * speed;
        let top = height * 0.2;
        let plane = Plane {
            pitch: 4.0,
            drift,
            brush: 0.0,
            ..Plane::new(depth, top, height * 1.2)
        };
        stage.field(plane, |x, y| {
            let v = ((y - top) / (height - top)).clamp(0.0, 1.0);
            let body = cloudy(seed, x / (unit * size), y / (unit * size * 0.3), 4) + 0.45;
            let alpha =
                strength * smooth(0.1, 0.9, body) * smooth(0.0, 0.45, v) * smooth(1.4, 0.6, v);
            (tone, alpha)
        });
    }
}
