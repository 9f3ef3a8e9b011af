//! From a prompt to shots: where it is cut, how long each part stays, and what each one says.
//! It decides times and words; it paints nothing.

use super::lexicon::{Reading, language_of, read_as};
use super::sentences::{Piece, gather, pieces};
use super::subject::Subject;

/// Shortest shot that a cut may leave, seconds.
const SHOT_S_MIN: u32 = 2;
/// Maximum number of shots in a clip.
const SHOTS_MAX: usize = 8;
/// From this length on, a single sentence is seen from two distances, seconds.
const SPLIT_S_MIN: u32 = 8;

/// Length of a cross-dissolve in frames.
pub(crate) fn dissolve_frames(fps: u32) -> u32 {
    fps * 7 / 12
}

/// One shot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shot {
    /// The text of the caption.
    pub(crate) text: String,
    pub(crate) reading: Reading,
    /// First frame, without the dissolve that leads into it.
    pub(crate) start: u32,
    /// The frame after the last.
    pub(crate) end: u32,
    /// How many frames before `start` it begins to show; 0 is a cut.
    pub(crate) dissolve: u32,
    /// A second look at the same scene, from nearer.
    pub(crate) closer: bool,
}

impl Shot {
    /// The first frame in which any of it shows.
    pub(crate) fn appears(&self) -> u32 {
        self.start - self.dissolve
    }

    /// The same shot at the hour that it turns into, if it does.
    pub(crate) fn turned(&self) -> Option<Self> {
        let hour = self.reading.turns?;
        let mut later = self.clone();
        later.reading.hour = Some(hour);
        later.reading.turns = None;
        // There is one light in the sky, and it follows the hour.
        later
            .reading
            .roles
            .retain(|role| !matches!(role.subject, Subject::Sun | Subject::Moon));
        Some(later)
    }
}

/// The parts of a prompt that want a shot each; never empty.
pub(crate) fn beats(prompt: &str) -> Vec<Piece> {
    gather(pieces(&clean(prompt)), SHOTS_MAX)
}

/// The reading of each part of a prompt.
pub(crate) fn beats_read(prompt: &str, avoid: &str) -> Vec<Reading> {
    readings(&beats(prompt), avoid)
}

/// The shots of a clip whose uncut stretches end at the frames `ends`; never empty, without
/// gaps. The prompt's parts are spread over the stretches in order; within one they dissolve.
pub(crate) fn shots(prompt: &str, avoid: &str, ends: &[u32], fps: u32) -> Vec<Shot> {
    let frames = ends.last().copied().unwrap_or(0);
    let least = (SHOT_S_MIN * fps).max(1);
    let room = |frames: u32| ((frames / least) as usize).clamp(1, SHOTS_MAX);
    let pieces = gather(pieces(&clean(prompt)), room(frames).max(ends.len()));
    let (count, stretches) = (pieces.len(), ends.len().max(1));
    let twice = count == 1 && stretches == 1 && frames >= SPLIT_S_MIN * fps;
    let mut told: Vec<Piece> = Vec::new();
    let mut made: Vec<(usize, u32, u32, bool)> = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (nth, end) in ends.iter().enumerate() {
        let from = nth * count / stretches;
        let to = ((nth + 1) * count / stretches).max(from + 1);
        if before != Some(from) {
            let chunk = pieces[from..to].to_vec();
            told.extend(gather(chunk, room(end - start)));
        }
        let first = if before == Some(from) {
            told.len() - 1
        } else {
            made.last().map_or(0, |one| one.0 + 1)
        };
        before = Some(from);
        let weights: Vec<f32> = told[first..].iter().map(weight).collect();
        let parts = if twice {
            vec![frames * 11 / 20, frames]
        } else {
            share_out(&weights, end - start, least)
        };
        let mut at = start;
        for (part, stop) in parts.into_iter().enumerate() {
            let piece = if twice { 0 } else { first + part };
            made.push((piece, at, start + stop, part == 0));
            at = start + stop;
        }
        start = *end;
    }
    label(&made, &told, avoid, fps)
}

fn weight(piece: &Piece) -> f32 {
    (piece.text.chars().count() as f32).clamp(30.0, 160.0)
}

/// Shots from (piece, start, end, begins with a cut) and the pieces that they tell.
fn label(parts: &[(usize, u32, u32, bool)], told: &[Piece], avoid: &str, fps: u32) -> Vec<Shot> {
    let readings = readings(told, avoid);
    let mut made: Vec<Shot> = Vec::new();
    let mut before = None;
    for &(index, start, end, cut) in parts {
        let piece = &told[index];
        let again = before == Some(index);
        let closer = again && made.last().is_some_and(|shot| !shot.closer);
        let dissolve = if cut || piece.cut && !again {
            0
        } else {
            dissolve_frames(fps).min(start)
        };
        made.push(Shot {
            text: piece.text.clone(),
            reading: readings[index].clone(),
            start,
            end,
            dissolve,
            closer,
        });
        before = Some(index);
    }
    made
}

/// Lines that go on over several shots become one.
pub(crate) fn merged(told: Vec<Shot>) -> Vec<Shot> {
    let mut lines: Vec<Shot> = Vec::new();
    for shot in told {
        match lines.last_mut() {
            Some(last) if last.text == shot.text => last.end = shot.end,
            _ => lines.push(shot),
        }
    }
    lines
}

/// The reading of each piece, completed from the ones before it and from those that name no place
/// and so apply to the whole film ("Golden hour, cinematic.").
fn readings(pieces: &[Piece], avoid: &str) -> Vec<Reading> {
    let texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let language = language_of(&texts.join(" "));
    let own: Vec<Reading> = texts
        .iter()
        .map(|text| read_as(language, text, avoid))
        .collect();
    let known: Vec<Subject> = own
        .iter()
        .flat_map(|one| one.roles.iter().map(|role| role.subject))
        .collect();
    let mut film = Reading::default();
    for general in own.iter().filter(|one| one.place.is_none()) {
        film.inherit(&Reading {
            roles: Vec::new(),
            ..general.clone()
        });
    }
    let mut made: Vec<Reading> = Vec::new();
    for mut reading in own.iter().cloned() {
        reading.recognise(&known);
        if let Some(before) = made.last() {
            reading.inherit(before);
        }
        reading.inherit(&film);
        if reading.place.is_none() {
            // "It begins quietly. A boat leaves the harbour.": the first place to come.
            if let Some(next) = own.iter().find(|one| one.place.is_some()) {
                reading.inherit(next);
            }
        }
        reading.act();
        made.push(reading);
    }
    made
}

/// Ends of consecutive parts whose lengths follow `weights`, each at least a short shot long.
fn share_out(weights: &[f32], frames: u32, least: u32) -> Vec<u32> {
    let count = weights.len() as u32;
    let least = least.min(frames / count.max(1));
    let spare = (frames - least * count) as f32;
    let total: f32 = weights.iter().sum::<f32>().max(1.0);
    let mut sum = 0.0;
    let ends = weights.iter().zip(1..).map(|(weight, nth)| {
        sum += weight;
        least * nth + (spare * sum / total).round() as u32
    });
    let mut ends: Vec<u32> = ends.map(|end| end.min(frames)).collect();
    if let Some(last) = ends.last_mut() {
        *last = frames;
    }
    ends
}

/// Text without control and direction marks, white space collapsed.
pub(crate) fn clean(text: &str) -> String {
    let spaced: String = text
        .chars()
        .filter(|c| !(matches!(u32::from(*c), 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff)))
        .map(|c| {
            if c == '\n' || c == '\r' {
                '\n'
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        })
        .collect();
    spaced
        .split('\n')
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::{Hour, Mood, Place, Weather};

    fn texts(prompt: &str, frames: u32) -> Vec<String> {
        shots(prompt, "", &[frames], 24)
            .into_iter()
            .map(|shot| shot.text)
            .collect()
    }

    #[test]
    fn sentences_become_shots_without_gaps() {
        let made = shots(
            "A red boat at sea. A forest in fog! Then the moon over a city.",
            "",
            &[240],
            24,
        );
        assert_eq!(made.len(), 3);
        assert_eq!((made[0].start, made[2].end), (0, 240));
        assert!(made.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(made.iter().all(|shot| shot.end - shot.start >= 48));
        assert_eq!(made[1].reading.place, Some(Place::Forest));
    }

    #[test]
    fn shots_inherit_from_what_went_before_and_from_the_film() {
        let prompt = "A red hot-air balloon over hills at dawn. The balloon above the sea. \
                      Rain over a city at night. All in a calm mood.";
        let made = shots(prompt, "", &[360], 24);
        let read = |index: usize| &made[index].reading;
        assert!(
            made.iter()
                .all(|shot| shot.reading.mood == Some(Mood::Calm))
        );
        assert_eq!(
            (read(0).hour, read(1).hour),
            (Some(Hour::Dawn), Some(Hour::Dawn))
        );
        assert!(!read(0).has(Weather::Rain) && read(2).has(Weather::Rain));
        assert!(read(1).shows(Subject::Balloon) && read(1).roles.len() == 1);
        assert_eq!(
            read(1).colour_of(Subject::Balloon),
            read(0).colour_of(Subject::Balloon)
        );
    }

    #[test]
    fn listed_shots_and_cuts_are_seen() {
        let listed = texts(
            "Shot 1: a boat leaves the pier. Shot 2: waves. Shot 3 - the horizon",
            240,
        );
        assert_eq!(listed, ["a boat leaves the pier.", "waves.", "the horizon"]);
        let made = shots(
            "a quiet lake at dawn, cut to a neon city street",
            "",
            &[240],
            24,
        );
        assert_eq!(made.len(), 2);
        assert_eq!(made[1].dissolve, 0);
        assert_eq!(
            texts("镜头1：大海。镜头2：雪山上的月亮升起来", 240).len(),
            2
        );
    }

    #[test]
    fn captions_are_the_words_of_the_prompt() {
        for prompt in [
            "A boat leaves, and then night falls.",
            "A dog runs, then it sleeps: at last!\nThe end; or not? 然后，结束。",
            "a lake, cut to: a city - at night",
            "大海，然后下雪。山，猫。",
        ] {
            for frames in [48, 120, 240, 360] {
                let mut told = texts(prompt, frames);
                // A single sentence may be looked at twice.
                told.dedup();
                let words = clean(prompt).replace('\n', " ");
                let mut rest = words.as_str();
                for text in told {
                    let at = rest.find(&text);
                    let at = at.unwrap_or_else(|| panic!("{text:?} of {words:?}"));
                    let skipped = &rest[..at];
                    assert!(
                        !skipped.contains(char::is_alphanumeric),
                        "{skipped:?} is lost"
                    );
                    rest = &rest[at + text.len()..];
                }
                assert!(!rest.contains(char::is_alphanumeric), "{rest:?} is lost");
            }
        }
    }

    #[test]
    fn a_short_clip_never_has_more_shots_than_fit() {
        let long = "One thing happens here. ".repeat(40);
        assert_eq!(shots(&long, "", &[48], 24).len(), 1);
        assert!(shots(&long, "", &[120], 24).len() <= 2);
        assert!(shots(&long, "", &[360], 24).len() <= SHOTS_MAX);
    }

    #[test]
    fn hidden_marks_vanish() {
        assert_eq!(clean("a\u{202e}b\u{7}  c\n\n d"), "ab c\nd");
    }
}
