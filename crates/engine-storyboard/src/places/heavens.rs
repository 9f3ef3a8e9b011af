//! Lights in the sky: sun and moon with its phases, rainbow, northern lights and shooting stars.
//! The sky behind them is painted elsewhere.

use crate::lexicon::{Hour, Weather};
use crate::raster::colour::{Rgb, smooth};
use crate::raster::lightning::Lightning;
use crate::raster::noise::cloudy;
use crate::raster::particles::{ParticleKind, Particles};
use crate::raster::pen::Pen;
use crate::scene::scene_builder::{PlaneLayout, SceneBuilder, SceneElement};
use crate::subject::Subject;

/// Sides of a moon's drawn limb.
const LIMB: usize = 40;
/// Bulge of a crescent's inner edge, as a share of its radius.
const CRESCENT: f32 = 0.5;

/// Position of sun or moon, stage pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct SkyOrb {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) radius: f32,
    pub(super) shows: bool,
}

/// Draws sun or moon at `orb`, as hour and words say, and also the other one if the words name
/// both.
pub(super) fn paint_orbs(stage: &mut SceneBuilder<'_>, orb: SkyOrb, horizon: f32) {
    let sun = stage.reading.shows(Subject::Sun);
    let moon = stage.reading.shows(Subject::Moon);
    let night = stage.palette.hour == Hour::Night;
    // Words win over the hour: a moon by day, a sun by night. Without words, and if both are named,
    // the hour decides.
    let is_moon = moon && !sun || night && (moon || !sun);
    if orb.shows {
        disc(stage, orb, is_moon);
    }
    if !(sun && moon) {
        return;
    }
    // The other one stands on the other side: a pale moon high up, or a sun that has sunk low.
    let other = SkyOrb {
        x: stage.width - orb.x,
        y: horizon * if is_moon { 0.93 } else { 0.24 },
        radius: stage.unit * 0.042,
        shows: true,
    };
    disc(stage, other, !is_moon);
}

fn disc(stage: &mut SceneBuilder<'_>, orb: SkyOrb, is_moon: bool) {
    let (palette, crescent) = (stage.palette, stage.reading.crescent);
    let night = palette.hour == Hour::Night;
    let halo = orb.radius * if is_moon && !night { 1.6 } else { 3.6 };
    let (face, glow) = match (is_moon, night) {
        (true, true) => (palette.orb, palette.glow),
        // By day the moon is a pale disc, by night a sun is warm all the same.
        (true, false) => (
            Rgb::hex(0xf3_f4ff).mix(palette.sky_top, 0.22),
            palette.sky_low,
        ),
        (false, true) => (Rgb::hex(0xff_d9a0), Rgb::hex(0xf0_8f5a)),
        (false, false) => (palette.orb, palette.glow),
    };
    let plane = PlaneLayout::new(0.05, orb.y - halo, orb.y + halo).brushed(0.0);
    stage.add_plane(plane, |pen, _, _| {
        let strong = if is_moon && !night { 0.3 } else { 1.0 };
        pen.glow(orb.x, orb.y, halo, glow, 0.5 * strong);
        if is_moon && crescent {
            pen.shape(&sickle(orb), face);
            return;
        }
        pen.glow(orb.x, orb.y, orb.radius * 1.7, face, 0.45 * strong);
        pen.circle(orb.x, orb.y, orb.radius, face);
        if is_moon {
            seas(pen, orb, face.mix(palette.sky_middle, 0.22));
        }
    });
}

/// The dark plains of a full moon.
fn seas(pen: &mut Pen, orb: SkyOrb, shade: Rgb) {
    for (dx, dy, r) in [
        (-0.3, -0.2, 0.22),
        (0.25, 0.3, 0.28),
        (0.35, -0.35, 0.14),
        (-0.2, 0.45, 0.12),
    ] {
        let (x, y) = (orb.x + dx * orb.radius, orb.y + dy * orb.radius);
        pen.circle(x, y, r * orb.radius, shade);
    }
}

/// A sickle, its horns up: the lit limb and the flatter edge of the shadow.
fn sickle(orb: SkyOrb) -> Vec<(f32, f32)> {
    let radius = orb.radius * 1.15;
    let edge = |bulge: f32| {
        (0..=LIMB).map(move |nth| {
            let angle = std::f32::consts::PI * (nth as f32 / LIMB as f32 - 0.5);
            (angle.cos() * bulge, angle.sin())
        })
    };
    let (sine, cosine) = (0.5_f32.sin(), 0.5_f32.cos());
    edge(1.0)
        .chain(edge(CRESCENT).rev())
        .map(|(x, y)| {
            let (x, y) = (x * cosine - y * sine, x * sine + y * cosine);
            (orb.x + (x - 0.35) * radius, orb.y + y * radius)
        })
        .collect()
}

/// Paints northern lights, shooting stars, rainbow and lightning above `horizon`, behind all land.
pub(super) fn weather_lights(stage: &mut SceneBuilder<'_>, horizon: f32, orb: SkyOrb) {
    if stage.reading.has_weather(Weather::Aurora) {
        aurora(stage, horizon);
    }
    if stage.reading.has_weather(Weather::Meteors) {
        meteors(stage, horizon);
    }
    if stage.reading.has_weather(Weather::Rainbow) {
        rainbow(stage, horizon, orb);
    }
    let mut rng = stage.rng.fork("lightning");
    let sides = (stage.width, stage.unit);
    if let Some(flashes) = Lightning::behind(&stage.events, horizon, sides, &mut rng) {
        stage.elements.push(SceneElement::Lightning(flashes));
    }
}

/// The colour of a rainbow at `share` of its width, violet inside to red outside.
fn spectrum(share: f32) -> Rgb {
    const BANDS: [u32; 7] = [
        0x8a_4fd0, 0x4a_62e0, 0x3f_b0d8, 0x4f_c86a, 0xf2_e04a, 0xf5_9a3a, 0xe8_4a44,
    ];
    let at = share.clamp(0.0, 1.0) * (BANDS.len() - 1) as f32;
    let left = (at as usize).min(BANDS.len() - 2);
    Rgb::hex(BANDS[left]).mix_plain(Rgb::hex(BANDS[left + 1]), at - left as f32)
}

/// A bow on the side away from the sun, its centre below the horizon.
fn rainbow(stage: &mut SceneBuilder<'_>, horizon: f32, orb: SkyOrb) {
    let unit = stage.unit;
    let left = orb.x < stage.width * 0.5;
    let side = if left { 0.56 } else { 0.44 };
    let (x, y) = (stage.width * side, horizon + unit * 0.08);
    let radius = (horizon * 0.86).min(stage.width * 0.46);
    let wide = radius * 0.12;
    let plane = PlaneLayout {
        pitch: 2.0,
        brush: 0.0,
        ..PlaneLayout::new(0.09, horizon - radius - unit * 0.1, horizon + unit * 0.02)
    };
    stage.add_field(plane, |px, py| {
        // 0.0 at the inner edge of the bow, 1.0 at the outer.
        let away = ((px - x).hypot(py - y) - radius) / wide + 0.5;
        let body = smooth(0.0, 0.16, away) * smooth(1.0, 0.84, away);
        // It is faintest at its feet and fades behind the air near the ground.
        let foot = smooth(0.0, 0.22, (horizon - py) / unit);
        (spectrum(away), body * (0.3 + 0.3 * foot))
    });
}

/// Curtains of light that drift against each other.
fn aurora(stage: &mut SceneBuilder<'_>, horizon: f32) {
    let (green, violet) = (Rgb::hex(0x58_f0a8), Rgb::hex(0x9a_62e8));
    let unit = stage.unit;
    for (layer, (depth, foot, speed)) in
        [(0.05, 0.62, 0.016), (0.07, 0.5, -0.022), (0.09, 0.38, 0.03)]
            .into_iter()
            .enumerate()
    {
        let seed = stage.rng.next() ^ layer as u64;
        let plane = PlaneLayout {
            pitch: 4.0,
            brush: 0.0,
            drift: unit * speed,
            ..PlaneLayout::new(depth, 0.0, horizon)
        };
        stage.add_field(plane, |x, y| {
            let u = x / unit;
            // The lower hem of the curtain hangs in folds; rays stand on it.
            let hem = horizon * (foot + 0.2 * cloudy(seed, u * 1.1, 0.5, 3));
            let up = (hem - y) / (horizon * 0.55);
            let rays = 0.62 + 0.5 * cloudy(seed ^ 7, u * 9.0, up * 0.5, 3);
            let body = smooth(-0.04, 0.05, up) * smooth(1.0, 0.0, up);
            let patch = smooth(-0.6, 0.1, cloudy(seed ^ 3, u * 0.8, 0.1, 2));
            let ink = green.mix_plain(violet, smooth(0.15, 0.85, up));
            (ink, (body * rays * patch * 0.8).clamp(0.0, 1.0))
        });
    }
}

fn meteors(stage: &mut SceneBuilder<'_>, horizon: f32) {
    let (unit, width) = (stage.unit, stage.width);
    let area = [width * 0.1, 0.0, width * 0.75, horizon * 0.45];
    let count = 5;
    let mut rng = stage.rng.fork("meteors");
    let colour = Rgb::hex(0xff_fdf2);
    let falling = Particles::new(ParticleKind::Meteor, count, area, unit, colour, &mut rng);
    stage.add_particles(falling.in_wind(1.0).at_depth(0.05));
}
