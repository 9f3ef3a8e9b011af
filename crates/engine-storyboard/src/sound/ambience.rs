//! The ambience of a place: filtered noise for sea, rain, wind, fire, motors and city, crickets at
//! night, birds by day. Levels glide from shot to shot. Single events are not in here.

use std::f32::consts::TAU;

use kinora_engine::{FrameJob, SAMPLE_RATE_HZ};

use super::track::{LowPass, samples};
use crate::lexicon::{Hour, Place, Reading, Weather};
use crate::revise::SceneSetting;
use crate::rng::Rng;
use crate::scene::events::SURF_RATE;
use crate::scene::scene_setting;
use crate::script::Shot;
use crate::subject::{BodyKind, Stance, Subject};

/// Loudness of each source, 0.0 to about 1.5.
#[derive(Clone, Copy, Debug, Default)]
struct AmbienceLevels {
    sea: f32,
    rain: f32,
    wind: f32,
    crickets: f32,
    birds: f32,
    hum: f32,
    fire: f32,
    motor: f32,
    rails: f32,
}

impl AmbienceLevels {
    /// Levels of a shot at that hour in that place.
    fn from_reading(reading: &Reading, hour: Hour, place: Place) -> Self {
        let mut levels = Self::default();
        let night = matches!(hour, Hour::Night | Hour::Dusk);
        match place {
            Place::Sea => levels.sea = 0.9,
            Place::Lake => levels.sea = 0.3,
            Place::Mountains | Place::Desert | Place::Sky => levels.wind = 0.6,
            Place::Forest | Place::Hills if night => levels.crickets = 0.7,
            Place::Forest | Place::Hills => {
                levels.birds = 0.7;
                levels.wind = 0.22;
            }
            Place::City => levels.hum = 0.8,
            Place::Underwater => {
                levels.sea = 0.4;
                levels.hum = 0.5;
            }
            Place::Space => levels.hum = 0.4,
            Place::Room | Place::Table => levels.hum = 0.15,
            Place::Abstract => levels.wind = 0.2,
        }
        if !matches!(place, Place::Space | Place::Underwater) {
            levels.weather(reading, place == Place::Room);
        }
        levels.subjects(reading);
        levels
    }

    fn weather(&mut self, reading: &Reading, inside: bool) {
        let storm = reading.has_weather(Weather::Storm);
        if storm || reading.has_weather(Weather::Rain) {
            self.rain = if reading.has_weather(Weather::Downpour) {
                1.5
            } else if storm {
                1.05
            } else if reading.has_weather(Weather::Drizzle) {
                0.4
            } else {
                0.8
            };
        }
        if storm {
            self.wind = 1.0;
            self.sea *= 1.3;
        }
        if reading.has_weather(Weather::Blizzard) {
            self.wind = 1.25;
        } else if reading.has_weather(Weather::Wind) || reading.has_weather(Weather::Snow) {
            self.wind = self.wind.max(0.7);
        }
        if self.rain > 0.0 || self.wind > 0.65 {
            // Nothing sings in bad weather.
            (self.birds, self.crickets) = (0.0, 0.0);
        }
        if inside {
            self.rain *= 0.5;
            self.wind *= 0.3;
        }
    }

    fn subjects(&mut self, reading: &Reading) {
        for role in &reading.roles {
            let facts = role.subject.facts();
            let motor = match (role.subject, facts.body, facts.stance) {
                (Subject::Campfire | Subject::Volcano, ..) => {
                    self.fire = 0.8;
                    0.0
                }
                (Subject::Train | Subject::Tram, ..) => {
                    self.rails = 0.9;
                    0.0
                }
                (Subject::Rocket, ..) => 1.0,
                (Subject::Helicopter | Subject::Motorcycle | Subject::Tractor, ..) => 0.9,
                (Subject::Plane | Subject::Airship | Subject::Drone, ..) => 0.6,
                (Subject::Bicycle, ..) => 0.0,
                (_, BodyKind::Vehicle, Stance::Rolls) => 0.8,
                _ => 0.0,
            };
            self.motor = self.motor.max(motor);
            if matches!(role.subject, Subject::Waterfall | Subject::Fountain) {
                self.sea = self.sea.max(0.5);
            }
        }
    }

    fn glide(&mut self, goal: &Self, share: f32) {
        let pairs = [
            (&mut self.sea, goal.sea),
            (&mut self.rain, goal.rain),
            (&mut self.wind, goal.wind),
            (&mut self.crickets, goal.crickets),
            (&mut self.birds, goal.birds),
            (&mut self.hum, goal.hum),
            (&mut self.fire, goal.fire),
            (&mut self.motor, goal.motor),
            (&mut self.rails, goal.rails),
        ];
        for (own, goal) in pairs {
            *own += (goal - *own) * share;
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct EarFilters {
    sea: LowPass,
    rain: LowPass,
    rain_low: LowPass,
    wind: LowPass,
    wind_low: LowPass,
    hum: LowPass,
    fire: LowPass,
    motor: LowPass,
    rails: LowPass,
}

/// A shot's levels and the sample at which they begin.
#[derive(Clone, Copy, Debug)]
struct AmbienceSegment {
    /// Its first sample, and the one at which its picture began to move.
    start: usize,
    appears: usize,
    levels: AmbienceLevels,
}

/// The ambience of a clip.
#[derive(Debug)]
pub(super) struct Ambience {
    plan: Vec<AmbienceSegment>,
    now: AmbienceLevels,
    /// How far the waves have run up the beach, 0.0 to 1.0, for each ear.
    surf: [f32; 2],
    ears: [EarFilters; 2],
    rng: Rng,
    phase: f32,
    song: [f32; 3],
}

impl Ambience {
    pub(super) fn new(shots: &[Shot], job: &FrameJob<'_>, rng: &mut Rng) -> Self {
        let (spec, fps) = (job.spec, job.clip.fps);
        let plan: Vec<AmbienceSegment> = shots
            .iter()
            .map(|shot| {
                let SceneSetting { hour, place } = scene_setting(shot, &spec.prompt, spec.seed);
                AmbienceSegment {
                    start: samples(shot.start, fps),
                    appears: samples(shot.appears(), fps),
                    levels: AmbienceLevels::from_reading(&shot.reading, hour, place),
                }
            })
            .collect();
        let now = plan
            .first()
            .map_or_else(AmbienceLevels::default, |one| one.levels);
        let song = [
            rng.range(2.1, 3.2),
            rng.range(0.0, 1.0),
            rng.range(2_600.0, 3_600.0),
        ];
        let phase = rng.range(0.0, TAU);
        Self {
            plan,
            now,
            surf: [0.5; 2],
            ears: [EarFilters::default(); 2],
            rng: rng.fork("noise"),
            phase,
            song,
        }
    }

    /// Left and right at sample `at`. Call it for every sample in order.
    pub(super) fn sample(&mut self, at: usize) -> (f32, f32) {
        let rate = SAMPLE_RATE_HZ as f32;
        let here = self
            .plan
            .iter()
            .rev()
            .find(|part| part.start <= at)
            .copied();
        if let Some(part) = here {
            // For each sample: at 48 kHz a time constant of a third of a second.
            self.now.glide(&part.levels, 0.000_06);
            let shown_s = (at - part.appears.min(at)) as f32 / rate;
            for (ear, surf) in self.surf.iter_mut().enumerate() {
                let goal = 0.5 + 0.5 * (SURF_RATE * shown_s - 0.3 * ear as f32).sin();
                // A cut does not tear a wave apart.
                // A time constant of 50 ms.
                *surf += (goal - *surf) * 0.000_4;
            }
        }
        let t = at as f32 / rate;
        // Sources with a place: crickets more to the left, birds and rails more to the right. Noise
        // is different in each ear.
        let point = (self.crickets(t), self.birds(t) + self.clatter(t));
        let mut both = [0.0; 2];
        for (index, out) in both.iter_mut().enumerate() {
            let noise = self.rng.signed();
            *out = self.field(index, noise, t)
                + if index == 0 {
                    point.0 + point.1 * 0.6
                } else {
                    point.0 * 0.7 + point.1
                };
        }
        (both[0], both[1])
    }

    /// The noises of one ear.
    fn field(&mut self, index: usize, noise: f32, t: f32) -> f32 {
        let levels = self.now;
        let lag = index as f32 * 0.35;
        let ear = &mut self.ears[index];
        let mut sum = 0.0;
        if levels.sea > 0.001 {
            let break_ = self.surf[index] * self.surf[index];
            sum += ear.sea.pass(noise, 320.0 + 900.0 * break_) * levels.sea * (0.1 + 0.5 * break_);
        }
        if levels.rain > 0.001 {
            let low = ear.rain_low.pass(noise, 700.0);
            // A low-pass minus a lower one is a band: here 700 Hz to 5.2 kHz.
            sum += (ear.rain.pass(noise, 5_200.0) - low) * levels.rain * 0.09;
        }
        if levels.wind > 0.001 {
            let gust =
                0.5 + 0.3 * (t * 0.5 + self.phase + lag).sin() + 0.2 * (t * 1.13 + lag).sin();
            let band = ear.wind.pass(noise, 260.0 + 420.0 * gust) - ear.wind_low.pass(noise, 120.0);
            sum += band * levels.wind * (0.08 + 0.5 * gust * gust);
        }
        if levels.hum > 0.001 {
            let low = ear.hum.pass(noise, 130.0) * 1.1;
            sum += (low + 0.006 * (t * 110.0 * TAU).sin()) * levels.hum;
        }
        if levels.fire > 0.001 {
            let flare = 0.7 + 0.3 * (t * 2.3 + lag).sin() * (t * 0.9).sin();
            sum += ear.fire.pass(noise, 240.0) * levels.fire * 0.35 * flare;
        }
        if levels.motor > 0.001 {
            // Whole turns are dropped before the sine, which loses precision for large angles.
            let [low, middle, high] = [58.0, 87.0, 116.0].map(|hz| ((t * hz).fract() * TAU).sin());
            let tone = low + 0.5 * middle + 0.3 * high;
            let road = ear.motor.pass(noise, 380.0) * 0.45;
            sum += (road + 0.02 * tone) * levels.motor;
        }
        if levels.rails > 0.001 {
            sum += ear.rails.pass(noise, 210.0) * levels.rails * 0.6;
        }
        sum
    }

    /// Wheels over the joints of rails, two by two.
    fn clatter(&self, t: f32) -> f32 {
        if self.now.rails < 0.001 {
            return 0.0;
        }
        // Two pairs of knocks.
        let [a, b, c, d] = [0.0, 0.13, 0.42, 0.42 + 0.13].map(|offset| {
            let since = (t + 1.1 - offset).rem_euclid(1.1);
            let attack = (since / 0.004).min(1.0);
            attack * (-since * 34.0).exp() * (since * 190.0 * TAU).sin()
        });
        ((a + 0.8 * b) + (c + 0.8 * d)) * 0.06 * self.now.rails
    }

    fn crickets(&self, t: f32) -> f32 {
        if self.now.crickets < 0.001 {
            return 0.0;
        }
        let [near, far] = [(0.9, 4_150.0, 0.0), (0.73, 4_420.0, 0.4)].map(|(rate, hz, offset)| {
            let call = ((t * rate + offset).fract() * 3.2).min(1.0);
            let pulse = (call * std::f32::consts::PI).sin().max(0.0);
            // Crickets rub their wings some thirty times a second.
            let trill = 0.5 - 0.5 * (t * 31.0 * TAU).cos();
            pulse * trill * (t * hz).fract().mul_add(TAU, 0.0).sin()
        });
        (near + 0.6 * far) * 0.014 * self.now.crickets
    }

    /// A short falling and rising call now and then.
    fn birds(&self, t: f32) -> f32 {
        if self.now.birds < 0.001 {
            return 0.0;
        }
        let [pause, offset, hz] = self.song;
        let calls = [
            (0.0, hz, 0.16),
            (0.24, hz * 1.18, 0.11),
            (0.41, hz * 0.92, 0.2),
        ];
        let [first, second, third] = calls.map(|(start, hz, long)| {
            let since = (t + offset * pause - start).rem_euclid(pause);
            if since >= long {
                return 0.0;
            }
            let share = since / long;
            let envelope = (share * std::f32::consts::PI).sin().powi(2);
            let bend = hz * since + 380.0 * (share * 9.0).sin() * 0.02;
            envelope * (bend.fract() * TAU).sin()
        });
        (first + second + 0.7 * third) * 0.016 * self.now.birds
    }
}
