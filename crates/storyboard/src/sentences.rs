//! Where a prompt falls apart: numbered shots, sentences, "then" and "cut to". It cuts text;
//! what the pieces mean is read elsewhere.

/// One piece of the prompt and how it is reached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    /// The words of the prompt.
    pub(crate) text: String,
    /// What stands between them and the piece before.
    gap: String,
    pub(crate) cut: bool,
    /// The prompt itself numbers it: it stays a shot of its own if it can.
    pub(crate) listed: bool,
}

/// Where a listed shot begins ("Shot 2:", "镜头二："), as (start, end) of the marker in bytes.
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
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let marks = markers(text);
    if marks.len() >= 2 {
        return listed(text, &marks);
    }
    let mut pieces = Pieces::of(text);
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

/// Listed shots are dissolved between unless the words ask for a cut.
fn listed(text: &str, marks: &[(usize, usize)]) -> Vec<Piece> {
    let ends = marks.iter().skip(1).map(|mark| mark.0).chain([text.len()]);
    let mut pieces = Pieces::of(text);
    for (mark, end) in marks.iter().zip(ends) {
        pieces.push(mark.1, end, asks_cut(&text[mark.1..end]), true);
    }
    pieces.all
}

/// Pieces of a text, in the making.
struct Pieces<'a> {
    text: &'a str,
    /// Where the last one ends.
    end: usize,
    all: Vec<Piece>,
}

impl<'a> Pieces<'a> {
    fn of(text: &'a str) -> Self {
        let (end, all) = (0, Vec::new());
        Self { text, end, all }
    }

    /// Adds the words of a stretch; false where it has none.
    fn push(&mut self, from: usize, to: usize, cut: bool, listed: bool) -> bool {
        let stretch = self.text[from..to].trim_end();
        let words = stretch.trim_start_matches([',', '，', ':', '-', ' ', '\n']);
        if words.is_empty() {
            return false;
        }
        let end = from + stretch.len();
        let shown = |part: &str| part.replace('\n', " ");
        self.all.push(Piece {
            text: shown(words),
            gap: shown(&self.text[self.end..end - words.len()]),
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
pub(crate) fn gather(mut pieces: Vec<Piece>, room: usize) -> Vec<Piece> {
    let length = |piece: &Piece| piece.text.chars().count();
    loop {
        let pair =
            (1..pieces.len()).min_by_key(|&at| length(&pieces[at - 1]) + length(&pieces[at]));
        let tiny = pieces
            .iter()
            .any(|piece| length(piece) < 8 && !piece.listed);
        let Some(at) = pair.filter(|_| pieces.len() > room || tiny) else {
            break;
        };
        let second = pieces.remove(at);
        let first = &mut pieces[at - 1];
        first.text.push_str(&second.gap);
        first.text.push_str(&second.text);
    }
    if pieces.is_empty() {
        pieces.push(Piece {
            text: String::new(),
            gap: String::new(),
            cut: false,
            listed: false,
        });
    }
    pieces
}
