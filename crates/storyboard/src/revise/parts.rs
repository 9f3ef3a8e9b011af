//! Which words of an edit say what is to be taken away, and what takes whose place. It parts text; what the
//! words mean is read elsewhere.

use super::super::lexicon::is_cjk;
use super::order::ordered;

/// Words that take away what follows, lower case.
const TAKES: &str = "remove removes removing delete erase without no stop minus \
     quita quitar elimina eliminar borra sin \
     enlève enlever retire retirer supprime supprimer efface sans \
     entferne entfernen lösche löschen ohne kein keine keinen \
     去掉 删除 移除 去除 没有 不要 替换 代替";
/// The same in several words, and one that stands for them.
const PHRASES: [(&str, &str); 12] = [
    ("get rid of", "remove"),
    ("take away", "remove"),
    ("take out", "remove"),
    ("leave out", "remove"),
    ("instead of", "instead-of"),
    ("rather than", "instead-of"),
    ("en lugar d", "instead-of d"),
    ("en vez d", "instead-of d"),
    ("au lieu d", "instead-of d"),
    ("à la place d", "instead-of d"),
    ("invece d", "instead-of d"),
    ("em vez d", "instead-of d"),
];
/// What stands before them comes in the place of what follows.
const INSTEAD: &str = "instead-of anstelle anstatt statt вместо";
/// Words at which a wish ends and another one begins.
const TURNS: &str = "add put place set let give paint move show but then at with by \
     pon haz añade pero por con mets ajoute rends mais par avec setze füge aber durch mit \
     加上 添加 变成 改成 换成 让";
/// Verbs whose object is to become something else, the words that say what, and whether the object goes
/// whatever that is.
const SWAPS: [(&str, &str, Goes); 13] = [
    (
        "replace replaces swap exchange",
        "with by for",
        Goes::Surely,
    ),
    (
        "turn turns transform transforms change changes convert converts",
        "into to",
        Goes::ForThings,
    ),
    ("make makes", "into a an", Goes::Alone),
    ("reemplaza reemplace sustituye", "con por", Goes::Surely),
    ("convierte transforma cambia", "en a por", Goes::ForThings),
    ("remplace remplacez remplacer", "par avec", Goes::Surely),
    (
        "transforme transformez change changez",
        "en par",
        Goes::ForThings,
    ),
    ("ersetze ersetzen tausche", "durch mit gegen", Goes::Surely),
    (
        "verwandle verwandeln ändere mach mache",
        "in zu zum zur",
        Goes::ForThings,
    ),
    ("sostituisci trasforma cambia", "con in", Goes::ForThings),
    (
        "substitua substitui troque transforme mude",
        "por com pelo pela em para",
        Goes::ForThings,
    ),
    (
        "замени поменяй преврати измени حول حوّل",
        "на в إلى",
        Goes::ForThings,
    ),
    ("把 将", "换成 变成 改成 变为", Goes::ForThings),
];

/// Other words of edits that ask for nothing by themselves.
const ASKS: &str = "instead please keep keeps leave stays stay still rest everything else edit version \
     stattdessen bitte lass plutôt garde mantén deja invece mantieni mantenha оставь пожалуйста";

/// When what is to become something else goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goes {
    /// Always: "replace the dog".
    Surely,
    /// When the new is a thing: "turn the car into a boat", but "change the car to blue".
    ForThings,
    /// As before, and only when the old is one thing by itself: "make the dog a cat".
    Alone,
}

/// One thing, what takes its place, and the word between them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Swap {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) joined: String,
    pub(super) goes: Goes,
}

/// The words of an edit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parts {
    /// What is to be there.
    pub(super) kept: String,
    /// What is to go.
    pub(super) taken: String,
    pub(super) swaps: Vec<Swap>,
}

/// Where words go.
#[derive(Clone, Debug, PartialEq)]
enum State {
    Keeps,
    Takes,
    /// Behind this verb: it shows later.
    Holds(String),
    /// What takes the place.
    Gives(String, Goes),
    /// What was there instead.
    Stood,
}

fn is_one_of(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|one| one == word)
}

/// Whether a word only says what an edit does, and is nothing that could be drawn.
pub(super) fn is_order(word: &str) -> bool {
    let swaps = SWAPS.iter().flat_map(|(verbs, joins, _)| [*verbs, *joins]);
    let mut all = [TAKES, INSTEAD, TURNS, ASKS].into_iter().chain(swaps);
    all.any(|words| is_one_of(words, word))
}

/// Whether a word of a script without spaces is marked off by spaces before it is looked for.
fn unspaced() -> impl Iterator<Item = &'static str> {
    let swaps = SWAPS.iter().flat_map(|(verbs, joins, _)| [*verbs, *joins]);
    let words = [TAKES, TURNS].into_iter().chain(swaps);
    let words = words.flat_map(str::split_whitespace);
    words.filter(|word| word.chars().all(is_cjk))
}

/// How `word` joins what `verb` speaks of to what it becomes.
fn joins(verb: &str, word: &str) -> Option<Goes> {
    let found = SWAPS
        .iter()
        .find(|(verbs, joins, _)| is_one_of(verbs, verb) && is_one_of(joins, word));
    found.map(|(_, _, goes)| *goes)
}

fn is_sure(verb: &str) -> bool {
    let sure =
        |(verbs, _, goes): &(&str, &str, Goes)| *goes == Goes::Surely && is_one_of(verbs, verb);
    SWAPS.iter().any(sure)
}

fn ends(c: char) -> bool {
    matches!(
        c,
        ',' | '.' | ';' | '!' | '?' | '，' | '。' | '；' | '、' | '،' | '।' | '\n'
    )
}

/// The parts of `text`.
pub(super) fn of(text: &str) -> Parts {
    let mut text = text.to_lowercase();
    for (phrase, word) in PHRASES {
        text = text.replace(phrase, word);
    }
    let mut parting = Parting {
        parts: Parts::default(),
        state: State::Keeps,
        old: String::new(),
        new: String::new(),
    };
    for clause in text.split_inclusive(ends) {
        let mut clause = ordered(clause).unwrap_or_else(|| clause.to_owned());
        for word in unspaced() {
            clause = clause.replace(word, &format!(" {word} "));
        }
        for word in clause.split_inclusive(' ') {
            parting.word(word);
        }
        parting.flush();
        for side in [&mut parting.parts.kept, &mut parting.parts.taken] {
            side.push_str(", ");
        }
    }
    parting.parts
}

struct Parting {
    parts: Parts,
    state: State,
    /// What goes, or may go, in this clause.
    old: String,
    /// What is to be there.
    new: String,
}

impl Parting {
    fn word(&mut self, word: &str) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if let State::Holds(verb) = &self.state {
            if let Some(goes) = joins(verb, bare).filter(|_| !self.old.trim().is_empty()) {
                self.state = State::Gives(bare.to_owned(), goes);
                return;
            }
            if is_one_of(TAKES, bare) {
                // "把狗去掉".
                self.parts.taken.push_str(&std::mem::take(&mut self.old));
                self.state = State::Keeps;
                return;
            }
        }
        if is_one_of(INSTEAD, bare) && self.state == State::Keeps {
            self.state = State::Stood;
        } else if is_one_of(TAKES, bare) || is_one_of(INSTEAD, bare) {
            self.flush();
            self.state = State::Takes;
        } else if SWAPS.iter().any(|(verbs, ..)| is_one_of(verbs, bare)) {
            self.flush();
            self.state = State::Holds(bare.to_owned());
        } else {
            if is_one_of(TURNS, bare) {
                self.flush();
            }
            match self.state {
                State::Keeps | State::Gives(..) => self.new.push_str(word),
                State::Takes | State::Holds(_) | State::Stood => self.old.push_str(word),
            }
        }
    }

    /// Ends what was begun.
    fn flush(&mut self) {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        let Parts { kept, taken, swaps } = &mut self.parts;
        let mut swap = |joined, goes| {
            swaps.push(Swap {
                old: old.clone(),
                new: new.clone(),
                joined,
                goes,
            });
        };
        match std::mem::replace(&mut self.state, State::Keeps) {
            State::Keeps => kept.push_str(&new),
            State::Takes => taken.push_str(&old),
            State::Holds(verb) if is_sure(&verb) => taken.push_str(&old),
            State::Holds(_) => kept.push_str(&old),
            State::Gives(joined, goes) => swap(joined, goes),
            State::Stood => swap(String::new(), Goes::Surely),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(text: &str) -> String {
        let words = text.split([' ', ',', '.']).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn wishes_are_parted() {
        for (text, kept, taken) in [
            ("Make it night", "it night", ""),
            (
                "remove the dog and make it night",
                "it night",
                "the dog and",
            ),
            ("at night, without the boat", "at night", "the boat"),
            (
                "Get rid of the people. Add a cat.",
                "add a cat",
                "the people",
            ),
            ("turn the car blue", "the car blue", ""),
            (
                "turn the car blue in the rain",
                "the car blue in the rain",
                "",
            ),
            ("replace the dog", "", "the dog"),
            ("把车去掉", "", "车"),
        ] {
            let parts = of(text);
            assert_eq!(bare(&parts.kept), kept, "{text}");
            assert_eq!(bare(&parts.taken), taken, "{text}");
            assert_eq!(parts.swaps, [], "{text}");
        }
    }

    #[test]
    fn one_thing_takes_the_place_of_another() {
        for (text, old, new, kept) in [
            ("turn the car into a boat", "the car", "a boat", ""),
            (
                "change the dog to a cat at night",
                "the dog",
                "a cat",
                "at night",
            ),
            ("make the dog a cat", "the dog", "cat", ""),
            ("replace the dog with a cat", "the dog", "a cat", ""),
            ("a cat instead of the dog", "the dog", "a cat", ""),
            ("sustituye el perro por un gato", "el perro", "un gato", ""),
            ("un chat au lieu du chien", "du chien", "un chat", ""),
            (
                "ersetze den Hund durch eine Katze",
                "den hund",
                "eine katze",
                "",
            ),
            ("замени собаку на кошку", "собаку", "кошку", ""),
            ("把车变成蓝色", "车", "蓝色", ""),
            ("犬を猫に変えて", "犬", "猫", ""),
        ] {
            let parts = of(text);
            assert_eq!(bare(&parts.kept), kept, "{text}");
            assert_eq!(parts.swaps.len(), 1, "{text}");
            assert_eq!(bare(&parts.swaps[0].old), old, "{text}");
            assert_eq!(bare(&parts.swaps[0].new), new, "{text}");
        }
    }
}
