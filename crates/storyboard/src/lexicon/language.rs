//! Which language a text is in, so that words are looked up in that one only: a chat is a talk in English
//! and a cat in French. Scripts tell most; among those that share letters, small words and known ones vote.

use super::words::Words;

/// A language that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Language {
    English,
    Spanish,
    French,
    German,
    Italian,
    Portuguese,
    Russian,
    Arabic,
    Hindi,
    Chinese,
    Japanese,
    Korean,
    /// One that is not read.
    Other,
}

/// Languages that share the Latin script; the first of equals wins.
const LATIN: [Language; 6] = [
    Language::English,
    Language::Spanish,
    Language::French,
    Language::German,
    Language::Italian,
    Language::Portuguese,
];

/// The language that a letter gives away by its script; Latin letters and signs give none.
fn script(c: char) -> Option<Language> {
    match u32::from(c) {
        0x0400..=0x052f => Some(Language::Russian),
        0x0600..=0x06ff | 0x0750..=0x077f => Some(Language::Arabic),
        0x0900..=0x097f => Some(Language::Hindi),
        0x3040..=0x30ff => Some(Language::Japanese),
        0xac00..=0xd7af | 0x1100..=0x11ff => Some(Language::Korean),
        0x2e80..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff => Some(Language::Chinese),
        // Greek, Hebrew, Thai and other scripts.
        0x0370..=0x03ff | 0x0530..=0x05ff | 0x0980..=0x10ff | 0x1200..=0x1cff => {
            Some(Language::Other)
        }
        _ => None,
    }
}

impl Language {
    /// The language of `tokens`, which are lower case. A small word counts as much as two others.
    pub(super) fn of<'a>(tokens: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut letters: Vec<(Self, usize)> = Vec::new();
        let mut latin = 0;
        for c in tokens
            .clone()
            .flat_map(str::chars)
            .filter(|c| c.is_alphabetic())
        {
            match script(c) {
                None => latin += 1,
                Some(language) => match letters.iter_mut().find(|(one, _)| *one == language) {
                    Some((_, count)) => *count += 1,
                    None => letters.push((language, 1)),
                },
            }
        }
        let count = |wanted: Self| {
            let found = letters.iter().find(|(one, _)| *one == wanted);
            found.map_or(0, |(_, count)| *count)
        };
        let most = letters.iter().max_by_key(|(_, count)| *count).copied();
        match most {
            // A single character of these says as much as a word of letters.
            Some((language, number)) if number * 4 >= latin => match language {
                // Japanese mixes its own letters with Chinese characters.
                Self::Chinese if count(Self::Japanese) > 0 => Self::Japanese,
                _ => language,
            },
            _ => Self::of_latin(tokens),
        }
    }

    fn of_latin<'a>(tokens: impl Iterator<Item = &'a str> + Clone) -> Self {
        let score = |language: &Self| {
            let words = Words::of(*language);
            let votes = tokens.clone().map(|token| {
                2 * usize::from(words.tells(token)) + usize::from(words.means(token).is_some())
            });
            votes.sum::<usize>()
        };
        // The first of those with the highest score.
        let best = LATIN.iter().rev().max_by_key(|language| score(language));
        best.copied().unwrap_or(Self::English)
    }

    /// Whether an inflected noun of this form is a plural.
    pub(super) fn is_plural(self, word: &str) -> bool {
        let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
        match self {
            Self::English => ends(&["s"]) && !ends(&["'s", "ss"]),
            Self::Spanish | Self::Portuguese => ends(&["s"]),
            Self::French => ends(&["s", "x"]),
            Self::German => ends(&["en", "er", "n", "e", "s"]),
            Self::Italian => ends(&["i", "e"]),
            Self::Russian => ends(&["ы", "и", "ов", "ей", "ами", "ями"]),
            Self::Arabic => ends(&["ات", "ون", "ين"]),
            Self::Hindi => ends(&["ें", "ों", "याँ", "ियां", "े"]),
            Self::Korean => word.contains('들'),
            Self::Chinese | Self::Japanese | Self::Other => false,
        }
    }

    /// Whether an unknown word has the form of an adjective or an adverb, which no warning names.
    pub(super) fn describes(self, word: &str) -> bool {
        let ends = |endings: &[&str]| {
            let long = word.chars().count() >= 5;
            long && endings.iter().any(|ending| word.ends_with(ending))
        };
        match self {
            Self::English => ends(&[
                "ly", "ful", "ous", "less", "ish", "able", "ible", "ive", "ic", "esque",
            ]),
            Self::Spanish | Self::Portuguese => {
                ends(&["mente", "oso", "osa", "osos", "osas", "ible", "ível"])
            }
            Self::Italian => ends(&["mente", "oso", "osa", "osi", "ose", "bile"]),
            Self::French => ends(&[
                "ment", "eux", "euse", "euses", "ique", "iques", "able", "ible",
            ]),
            Self::German => ends(&[
                "lich", "liche", "lichen", "licher", "liches", "isch", "ische", "ischen", "ischer",
                "ige", "igen", "iger", "iges", "ig", "bar", "voll", "volle", "vollen",
            ]),
            Self::Russian => ends(&[
                "ый", "ий", "ая", "яя", "ое", "ее", "ые", "ие", "ой", "ого", "его", "ому", "ым",
                "ых", "но",
            ]),
            _ => false,
        }
    }

    /// Whether this form of a verb says something of the noun behind it: "a running dog", "飞的鸟".
    pub(super) fn leads(self, word: &str) -> bool {
        match self {
            Self::English => word.ends_with("ing"),
            Self::German => ["ende", "ender", "enden", "endes"]
                .iter()
                .any(|ending| word.ends_with(ending)),
            Self::Russian => ["щий", "щая", "щее", "щие"]
                .iter()
                .any(|ending| word.ends_with(ending)),
            Self::Chinese | Self::Japanese | Self::Korean => true,
            _ => false,
        }
    }
}
