//! What a place sounds like: filtered noise for sea, rain, wind and city, crickets at night,
//! birds by day. Levels glide from shot to shot.

use std::f32::consts::TAU;

use kinora_engine::SAMPLE_RATE_HZ;

use super::super::lexicon::{Hour, Place, Weather};
use super::super::rng::Rng;
use super::super::script::Shot;

/// How loud each source is, 0.0 to 1.0.
#[derive(Clone, Copy, Debug, Default)]
struct Levels {
    sea: f32,
    rain: f32,
    wind: f32,
    crickets: f32,
    birds: f32,
    hum: f32,
}

impl Levels {
    fn of(shot: &Shot) -> Self {
        let reading = &shot.reading;
        let mut levels = Self::default();
        let night = matches!(reading.hour, Some(Hour::Night | Hour::Dusk));
        match reading.place {
            Some(Place::Sea) => levels.sea = 0.9,
            Some(Place::Lake) => levels.sea = 0.3,
            Some(Place::Mountains | Place::Desert | Place::Sky) => levels.wind = 0.6,
            Some(Place::Forest | Place::Hills) if night => levels.crickets = 0.7,
            Some(Place::Forest | Place::Hills) => {
                levels.birds = 0.7;
                levels.wind = 0.22;
            }
            Some(Place::City) => levels.hum = 0.8,
            Some(Place::Underwater) => {
                levels.sea = 0.4;
                levels.hum = 0.5;
            }
            Some(Place::Space) => levels.hum = 0.4,
            Some(Place::Room) => levels.hum = 0.15,
            _ => levels.wind = 0.2,
        }
        if reading.has(Weather::Rain) {
            levels.rain = 0.8;
            levels.birds = 0.0;
        }
        if reading.has(Weather::Storm) {
            levels.rain = 0.9;
            levels.wind = 1.0;
            levels.birds = 0.0;
        }
        if reading.has(Weather::Wind) || reading.has(Weather::Snow) {
            levels.wind = levels.wind.max(0.7);
            levels.birds = 0.0;
        }
        levels
    }

    fn glide(&mut self, goal: &Self, share: f32) {
        let pairs = [
            (&mut self.sea, goal.sea),
            (&mut self.rain, goal.rain),
            (&mut self.wind, goal.wind),
            (&mut self.crickets, goal.crickets),
            (&mut self.birds, goal.birds),
            (&mut self.hum, goal.hum),
        ];
        for (own, goal) in pairs {
            *own += (goal - *own) * share;
        }
    }
}

/// One-pole low-pass filters in a row, one state per use and channel.
#[derive(Clone, Copy, Debug, Default)]
struct Low([f32; 2]);

impl Low {
    /// Two poles at `hz`.
    fn pass(&mut self, input: f32, hz: f32) -> f32 {
        let share = 1.0 - (-TAU * hz / SAMPLE_RATE_HZ as f32).exp();
        self.0[0] += (input - self.0[0]) * share;
        self.0[1] += (self.0[0] - self.0[1]) * share;
        self.0[1]
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Ear {
    sea: Low,
    rain: Low,
    rain_low: Low,
    wind: Low,
    wind_low: Low,
    hum: Low,
}

/// The ambience of a clip.
#[derive(Debug)]
pub(super) struct Ambience {
    /// First sample of each shot and its levels.
    plan: Vec<(usize, Levels)>,
    now: Levels,
    ears: [Ear; 2],
    rng: Rng,
    phase: f32,
    song: [f32; 4],
}

impl Ambience {
    pub(super) fn new(shots: &[Shot], fps: u32, rng: &mut Rng) -> Self {
        let plan: Vec<(usize, Levels)> = shots
            .iter()
            .map(|shot| (super::samples(shot.start, fps), Levels::of(shot)))
            .collect();
        let now = plan.first().map_or_else(Levels::default, |first| first.1);
        let song = [
            rng.range(2.1, 3.2),
            rng.range(0.0, 1.0),
            rng.range(2_600.0, 3_600.0),
            rng.unit(),
        ];
        let phase = rng.range(0.0, TAU);
        Self {
            plan,
            now,
            ears: [Ear::default(); 2],
            rng: rng.fork("noise"),
            phase,
            song,
        }
    }

    /// Left and right at sample `at`; samples are asked for in order.
    pub(super) fn sample(&mut self, at: usize) -> (f32, f32) {
        let goal = self
            .plan
            .iter()
            .rev()
            .find(|(start, _)| *start <= at)
            .map(|found| found.1);
        if let Some(goal) = goal {
            self.now.glide(&goal, 0.000_06);
        }
        let t = at as f32 / SAMPLE_RATE_HZ as f32;
        let point = (self.crickets(t), self.birds(t));
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
            let swell = 0.5 + 0.5 * (t * 0.72 + self.phase - lag).sin();
            let break_ = swell * swell;
            sum += ear.sea.pass(noise, 320.0 + 900.0 * break_) * levels.sea * (0.1 + 0.5 * break_);
        }
        if levels.rain > 0.001 {
            let low = ear.rain_low.pass(noise, 700.0);
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
        sum
    }

    fn crickets(&self, t: f32) -> f32 {
        if self.now.crickets < 0.001 {
            return 0.0;
        }
        let chirp = |rate: f32, hz: f32, offset: f32| {
            let call = ((t * rate + offset).fract() * 3.2).min(1.0);
            let pulse = (call * std::f32::consts::PI).sin().max(0.0);
            let trill = 0.5 - 0.5 * (t * 31.0 * TAU).cos();
            pulse * trill * (t * hz).fract().mul_add(TAU, 0.0).sin()
        };
        let both = chirp(0.9, 4_150.0, 0.0) + 0.6 * chirp(0.73, 4_420.0, 0.4);
        both * 0.014 * self.now.crickets
    }

    /// A short falling and rising call now and then.
    fn birds(&self, t: f32) -> f32 {
        if self.now.birds < 0.001 {
            return 0.0;
        }
        let [pause, offset, hz, _] = self.song;
        let call = |start: f32, hz: f32, long: f32| {
            let since = (t + offset * pause - start).rem_euclid(pause);
            if since >= long {
                return 0.0;
            }
            let share = since / long;
            let envelope = (share * std::f32::consts::PI).sin().powi(2);
            let bend = hz * since + 380.0 * (share * 9.0).sin() * 0.02;
            envelope * (bend.fract() * TAU).sin()
        };
        let song =
            call(0.0, hz, 0.16) + call(0.24, hz * 1.18, 0.11) + 0.7 * call(0.41, hz * 0.92, 0.2);
        song * 0.016 * self.now.birds
    }
}
