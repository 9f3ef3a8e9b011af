//! Splits the words of an edit into things to show, things to remove, and replacements, after putting the verb first in
//! languages that put it last. It splits text and does not know the meanings of other words.

use crate::lexicon::is_cjk;

/// Words that remove the things behind them, lower case.
const REMOVES: &str = "remove removes removing delete erase without no stop minus \
     quita quitar elimina eliminar borra sin \
     enlève enlever retire retirer supprime supprimer efface sans \
     entferne entfernen lösche löschen ohne kein keine keinen \
     去掉 删除 移除 去除 没有 不要 替换 代替";
/// Phrases with the same effect, and the one word that replaces each.
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
/// Words between a replacement and the old thing: "a cat instead of the dog".
const INSTEAD: &str = "instead-of anstelle anstatt statt вместо";
/// Words that begin the next request.
const BEGINS: &str = "add put place set let give paint move show but then at with by \
     pon haz añade pero por con mets ajoute rends mais par avec setze füge aber durch mit \
     加上 添加 变成 改成 换成 让";
/// Verbs that replace their object, the words that join the replacement, and the condition on which they
/// remove the object.
const SWAPS: [(&str, &str, SwapCondition); 13] = [
    (
        "replace replaces swap exchange",
        "with by for",
        SwapCondition::Always,
    ),
    (
        "turn turns transform transforms change changes convert converts",
        "into to",
        SwapCondition::ForThings,
    ),
    ("make makes", "into a an", SwapCondition::ForSingleThings),
    (
        "reemplaza reemplace sustituye",
        "con por",
        SwapCondition::Always,
    ),
    (
        "convierte transforma cambia",
        "en a por",
        SwapCondition::ForThings,
    ),
    (
        "remplace remplacez remplacer",
        "par avec",
        SwapCondition::Always,
    ),
    (
        "transforme transformez change changez",
        "en par",
        SwapCondition::ForThings,
    ),
    (
        "ersetze ersetzen tausche",
        "durch mit gegen",
        SwapCondition::Always,
    ),
    (
        "verwandle verwandeln ändere mach mache",
        "in zu zum zur",
        SwapCondition::ForThings,
    ),
    (
        "sostituisci trasforma cambia",
        "con in",
        SwapCondition::ForThings,
    ),
    (
        "substitua substitui troque transforme mude",
        "por com pelo pela em para",
        SwapCondition::ForThings,
    ),
    (
        "замени поменяй преврати измени حول حوّل",
        "на в إلى",
        SwapCondition::ForThings,
    ),
    ("把 将", "换成 变成 改成 变为", SwapCondition::ForThings),
];

/// Other words of edits that need no drawing.
const FILLERS: &str = "instead please keep keeps leave stays stay still rest everything else edit version \
     stattdessen bitte lass plutôt garde mantén deja invece mantieni mantenha оставь пожалуйста";

/// The condition on which a swap removes the old thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SwapCondition {
    /// Always: "replace the dog".
    Always,
    /// If the new one is a thing: "turn the car into a boat", but not "change the car to blue".
    ForThings,
    /// If the new one is a thing and the old one is a single thing: "make the dog a cat".
    ForSingleThings,
}

/// A thing, its replacement, and the word between them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ThingSwap {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) joined: String,
    pub(super) condition: SwapCondition,
}

/// The words of an edit by their purpose.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EditParts {
    /// Words for things to show.
    pub(super) wanted: String,
    /// Words for things to remove.
    pub(super) removed: String,
    pub(super) swaps: Vec<ThingSwap>,
}

/// The purpose of the words that follow.
#[derive(Clone, Debug, PartialEq)]
enum SplitState {
    Wanted,
    Removed,
    /// The object of this verb; the words behind it decide its purpose.
    Object(String),
    /// The replacement.
    Replacement(String, SwapCondition),
    /// The old thing, behind its replacement.
    Replaced,
}

fn is_one_of(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|one| one == word)
}

/// Whether a word only gives an order and needs no drawing.
pub(super) fn is_order(word: &str) -> bool {
    let swaps = SWAPS.iter().flat_map(|(verbs, joins, _)| [*verbs, *joins]);
    let mut all = [REMOVES, INSTEAD, BEGINS, FILLERS].into_iter().chain(swaps);
    all.any(|words| is_one_of(words, word))
}

/// The words of scripts without spaces, which the splitter surrounds with spaces first.
fn unspaced() -> impl Iterator<Item = &'static str> {
    let swaps = SWAPS.iter().flat_map(|(verbs, joins, _)| [*verbs, *joins]);
    let words = [REMOVES, BEGINS].into_iter().chain(swaps);
    let words = words.flat_map(str::split_whitespace);
    words.filter(|word| word.chars().all(is_cjk))
}

/// The condition of a swap with this verb and this joining word; `None` if they do not go together.
fn swap_condition(verb: &str, word: &str) -> Option<SwapCondition> {
    let found = SWAPS
        .iter()
        .find(|(verbs, joins, _)| is_one_of(verbs, verb) && is_one_of(joins, word));
    found.map(|(_, _, condition)| *condition)
}

fn always_removes(verb: &str) -> bool {
    SWAPS
        .iter()
        .any(|(verbs, _, condition)| *condition == SwapCondition::Always && is_one_of(verbs, verb))
}

fn ends_clause(c: char) -> bool {
    matches!(
        c,
        ',' | '.' | ';' | '!' | '?' | '，' | '。' | '；' | '、' | '،' | '।' | '\n'
    )
}

/// The parts of `text`.
pub(super) fn split(text: &str) -> EditParts {
    let mut text = text.to_lowercase();
    for (phrase, word) in PHRASES {
        text = text.replace(phrase, word);
    }
    // One word at a time: verbs and joining words change the purpose of those that follow, and the
    // end of a clause files them.
    let mut splitter = EditSplitter {
        parts: EditParts::default(),
        state: SplitState::Wanted,
        old: String::new(),
        new: String::new(),
    };
    for clause in text.split_inclusive(ends_clause) {
        let mut clause = verb_first(clause).unwrap_or_else(|| clause.to_owned());
        // Chinese verbs stand between other characters: blanks around them make words of them.
        for word in unspaced() {
            clause = clause.replace(word, &format!(" {word} "));
        }
        for word in clause.split_inclusive(' ') {
            splitter.word(word);
        }
        splitter.flush();
        for side in [&mut splitter.parts.wanted, &mut splitter.parts.removed] {
            side.push_str(", ");
        }
    }
    splitter.parts
}

struct EditSplitter {
    parts: EditParts,
    state: SplitState,
    /// Words of this clause for a thing that it removes or may remove.
    old: String,
    /// Words of this clause for things to show.
    new: String,
}

impl EditSplitter {
    fn word(&mut self, word: &str) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if let SplitState::Object(verb) = &self.state {
            if let Some(condition) =
                swap_condition(verb, bare).filter(|_| !self.old.trim().is_empty())
            {
                self.state = SplitState::Replacement(bare.to_owned(), condition);
                return;
            }
            if is_one_of(REMOVES, bare) {
                // "把狗去掉".
                self.parts.removed.push_str(&std::mem::take(&mut self.old));
                self.state = SplitState::Wanted;
                return;
            }
        }
        if is_one_of(INSTEAD, bare) && self.state == SplitState::Wanted {
            self.state = SplitState::Replaced;
        } else if is_one_of(REMOVES, bare) || is_one_of(INSTEAD, bare) {
            self.flush();
            self.state = SplitState::Removed;
        } else if SWAPS.iter().any(|(verbs, ..)| is_one_of(verbs, bare)) {
            self.flush();
            self.state = SplitState::Object(bare.to_owned());
        } else {
            if is_one_of(BEGINS, bare) {
                self.flush();
            }
            match self.state {
                SplitState::Wanted | SplitState::Replacement(..) => self.new.push_str(word),
                SplitState::Removed | SplitState::Object(_) | SplitState::Replaced => {
                    self.old.push_str(word);
                }
            }
        }
    }

    /// Files the words so far by their purpose.
    fn flush(&mut self) {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        let EditParts {
            wanted,
            removed,
            swaps,
        } = &mut self.parts;
        match std::mem::replace(&mut self.state, SplitState::Wanted) {
            SplitState::Wanted => wanted.push_str(&new),
            SplitState::Removed => removed.push_str(&old),
            SplitState::Object(verb) if always_removes(&verb) => removed.push_str(&old),
            SplitState::Object(_) => wanted.push_str(&old),
            SplitState::Replacement(joined, condition) => swaps.push(ThingSwap {
                old,
                new,
                joined,
                condition,
            }),
            SplitState::Replaced => swaps.push(ThingSwap {
                old,
                new,
                joined: String::new(),
                condition: SwapCondition::Always,
            }),
        }
    }
}

/// The verb and the joining word of every reordered clause.
const VERB: &str = "把";
const JOIN: &str = "换成";
/// Endings of the old thing, endings of the new thing, and stems of the verb.
const LAST: [(&[&str], &[&str], &[&str]); 3] = [
    (
        &["を"],
        &["に", "へ", "と"],
        &["変え", "換え", "替え", "かえ", "して"],
    ),
    (&["를", "을"], &["으로", "로"], &["바꾸", "바꿔", "교체"]),
    (&[" को"], &[" से", " में"], &["बदल"]),
];
/// Arabic: forms of the verb, and the first letter of the new thing.
const ARABIC: ([&str; 2], char) = (["استبدل", "بدّل"], 'ب');

/// `clause` with its verb first; `None` if it has none of these forms.
fn verb_first(clause: &str) -> Option<String> {
    verb_last(clause).or_else(|| arabic(clause))
}

fn verb_last(clause: &str) -> Option<String> {
    LAST.iter().find_map(|(ends, joins, verbs)| {
        let verb = verbs.iter().filter_map(|verb| clause.rfind(verb)).max()?;
        let head = &clause[..verb];
        let (at, end) = ends
            .iter()
            .filter_map(|end| Some((head.find(end)?, end)))
            .min()?;
        let rest = head[at + end.len()..].trim();
        let new = joins.iter().find_map(|join| rest.strip_suffix(join))?;
        let old = &head[..at];
        Some(format!("{VERB} {old} {JOIN} {new}"))
    })
}

fn arabic(clause: &str) -> Option<String> {
    let (verbs, join) = ARABIC;
    let words: Vec<&str> = clause.split_whitespace().collect();
    let verb = words.iter().position(|word| verbs.contains(word))?;
    let new = words[verb..]
        .iter()
        .position(|word| word.starts_with(join) && word.chars().count() > 2)?;
    let (old, new) = words[verb + 1..].split_at(new.checked_sub(1)?);
    let new = new.join(" ");
    let new = new.strip_prefix(join)?;
    Some(format!("{VERB} {} {JOIN} {new}", old.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(text: &str) -> String {
        let words = text.split([' ', ',', '.']).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn edits_are_split() {
        for (text, wanted, removed) in [
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
            let parts = split(text);
            assert_eq!(bare(&parts.wanted), wanted, "{text}");
            assert_eq!(bare(&parts.removed), removed, "{text}");
            assert_eq!(parts.swaps, [], "{text}");
        }
    }

    #[test]
    fn one_thing_takes_the_place_of_another() {
        for (text, old, new, wanted) in [
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
            let parts = split(text);
            assert_eq!(bare(&parts.wanted), wanted, "{text}");
            assert_eq!(parts.swaps.len(), 1, "{text}");
            assert_eq!(bare(&parts.swaps[0].old), old, "{text}");
            assert_eq!(bare(&parts.swaps[0].new), new, "{text}");
        }
    }

    #[test]
    fn the_verb_comes_first() {
        for (clause, ordered_is) in [
            ("犬を猫に変えて", Some("把 犬 换成 猫")),
            ("개를 고양이로 바꿔", Some("把 개 换成 고양이")),
            ("कुत्ते को बिल्ली से बदलो", Some("把 कुत्ते 换成 बिल्ली")),
            ("استبدل الكلب بقطة", Some("把 الكلب 换成 قطة")),
            ("make it night", None),
            ("犬を追加して", None),
        ] {
            assert_eq!(verb_first(clause).as_deref(), ordered_is, "{clause}");
        }
    }
}
