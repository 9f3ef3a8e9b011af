//! From a prompt to shots: where it is cut (numbered shots, sentences, "then" and "cut to"), how long each part stays,
//! and what each one says. It decides times and words; it paints nothing.

use kinora_contract::VideoSpec;

use crate::lexicon::{Reading, language_of, read_as};
use crate::subject::Subject;

/// Shortest shot that a cut may leave, seconds.
const SHOT_S_MIN: u32 = 2;
/// Maximum number of shots in a clip.
const SHOTS_MAX: usize = 8;
/// Minimum length of a clip that shows a single sentence from two distances, seconds.
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

    /// The shot at the hour that it turns into, if it does.
    pub(crate) fn at_turned_hour(&self) -> Option<Self> {
        let hour = self.reading.turns?;
        let mut later = self.clone();
        later.reading.hour = Some(hour);
        later.reading.turns = None;
        // There is one light in the sky, and it follows the hour.
        later.reading.roles.retain(|role| !role.subject.is_orb());
        Some(later)
    }
}

/// The words for things that `spec` excludes.
pub(crate) fn avoided(spec: &VideoSpec) -> &str {
    spec.negative_prompt.as_deref().unwrap_or_default()
}

/// The parts of a prompt that want a shot each; never empty.
pub(crate) fn beats(prompt: &str) -> Vec<PromptPiece> {
    join_pieces(pieces(&clean(prompt)), SHOTS_MAX)
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
    let pieces = join_pieces(pieces(&clean(prompt)), room(frames).max(ends.len()));
    let (count, stretches) = (pieces.len(), ends.len().max(1));
    // A single sentence over a long clip is seen twice, the second time from nearer, for 11 and 9
    // of 20 parts of the time.
    let twice = count == 1 && stretches == 1 && frames >= SPLIT_S_MIN * fps;
    let mut told: Vec<PromptPiece> = Vec::new();
    let mut made: Vec<(usize, u32, u32, bool)> = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (nth, end) in ends.iter().enumerate() {
        let from = nth * count / stretches;
        let to = ((nth + 1) * count / stretches).max(from + 1);
        // A source may have more stretches than the prompt has pieces. A piece that goes on over
        // several is gathered once, and the later stretches point to it.
        if before != Some(from) {
            let chunk = pieces[from..to].to_vec();
            told.extend(join_pieces(chunk, room(end - start)));
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
    make_shots(&made, &told, avoid, fps)
}

fn weight(piece: &PromptPiece) -> f32 {
    (piece.text.chars().count() as f32).clamp(30.0, 160.0)
}

/// Shots from (piece, start, end, begins with a cut) and the pieces that they tell.
fn make_shots(
    parts: &[(usize, u32, u32, bool)],
    told: &[PromptPiece],
    avoid: &str,
    fps: u32,
) -> Vec<Shot> {
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
pub(crate) fn merge_lines(told: Vec<Shot>) -> Vec<Shot> {
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
fn readings(pieces: &[PromptPiece], avoid: &str) -> Vec<Reading> {
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
        // Without its subjects: "A dog. Golden hour." does not put the dog into other shots.
        film.inherit(&Reading {
            roles: Vec::new(),
            ..general.clone()
        });
    }
    let mut made: Vec<Reading> = Vec::new();
    for mut reading in own.iter().cloned() {
        // Before inheriting: a later shot must not add what an earlier one already calls by a
        // longer name.
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
        reading.assign_loose_acts();
        made.push(reading);
    }
    made
}

/// Ends of consecutive parts whose lengths follow `weights`, each at least a short shot long.
fn share_out(weights: &[f32], frames: u32, least: u32) -> Vec<u32> {
    let count = weights.len() as u32;
    let least = least.min(frames / count.max(1));
    // Only what is left after everybody's minimum follows the weights.
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
fn clean(text: &str) -> String {
    let spaced: String = text
        .chars()
        // Zero-width characters and direction marks could hide or reorder the letters of a caption.
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

/// One piece of the prompt and how it is reached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PromptPiece {
    /// The words of the prompt.
    pub(crate) text: String,
    /// Text between this piece and the one before.
    gap: String,
    cut: bool,
    /// The prompt itself numbers it: it stays a shot of its own if it can.
    listed: bool,
}

/// Markers of listed shots ("Shot 2:", "镜头二："), each as (start, end) in bytes.
fn markers(text: &str) -> Vec<(usize, usize)> {
    const NAMES: [&str; 9] = [
        "shot",
        "scene",
        "镜头",
        "场景",
        "plano",
        "escena",
        "plan",
        "szene",
        "シーン",
    ];
    let mut found = Vec::new();
    for (at, _) in text.char_indices() {
        let begins = text[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric());
        let rest = &text[at..];
        let name = NAMES.iter().find(|name| {
            rest.get(..name.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(name))
        });
        let (Some(name), true) = (name, begins) else {
            continue;
        };
        let tail = rest[name.len()..].trim_start_matches([' ', '#']);
        let after = tail
            .trim_start_matches(|c: char| c.is_ascii_digit() || "一二三四五六七八九十".contains(c));
        let numbered = after.len() < tail.len();
        let after = after.trim_start_matches(' ');
        if numbered && after.starts_with([':', '：', '.', '-', '、', ')']) {
            let sign = after.chars().next().map_or(0, char::len_utf8);
            found.push((at, text.len() - after.len() + sign));
        }
    }
    found
}

/// The pieces of `text` in order: listed shots, else sentences and turns.
fn pieces(text: &str) -> Vec<PromptPiece> {
    let marks = markers(text);
    // One marker makes no list: "Shot 1: …" alone is a sentence.
    if marks.len() >= 2 {
        return listed(text, &marks);
    }
    let mut pieces = PieceCollector::new(text);
    let (mut from, mut cut) = (0, false);
    while from < text.len() {
        let (end, next, cuts) = boundary(&text[from..]);
        if pieces.push(from, from + end, cut, false) {
            cut = false;
        }
        cut |= cuts;
        from += next;
    }
    pieces.all
}

/// Pieces of a list of shots. Listed shots dissolve into each other unless the words ask for a cut.
fn listed(text: &str, marks: &[(usize, usize)]) -> Vec<PromptPiece> {
    let ends = marks.iter().skip(1).map(|mark| mark.0).chain([text.len()]);
    let mut pieces = PieceCollector::new(text);
    for (mark, end) in marks.iter().zip(ends) {
        pieces.push(mark.1, end, asks_cut(&text[mark.1..end]), true);
    }
    pieces.all
}

/// Pieces of a text, in the making.
struct PieceCollector<'a> {
    text: &'a str,
    /// End of the last piece, in bytes.
    end: usize,
    all: Vec<PromptPiece>,
}

impl<'a> PieceCollector<'a> {
    fn new(text: &'a str) -> Self {
        let (end, all) = (0, Vec::new());
        Self { text, end, all }
    }

    /// Adds the words of a stretch; false where it has none.
    fn push(&mut self, from: usize, to: usize, cut: bool, listed: bool) -> bool {
        let stretch = self.text[from..to].trim_end();
        // Signs before the words belong to the gap, from which `join_pieces` restores them when it joins
        // pieces.
        let words = stretch.trim_start_matches([',', '，', ':', '-', ' ', '\n']);
        if words.is_empty() {
            return false;
        }
        let end = from + stretch.len();
        self.all.push(PromptPiece {
            text: words.replace('\n', " "),
            gap: self.text[self.end..end - words.len()].replace('\n', " "),
            cut,
            listed,
        });
        self.end = end;
        true
    }
}

fn asks_cut(text: &str) -> bool {
    let lower = text.to_lowercase();
    ["cut to", "hard cut", "smash cut", "切到"]
        .iter()
        .any(|words| lower.contains(words))
}

/// The end of the first sentence of `text`, where the next begins, and whether a cut is asked. Words that turn to
/// the next shot belong to it.
fn boundary(text: &str) -> (usize, usize, bool) {
    const TURNS: [(&str, bool); 10] = [
        ("cut to:", true),
        ("cut to ", true),
        ("hard cut ", true),
        ("切到", true),
        (", then ", false),
        ("and then ", false),
        ("，然后", false),
        (", dann ", false),
        (", puis ", false),
        (", luego ", false),
    ];
    for (at, c) in text.char_indices() {
        let after = at + c.len_utf8();
        let next = text[after..].chars().next();
        let ends = match c {
            '。' | '！' | '？' | '；' | '\n' => true,
            // Within a number or a name ("3.5", "U.S.A") a full stop ends nothing.
            '.' | '!' | '?' | ';' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends {
            return (after, after, false);
        }
        for (turn, cut) in TURNS {
            let here = text.get(at..at + turn.len());
            if at > 0 && here.is_some_and(|here| here.eq_ignore_ascii_case(turn)) {
                let words = turn.trim_start_matches([',', '，', ' ']);
                return (at, at + turn.len() - words.len(), cut);
            }
        }
    }
    (text.len(), text.len(), false)
}

/// Joins neighbours until at most `room` pieces are left, shortest pairs first.
fn join_pieces(mut pieces: Vec<PromptPiece>, room: usize) -> Vec<PromptPiece> {
    loop {
        let pair = (1..pieces.len())
            .min_by_key(|&at| character_count(&pieces[at - 1]) + character_count(&pieces[at]));
        // Fewer than eight characters are a heading or an exclamation, which deserves no shot of
        // its own even if there is room.
        let tiny = pieces
            .iter()
            .any(|piece| character_count(piece) < 8 && !piece.listed);
        let Some(at) = pair.filter(|_| pieces.len() > room || tiny) else {
            break;
        };
        let second = pieces.remove(at);
        let first = &mut pieces[at - 1];
        first.text.push_str(&second.gap);
        first.text.push_str(&second.text);
    }
    if pieces.is_empty() {
        pieces.push(PromptPiece {
            text: String::new(),
            gap: String::new(),
            cut: false,
            listed: false,
        });
    }
    pieces
}

fn character_count(piece: &PromptPiece) -> usize {
    piece.text.chars().count()
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
        assert!(!read(0).has_weather(Weather::Rain) && read(2).has_weather(Weather::Rain));
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
