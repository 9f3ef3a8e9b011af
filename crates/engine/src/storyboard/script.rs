//! From a prompt to shots: where it is cut, how long each part stays, and what each one says.
//! It decides times and words; it paints nothing.

use super::FPS;
use super::lexicon::{Reading, read};

/// Shortest shot that a cut may leave.
const SHOT_FRAMES_MIN: u32 = 2 * FPS;
/// Most shots in a clip.
const SHOTS_MAX: usize = 8;
/// From this length on, a single sentence is seen from two distances.
const SPLIT_FRAMES_MIN: u32 = 8 * FPS;
/// Length of a cross-dissolve.
const DISSOLVE_FRAMES: u32 = FPS * 7 / 12;

/// One shot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shot {
    /// What the caption says.
    pub(super) text: String,
    pub(super) reading: Reading,
    /// First frame, without the dissolve that leads into it.
    pub(super) start: u32,
    /// The frame after the last.
    pub(super) end: u32,
    /// How many frames before `start` it begins to show; 0 is a cut.
    pub(super) dissolve: u32,
    /// A second look at the same scene, from nearer.
    pub(super) closer: bool,
}

impl Shot {
    /// The first frame in which any of it shows.
    pub(super) fn appears(&self) -> u32 {
        self.start - self.dissolve
    }
}

/// One piece of the prompt and how it is reached.
#[derive(Debug, PartialEq)]
struct Piece {
    text: String,
    cut: bool,
}

/// The shots of a clip of `frames` frames; never empty, without gaps.
pub(super) fn shots(prompt: &str, avoid: &str, frames: u32) -> Vec<Shot> {
    let prompt = clean(prompt);
    let whole = read(&prompt, avoid);
    let room = ((frames / SHOT_FRAMES_MIN) as usize).clamp(1, SHOTS_MAX);
    let pieces = gather(pieces(&prompt), room);
    let twice = pieces.len() == 1 && frames >= SPLIT_FRAMES_MIN;
    let weights: Vec<f32> =
        pieces.iter().map(|piece| (piece.text.chars().count() as f32).clamp(30.0, 160.0)).collect();
    let mut ends = share_out(&weights, frames);
    if twice {
        ends = vec![frames * 11 / 20, frames];
    }
    let mut start = 0;
    let mut made: Vec<Shot> = Vec::new();
    for (index, end) in ends.into_iter().enumerate() {
        let closer = twice && index == 1;
        let piece = &pieces[if twice { 0 } else { index }];
        let mut reading = read(&piece.text, avoid);
        reading.inherit(&whole);
        let dissolve = if index == 0 || piece.cut { 0 } else { DISSOLVE_FRAMES.min(start) };
        made.push(Shot { text: piece.text.clone(), reading, start, end, dissolve, closer });
        start = end;
    }
    made
}

/// Ends of consecutive parts whose lengths follow `weights`, each at least a short shot long.
fn share_out(weights: &[f32], frames: u32) -> Vec<u32> {
    let count = weights.len() as u32;
    let least = SHOT_FRAMES_MIN.min(frames / count.max(1));
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
pub(super) fn clean(text: &str) -> String {
    let hidden = |c: char| {
        matches!(u32::from(c), 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff)
    };
    let spaced: String = text
        .chars()
        .filter(|c| !hidden(*c))
        .map(|c| if c == '\n' || c == '\r' { '\n' } else if c.is_control() { ' ' } else { c })
        .collect();
    spaced
        .split('\n')
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Where a listed shot begins ("Shot 2:", "镜头二："), as (start, end) of the marker in bytes.
fn markers(text: &str) -> Vec<(usize, usize)> {
    const NAMES: [&str; 9] =
        ["shot", "scene", "镜头", "场景", "plano", "escena", "plan", "szene", "シーン"];
    let mut found = Vec::new();
    for (at, _) in text.char_indices() {
        let begins = text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        let rest = &text[at..];
        let name = NAMES.iter().find(|name| {
            rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
        });
        let (Some(name), true) = (name, begins) else { continue };
        let tail = rest[name.len()..].trim_start_matches([' ', '#']);
        let after = tail.trim_start_matches(|c: char| {
            c.is_ascii_digit() || "一二三四五六七八九十".contains(c)
        });
        if after.len() < tail.len() && after.starts_with([':', '：', '.', '-', '、', ')']) {
            let sign = after.chars().next().map_or(0, char::len_utf8);
            found.push((at, text.len() - after.len() + sign));
        }
    }
    found
}

fn pieces(text: &str) -> Vec<Piece> {
    let marks = markers(text);
    if marks.len() >= 2 {
        let ends = marks.iter().skip(1).map(|mark| mark.0).chain([text.len()]);
        let listed = marks.iter().zip(ends).map(|(mark, end)| (&text[mark.1..end], true));
        // Listed shots are dissolved between unless the words ask for a cut.
        return listed
            .map(|(part, _)| Piece { text: trim(part), cut: asks_cut(part) })
            .filter(|piece| !piece.text.is_empty())
            .collect();
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = text;
    let mut cut = false;
    while !rest.is_empty() {
        let (end, next, cuts) = boundary(rest);
        let part = trim(&rest[..end]);
        if !part.is_empty() {
            pieces.push(Piece { text: part, cut });
            cut = false;
        }
        cut |= cuts;
        rest = &rest[next..];
    }
    pieces
}

fn asks_cut(text: &str) -> bool {
    let lower = text.to_lowercase();
    ["cut to", "hard cut", "smash cut", "切到"].iter().any(|words| lower.contains(words))
}

fn trim(part: &str) -> String {
    let part = part.replace('\n', " ");
    part.trim().trim_start_matches([',', '，', ':', '-', ' ']).trim().to_owned()
}

/// The end of the first sentence of `text`, where the next begins, and whether a cut is asked.
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
            '.' | '!' | '?' | ';' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends {
            return (after, after, false);
        }
        for (turn, cut) in TURNS {
            let here = text.get(at..at + turn.len());
            if at > 0 && here.is_some_and(|here| here.eq_ignore_ascii_case(turn)) {
                return (at, at + turn.len(), cut);
            }
        }
    }
    (text.len(), text.len(), false)
}

/// Joins neighbours until at most `room` pieces are left, shortest pairs first.
fn gather(mut pieces: Vec<Piece>, room: usize) -> Vec<Piece> {
    let length = |piece: &Piece| piece.text.chars().count();
    loop {
        let pair = (1..pieces.len()).min_by_key(|&at| length(&pieces[at - 1]) + length(&pieces[at]));
        let tiny = pieces.iter().any(|piece| length(piece) < 8) && pieces.len() > 1;
        let Some(at) = pair.filter(|_| pieces.len() > room || tiny) else { break };
        let second = pieces.remove(at);
        let first = &mut pieces[at - 1];
        let wide = second.text.chars().next().is_some_and(super::lexicon::is_cjk);
        if !wide {
            first.text.push(' ');
        }
        first.text.push_str(&second.text);
    }
    if pieces.is_empty() {
        pieces.push(Piece { text: String::new(), cut: false });
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::lexicon::{Hour, Place};
    use super::*;

    fn texts(prompt: &str, frames: u32) -> Vec<String> {
        shots(prompt, "", frames).into_iter().map(|shot| shot.text).collect()
    }

    #[test]
    fn sentences_become_shots_without_gaps() {
        let made = shots("A red boat at sea. A forest in fog! Then the moon over a city.", "", 240);
        assert_eq!(made.len(), 3);
        assert_eq!((made[0].start, made[2].end), (0, 240));
        assert!(made.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(made.iter().all(|shot| shot.end - shot.start >= SHOT_FRAMES_MIN));
        assert_eq!(made[1].reading.place, Some(Place::Forest));
        assert_eq!(made[0].reading.hour, Some(Hour::Night), "inherited from the whole");
    }

    #[test]
    fn listed_shots_and_cuts_are_seen() {
        assert_eq!(
            texts("Shot 1: a boat leaves the pier. Shot 2: waves. Shot 3 - the horizon", 240),
            ["a boat leaves the pier.", "waves. Shot 3 - the horizon"].map(str::to_owned).to_vec()
                [..1]
                .iter()
                .cloned()
                .chain(["waves.".to_owned(), "the horizon".to_owned()])
                .collect::<Vec<_>>()
        );
        let made = shots("a quiet lake at dawn, cut to a neon city street", "", 240);
        assert_eq!(made.len(), 2);
        assert_eq!(made[1].dissolve, 0);
        assert_eq!(texts("镜头1：大海。镜头2：雪山上的月亮升起来", 240).len(), 2);
    }

    #[test]
    fn a_short_clip_never_has_more_shots_than_fit() {
        let long = "One thing happens here. ".repeat(40);
        assert_eq!(shots(&long, "", 48).len(), 1);
        assert!(shots(&long, "", 120).len() <= 2);
        assert!(shots(&long, "", 360).len() <= SHOTS_MAX);
    }

    #[test]
    fn hidden_marks_vanish() {
        assert_eq!(clean("a\u{202e}b\u{7}  c\n\n d"), "ab c\nd");
    }
}
