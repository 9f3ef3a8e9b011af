//! Which language a text is in, so that words are looked up in that one only: a chat is a talk in English and a
//! cat in French. Scripts tell most; among those that share letters, small words and known ones vote.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::Meaning;
use super::table::GROUPS;

/// A column of the word table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Language {
    English,
    Spanish,
    French,
    German,
    /// Chinese and Japanese: told by the characters of each word, whatever the others are.
    Unspaced,
}

/// Languages whose words share their letters; the first of equals wins.
const SPACED: [(Language, &str); 4] = [
    (
        Language::English,
        "the a an of on at with and to over under by from is are it its into through while his her their near above below between across around",
    ),
    (
        Language::Spanish,
        "el la los las un una unos unas de del en con y al sobre bajo por desde es está son su hacia entre mientras junto",
    ),
    (
        Language::French,
        "le la les un une des du de en avec et au aux sur sous par dans est sont sa ses vers pendant près",
    ),
    (
        Language::German,
        "der die das ein eine einen einem einer des dem den im in mit und am über unter von vom ist sind zum zur auf bei durch",
    ),
];

type Words = BTreeMap<&'static str, &'static [Meaning]>;

/// The words of each language.
fn tables() -> &'static BTreeMap<Language, Words> {
    static TABLES: OnceLock<BTreeMap<Language, Words>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables: BTreeMap<Language, Words> = BTreeMap::new();
        for (columns, meanings) in GROUPS {
            for (language, word) in words(columns) {
                tables.entry(language).or_default().insert(word, *meanings);
            }
        }
        tables
    })
}

/// The words of a row with their languages.
pub(super) fn words(columns: &str) -> impl Iterator<Item = (Language, &str)> {
    columns.split("; ").flat_map(|column| {
        let (name, words) = column.split_once(' ').unwrap_or_default();
        let language = match name {
            "es" => Language::Spanish,
            "fr" => Language::French,
            "de" => Language::German,
            "cjk" => Language::Unspaced,
            _ => Language::English,
        };
        words.split('|').map(move |word| (language, word))
    })
}

impl Language {
    /// The language of a text by its words, which are lower case. A small word counts as much as two others.
    pub(super) fn of(tokens: &[String]) -> Self {
        let score = |(language, small): &(Self, &str)| {
            let votes = tokens.iter().map(|token| {
                let is_small = small.split(' ').any(|word| word == token);
                2 * usize::from(is_small) + usize::from(language.means(token).is_some())
            });
            votes.sum::<usize>()
        };
        // The first of those with the highest score.
        let best = SPACED.iter().rev().max_by_key(|language| score(language));
        best.map_or(Self::English, |(language, _)| *language)
    }

    /// What a word or a phrase means in this language.
    pub(super) fn means(self, phrase: &str) -> Option<&'static [Meaning]> {
        tables().get(&self)?.get(phrase).copied()
    }

    /// The plural endings of its nouns, longest first.
    pub(super) const fn plurals(self) -> &'static [&'static str] {
        match self {
            Self::English | Self::Spanish => &["es", "s"],
            Self::French => &["s", "x"],
            Self::German => &["en", "er", "n", "e", "s"],
            Self::Unspaced => &[],
        }
    }
}
