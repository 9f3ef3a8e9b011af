//! The events of a shot and their times (a flash, its thunder, a step), determined by words and
//! seed. Picture and sound both read this one list; it makes neither.

use crate::lexicon::{Motion, Place, Reading, Role, Weather};
use crate::rng::{Rng, hash};
use crate::script::Shot;
use crate::subject::{Act, BodyKind, Stance, Subject};

/// Time without flashes at both ends of a shot, seconds, so that clips join and loop.
const CALM_S: f32 = 0.5;
/// Shortest pause between two flashes, seconds. With one restrike each, no second has more
/// than three (WCAG 2.3.1).
const PAUSE_S: f32 = 1.7;
/// When a flash strikes again, seconds after it began.
const AGAIN_S: f32 = 0.13;
/// Time in which a flash fades to 1/e, seconds.
const GLOW_S: f32 = 0.11;
/// Radians per second of waves that run up a beach, in the picture and in the sound.
pub(crate) const SURF_RATE: f32 = 0.9;

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EventKind {
    Flash(LightningFlash),
    /// Thunder, with the nearness of its flash: 0.0 far to 1.0 overhead.
    Thunder(f32),
    /// A foot or a hoof on the ground, with its loudness.
    Step(FootGround, f32),
    /// A shell of a firework bursts.
    Burst,
    Bell,
    /// A fire spits.
    Crackle,
}

/// One flash of lightning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LightningFlash {
    /// Column, as a share of the frame's width.
    pub(crate) across: f32,
    /// 0.0 far to 1.0 overhead.
    pub(crate) near: f32,
    /// The bolt itself shows, not only its light.
    pub(crate) bolt: bool,
}

/// The ground under feet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FootGround {
    Soft,
    Hard,
    Snow,
}

/// An event and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShotEvent {
    /// Seconds since the shot began to show.
    pub(crate) time_s: f32,
    pub(crate) kind: EventKind,
}

/// The events of `shot`, in order. `whole` is the entire prompt.
pub(crate) fn shot_events(shot: &Shot, whole: &str, seed: u32, fps: u32) -> Vec<ShotEvent> {
    // With the shot's start, so that the same words in two shots do not flash alike.
    let key = hash(whole.as_bytes()) ^ hash(shot.text.as_bytes()).rotate_left(27);
    let rng = Rng::new(u64::from(seed) ^ key ^ u64::from(shot.start).rotate_left(40));
    let shows_s = (shot.start - shot.appears()) as f32 / fps as f32;
    let ends_s = (shot.end - shot.appears()) as f32 / fps as f32;
    let mut events = Vec::new();
    let span = (shows_s, ends_s);
    add_flashes(&shot.reading, span, &mut rng.fork("flashes"), &mut events);
    add_steps(&shot.reading, span, &mut events);
    add_other_events(&shot.reading, span, &mut rng.fork("others"), &mut events);
    events.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    events
}

/// Whether lightning is possible in this place.
fn can_flash(reading: &Reading) -> bool {
    !matches!(
        reading.place,
        Some(Place::Space | Place::Underwater | Place::Room)
    )
}

fn add_flashes(
    reading: &Reading,
    (from, to): (f32, f32),
    rng: &mut Rng,
    events: &mut Vec<ShotEvent>,
) {
    let bolts = reading.has_weather(Weather::Lightning);
    if !(bolts || reading.has_weather(Weather::Storm)) || !can_flash(reading) {
        return;
    }
    // Not at once: the scene is seen before it flashes.
    let mut at = from + CALM_S + rng.range(0.1, 0.6);
    while at < to - CALM_S {
        let near = if bolts {
            rng.range(0.55, 1.0)
        } else {
            rng.range(0.3, 0.6)
        };
        let flash = LightningFlash {
            across: rng.range(0.16, 0.84),
            near,
            bolt: bolts,
        };
        events.push(ShotEvent {
            time_s: at,
            kind: EventKind::Flash(flash),
        });
        // Seconds until the thunder, far fewer than real distances take: it must still belong to
        // its flash.
        let late = 0.12 + 0.75 * (1.0 - near);
        events.push(ShotEvent {
            time_s: at + late,
            kind: EventKind::Thunder(near),
        });
        at += PAUSE_S + rng.range(0.0, 1.5);
    }
}

/// Steps per second and loudness of a walking subject; `None` for others.
fn gait(role: &Role) -> Option<(f32, f32)> {
    let facts = role.subject.facts();
    let (rate, loud) = match (facts.body, facts.stance) {
        (BodyKind::Person, Stance::Walks) => (1.9, 1.0),
        // Small feet are quick and light.
        (BodyKind::Quadruped, Stance::Walks) if facts.size < 0.34 => (4.4, 0.45),
        (BodyKind::Quadruped, Stance::Walks) => (2.4, 1.1),
        _ => return None,
    };
    match role.act.unwrap_or(facts.usual) {
        Act::Walk => Some((rate, loud)),
        Act::Run => Some((rate * 1.8, loud * 1.2)),
        Act::Dance => Some((rate, loud * 0.8)),
        _ => None,
    }
}

fn add_steps(reading: &Reading, (from, to): (f32, f32), events: &mut Vec<ShotEvent>) {
    let walker = reading.roles.iter().find_map(gait);
    let (Some((rate, loud)), false) = (walker, reading.has_motion(Motion::Still)) else {
        return;
    };
    let afloat = matches!(
        reading.place,
        Some(Place::Space | Place::Underwater | Place::Sky | Place::Abstract)
    );
    if afloat {
        return;
    }
    let pace = if reading.has_motion(Motion::Fast) {
        1.5
    } else if reading.has_motion(Motion::Slow) {
        0.75
    } else {
        1.0
    };
    let ground = if reading.has_weather(Weather::Snow) {
        FootGround::Snow
    } else if matches!(reading.place, Some(Place::City | Place::Room)) {
        FootGround::Hard
    } else {
        FootGround::Soft
    };
    // The sound's own rate: feet in the picture follow the distance, which differs from subject to
    // subject.
    let gap = 1.0 / (rate * pace);
    let count = ((to - from) / gap) as u32;
    events.extend((0..count).map(|nth| {
        // Left and right are never quite alike.
        let (late, weak) = if nth % 2 == 1 {
            (0.04, 0.85)
        } else {
            (0.0, 1.0)
        };
        ShotEvent {
            time_s: from + (nth as f32 + 0.35 + late) * gap,
            kind: EventKind::Step(ground, loud * weak),
        }
    }));
}

fn add_other_events(
    reading: &Reading,
    (from, to): (f32, f32),
    rng: &mut Rng,
    events: &mut Vec<ShotEvent>,
) {
    for (subject, kind, first, gap) in [
        (Subject::Fireworks, EventKind::Burst, 0.35, (0.55, 1.1)),
        (Subject::Bell, EventKind::Bell, 0.2, (1.6, 1.9)),
        (Subject::Campfire, EventKind::Crackle, 0.05, (0.03, 0.3)),
    ] {
        if !reading.shows(subject) {
            continue;
        }
        let mut at = from + first;
        while at < to {
            events.push(ShotEvent { time_s: at, kind });
            at += rng.range(gap.0, gap.1);
        }
    }
}

/// Brightness of a flash `since_s` after it began, 0.0 to 1.0.
pub(crate) fn flash_brightness(since_s: f32) -> f32 {
    // A flash and its restrike, as most real ones have.
    stroke_brightness(since_s).max(0.75 * stroke_brightness(since_s - AGAIN_S))
}

/// Brightness of one stroke `since` seconds after it began.
fn stroke_brightness(since: f32) -> f32 {
    if since < 0.0 {
        0.0
    } else {
        (-since / GLOW_S).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::shots;

    fn of(prompt: &str, seed: u32) -> Vec<ShotEvent> {
        let shot = &shots(prompt, "", &[168], 24)[0];
        shot_events(shot, prompt, seed, 24)
    }

    fn times(events: &[ShotEvent], wanted: impl Fn(&EventKind) -> bool) -> Vec<f32> {
        let those = events.iter().filter(|one| wanted(&one.kind));
        those.map(|one| one.time_s).collect()
    }

    #[test]
    fn every_flash_has_its_thunder_and_keeps_away_from_the_ends() {
        for seed in 0..40 {
            let all = of("lightning over the sea", seed);
            let flashes = times(&all, |kind| matches!(kind, EventKind::Flash(_)));
            let thunder = times(&all, |kind| matches!(kind, EventKind::Thunder(_)));
            assert!(flashes.len() >= 2 && flashes.len() == thunder.len());
            for (flash, thunder) in flashes.iter().zip(&thunder) {
                assert!((0.1..1.0).contains(&(thunder - flash)));
            }
            assert!(flashes[0] >= CALM_S && flashes[flashes.len() - 1] <= 7.0 - CALM_S);
            assert!(flashes.windows(2).all(|two| two[1] - two[0] >= PAUSE_S));
            assert_eq!(all, of("lightning over the sea", seed));
        }
        assert_ne!(of("lightning", 1), of("lightning", 2));
    }

    #[test]
    fn nothing_flashes_or_steps_unasked() {
        for prompt in [
            "rain over the sea",
            "a boat",
            "a storm in a room",
            "a man stands still",
        ] {
            assert_eq!(of(prompt, 3), [], "{prompt}");
        }
    }

    #[test]
    fn walkers_step_at_their_pace() {
        let count =
            |prompt: &str| times(&of(prompt, 1), |kind| matches!(kind, EventKind::Step(..))).len();
        let walk = count("a woman walks in the city");
        assert!((11..=14).contains(&walk), "{walk}");
        assert!(count("a woman walks fast in the city") > walk * 4 / 3);
        assert!(count("a horse gallops on a meadow") > walk * 2);
        assert_eq!(count("an astronaut in space"), 0);
    }

    #[test]
    fn a_flash_strikes_at_once_and_goes_out() {
        assert!(flash_brightness(-0.01) == 0.0 && flash_brightness(0.0) == 1.0);
        assert!(
            flash_brightness(0.12) < 0.4
                && flash_brightness(0.14) > 0.6
                && flash_brightness(0.8) < 0.01
        );
    }
}
