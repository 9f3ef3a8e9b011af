//! Sounds of single events: thunder, steps, bangs, bells, crackle. Their times come from the list
//! that the picture uses too; it decides none itself.

use std::f32::consts::TAU;

use kinora_engine::{FrameJob, SAMPLE_RATE_HZ};

use super::track::{LowPass, samples};
use crate::rng::Rng;
use crate::scene::events::{EventKind, FootGround, shot_events};
use crate::script::Shot;

/// The sounds of a clip in order of their beginning.
#[derive(Debug)]
pub(super) struct Foley {
    plan: Vec<(usize, EventKind)>,
    next: usize,
    sounding: Vec<FoleyVoice>,
    rng: Rng,
}

/// A sound while it lasts.
#[derive(Debug)]
struct FoleyVoice {
    kind: EventKind,
    from: usize,
    /// Length, seconds.
    long_s: f32,
    /// Loudness for left and right.
    sides: [f32; 2],
    /// A number by which sounds of one kind differ, 0.0 to 1.0.
    own: f32,
    high: [LowPass; 2],
    low: [LowPass; 2],
    rng: Rng,
}

impl Foley {
    pub(super) fn new(shots: &[Shot], job: &FrameJob<'_>, rng: &Rng) -> Self {
        let (spec, fps) = (job.spec, job.clip.fps);
        let mut plan: Vec<(usize, EventKind)> = Vec::new();
        for shot in shots {
            let start = samples(shot.appears(), fps);
            let events = shot_events(shot, &spec.prompt, spec.seed, fps);
            plan.extend(events.into_iter().map(|event| {
                let after = (event.time_s * SAMPLE_RATE_HZ as f32) as usize;
                (start + after, event.kind)
            }));
        }
        plan.sort_by_key(|(at, _)| *at);
        Self {
            plan,
            next: 0,
            sounding: Vec::new(),
            rng: rng.clone(),
        }
    }

    /// Left and right at sample `at`. Call it for every sample in order.
    pub(super) fn sample(&mut self, at: usize) -> (f32, f32) {
        while let Some((_, kind)) = self.plan.get(self.next).filter(|(from, _)| *from <= at) {
            // Flashes have no sound of their own and are passed over.
            self.next += 1;
            if length_s(*kind) > 0.0 {
                self.sounding
                    .push(FoleyVoice::new(*kind, at, &mut self.rng));
            }
        }
        let mut both = [0.0; 2];
        let mut over = false;
        for voice in &mut self.sounding {
            let since_s = (at - voice.from) as f32 / SAMPLE_RATE_HZ as f32;
            over |= since_s >= voice.long_s;
            for (ear, out) in both.iter_mut().enumerate() {
                *out += voice.value(ear, since_s) * voice.sides[ear];
            }
        }
        if over {
            let rate = SAMPLE_RATE_HZ as f32;
            self.sounding
                .retain(|voice| ((at - voice.from) as f32 / rate) < voice.long_s);
        }
        (both[0], both[1])
    }
}

/// Length of a sound, seconds; 0.0 for events that are only visible.
fn length_s(kind: EventKind) -> f32 {
    match kind {
        EventKind::Flash(_) => 0.0,
        EventKind::Thunder(_) => 5.0,
        EventKind::Step(..) => 0.3,
        EventKind::Burst => 1.8,
        EventKind::Bell => 4.0,
        EventKind::Crackle => 0.08,
    }
}

impl FoleyVoice {
    fn new(kind: EventKind, from: usize, rng: &mut Rng) -> Self {
        let side = match kind {
            EventKind::Step(..) | EventKind::Bell => 0.0,
            _ => rng.signed() * 0.5,
        };
        Self {
            kind,
            from,
            long_s: length_s(kind),
            sides: [1.0 - side.max(0.0), 1.0 + side.min(0.0)],
            own: rng.unit(),
            high: Default::default(),
            low: Default::default(),
            rng: rng.fork("voice"),
        }
    }

    fn value(&mut self, ear: usize, t: f32) -> f32 {
        let noise = self.rng.signed();
        let (high, low) = (&mut self.high[ear], &mut self.low[ear]);
        // Whatever it is, it is over before it is let go.
        let end = ((self.long_s - t) / (self.long_s * 0.2)).clamp(0.0, 1.0);
        let own = self.own;
        end * match self.kind {
            EventKind::Flash(_) => 0.0,
            EventKind::Thunder(near) => thunder(near, own, (high, low), noise, t),
            EventKind::Step(ground, loud) => loud * step(ground, own, (high, low), noise, t),
            EventKind::Burst => burst(own, (high, low), noise, t),
            EventKind::Bell => bell(t),
            EventKind::Crackle => {
                let pop = (t / 0.001).min(1.0) * (-t * (90.0 + 160.0 * own)).exp();
                high.pass(noise, 1_500.0 + 2_500.0 * own) * pop * (0.12 + 0.5 * own * own)
            }
        }
    }
}

/// A crack when it is near, and a roll that comes after it and dies away.
fn thunder(
    near: f32,
    own: f32,
    (high, low): (&mut LowPass, &mut LowPass),
    noise: f32,
    t: f32,
) -> f32 {
    let crack = high.pass(noise, 500.0 + 1_900.0 * near * near);
    let split = (t / 0.004).min(1.0) * (-t * 11.0).exp() * near * near * 0.55;
    let roll = low.pass(noise, 62.0 + 90.0 * near + 60.0 * (-t * 3.0).exp());
    let swell = 0.7 + 0.3 * (t * 7.1 + own * TAU).sin() * (t * 2.7 + own * 4.0).cos();
    let body = (1.0 - (-t * 16.0).exp()) * (-t * (1.25 - 0.5 * own)).exp();
    crack * split + roll * body * swell * (2.6 + 3.4 * near)
}

fn step(
    ground: FootGround,
    own: f32,
    (high, low): (&mut LowPass, &mut LowPass),
    noise: f32,
    t: f32,
) -> f32 {
    let attack = (t / 0.003).min(1.0);
    let bright = high.pass(noise, 2_400.0);
    match ground {
        FootGround::Hard => {
            let heel = attack * (-t * 95.0).exp() * bright * 0.13;
            let thump = attack * (-t * 38.0).exp() * (t * (118.0 + 14.0 * own) * TAU).sin();
            heel + thump * 0.05
        }
        FootGround::Soft => {
            let tread = low.pass(noise, 420.0) * attack * (-t * 30.0).exp();
            tread * 0.42
        }
        FootGround::Snow => {
            let crunch = (t / 0.02).min(1.0) * (-t * 17.0).exp();
            let grains = (0.5 + 0.5 * (t * (61.0 + 20.0 * own) * TAU).sin()).powi(3);
            (bright - low.pass(noise, 700.0)) * crunch * grains * 0.22
        }
    }
}

/// The bang of a shell, and its stars that crackle.
fn burst(own: f32, (high, low): (&mut LowPass, &mut LowPass), noise: f32, t: f32) -> f32 {
    let bang = low.pass(noise, 260.0) * (t / 0.004).min(1.0) * (-t * 7.5).exp() * 1.7;
    let stars = high.pass(noise, 3_600.0);
    // Pops at uneven beats while the stars burn.
    let beat = (t * (31.0 + 9.0 * own) + (t * 17.0).sin()).fract();
    let burning = (t * 6.0 - 0.9).clamp(0.0, 1.0) * (-t * 2.4).exp();
    bang + stars * burning * (-beat * 14.0).exp() * (beat * 40.0).min(1.0) * 0.16
}

/// A church bell: hum, prime, tierce, quint and nominal, the usual
/// partials of minor-third bells, each with its own length.
fn bell(t: f32) -> f32 {
    const PARTIALS: [(f32, f32, f32); 5] = [
        (0.5, 0.5, 0.55),
        (1.0, 0.7, 0.9),
        (1.183, 0.55, 1.2),
        (1.506, 0.3, 1.6),
        (2.0, 0.8, 1.9),
    ];
    let sum: f32 = PARTIALS
        .iter()
        .map(|(ratio, loud, fall)| {
            loud * (-t * fall).exp() * ((t * 311.0 * ratio).fract() * TAU).sin()
        })
        .sum();
    (t / 0.003).min(1.0) * sum * 0.045
}
