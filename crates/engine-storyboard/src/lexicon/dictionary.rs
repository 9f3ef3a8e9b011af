//! The words of each language from the files in `words/`, by phrase and by stem, and the language of a text: its script
//! decides if it can, otherwise known words vote. It knows words, not sentences.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};

use super::language::{LATIN, Language, is_form};
use super::meaning::meanings;
use super::{Meaning, is_one_of};

/// The meaning of a phrase.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WordEntry {
    pub(super) meanings: Vec<Meaning>,
    /// Whether the phrase is a plural.
    pub(super) plural: bool,
    /// The word that is drawn in its place, if its own meaning has no drawing.
    pub(super) near: Option<String>,
}

impl WordEntry {
    /// The meaning of a word that is no plural.
    pub(super) fn new(meanings: &[Meaning]) -> Self {
        Self {
            meanings: meanings.to_vec(),
            plural: false,
            near: None,
        }
    }

    /// Whether it is a thing or a place, whose word is a noun.
    pub(super) fn is_noun(&self) -> bool {
        self.meanings
            .iter()
            .any(|one| matches!(one, Meaning::Subject(_) | Meaning::Place(_)))
    }
}

/// The phrases that share a stem.
#[derive(Debug, Default)]
struct StemEntry {
    /// `None` if they differ in meaning.
    entry: Option<WordEntry>,
    phrases: Vec<String>,
}

/// The words of one language.
#[derive(Default)]
pub(super) struct LanguageWords {
    phrases: BTreeMap<String, WordEntry>,
    /// Phrases by the stems of their words.
    stems: BTreeMap<String, StemEntry>,
    small: Vec<String>,
    /// Words that follow a noun, in addition to the small ones.
    links: Vec<String>,
    /// The meanings of words as verbs, just behind their subject; empty for a verb without a drawing.
    does: BTreeMap<String, Vec<Meaning>>,
    stemmer: Option<Stemmer>,
    pub(super) language: Language,
}

/// The word file of each language.
const FILES: &[(Language, &str)] = &[
    (Language::English, include_str!("../../words/en.txt")),
    (Language::Spanish, include_str!("../../words/es.txt")),
    (Language::French, include_str!("../../words/fr.txt")),
    (Language::German, include_str!("../../words/de.txt")),
    (Language::Italian, include_str!("../../words/it.txt")),
    (Language::Portuguese, include_str!("../../words/pt.txt")),
    (Language::Russian, include_str!("../../words/ru.txt")),
    (Language::Arabic, include_str!("../../words/ar.txt")),
    (Language::Hindi, include_str!("../../words/hi.txt")),
    (Language::Chinese, include_str!("../../words/zh.txt")),
    (Language::Japanese, include_str!("../../words/ja.txt")),
    (Language::Korean, include_str!("../../words/ko.txt")),
];

/// Names that all languages with Latin letters write alike.
const NAMES: &str = include_str!("../../words/names.txt");

fn algorithm(language: Language) -> Option<Algorithm> {
    Some(match language {
        Language::English => Algorithm::English,
        Language::Spanish => Algorithm::Spanish,
        Language::French => Algorithm::French,
        Language::German => Algorithm::German,
        Language::Italian => Algorithm::Italian,
        Language::Portuguese => Algorithm::Portuguese,
        Language::Russian => Algorithm::Russian,
        Language::Arabic => Algorithm::Arabic,
        _ => return None,
    })
}

/// A word of a file without its marks.
fn unmarked(word: &str) -> &str {
    let word = word.strip_prefix('~').unwrap_or(word);
    word.strip_suffix('+').unwrap_or(word)
}

/// The lines of a file, as key and words.
fn lines(file: &str) -> impl Iterator<Item = (&str, &str)> {
    file.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| line.split_once(": "))
}

impl LanguageWords {
    /// The words of `language`; empty for [`Language::Other`].
    pub(super) fn for_language(language: Language) -> &'static Self {
        static ALL: OnceLock<BTreeMap<Language, LanguageWords>> = OnceLock::new();
        static NONE: OnceLock<LanguageWords> = OnceLock::new();
        // All twelve at the first use of any: a Latin text asks six of them for its language
        // anyway.
        let all = ALL.get_or_init(|| {
            FILES
                .iter()
                .map(|(language, file)| (*language, Self::read(*language, file)))
                .collect()
        });
        all.get(&language)
            .unwrap_or_else(|| NONE.get_or_init(Self::default))
    }

    fn read(language: Language, file: &str) -> Self {
        let mut words = Self {
            stemmer: algorithm(language).map(Stemmer::create),
            language,
            ..Self::default()
        };
        let names = if LATIN.contains(&language) { NAMES } else { "" };
        for (key, list) in lines(file).chain(lines(names)) {
            if key == "small" {
                words.small = list.split(' ').map(str::to_owned).collect();
                continue;
            }
            if let Some(act) = key.strip_prefix("does") {
                let meant = meanings(act.trim_start_matches('-'));
                let verbs = list.split('|').map(|verb| (verb.to_owned(), meant.clone()));
                words.does.extend(verbs);
                continue;
            }
            match key {
                "links" => words.links = list.split('|').map(str::to_owned).collect(),
                _ => words.add_line(key, list),
            }
        }
        words
    }

    /// Adds a line of words with the same meaning. The engine draws the first of them for those with a `~`.
    fn add_line(&mut self, key: &str, list: &str) {
        let meanings = meanings(key);
        let first = list.split('|').next().unwrap_or_default();
        for word in list.split('|') {
            let mark = unmarked(word);
            let entry = WordEntry {
                meanings: meanings.clone(),
                plural: word.ends_with('+'),
                near: word.starts_with('~').then(|| unmarked(first).to_owned()),
            };
            self.add_phrase(mark, entry);
        }
    }

    fn add_phrase(&mut self, word: &str, entry: WordEntry) {
        // The files list all forms of these.
        if !matches!(
            entry.meanings[..],
            [Meaning::Ignore | Meaning::Undrawn | Meaning::Not]
        ) {
            let stem = self.stems.entry(self.stem_all(word)).or_default();
            // Two meanings under one stem make the stem useless: then only exact words count.
            let same = stem.phrases.is_empty()
                || stem.entry.as_ref().is_some_and(|known| {
                    known.meanings == entry.meanings && known.near == entry.near
                });
            stem.entry = same.then(|| entry.clone());
            stem.phrases.push(word.to_owned());
        }
        self.phrases.entry(word.to_owned()).or_insert(entry);
    }

    /// Whether `word` is a small word that identifies this language.
    pub(super) fn is_small_word(&self, word: &str) -> bool {
        self.small.iter().any(|small| small == word)
    }

    /// Whether a noun is complete before `word`.
    pub(super) fn ends_noun(&self, word: &str) -> bool {
        self.links.iter().any(|one| one == word)
    }

    /// The meaning of `word` as a verb behind its subject, for words that are nouns elsewhere.
    pub(super) fn verb_meanings(&self, word: &str) -> Option<&[Meaning]> {
        self.does.get(word).map(Vec::as_slice)
    }

    fn stem(&self, word: &str) -> String {
        match &self.stemmer {
            Some(stemmer) => stemmer.stem(word).into_owned(),
            None => word.to_owned(),
        }
    }

    fn stem_all(&self, phrase: &str) -> String {
        let stems: Vec<String> = phrase.split(' ').map(|word| self.stem(word)).collect();
        stems.join(" ")
    }

    /// The meaning of a phrase: as written, without its article or clitics, or by its stems.
    pub(super) fn find(&self, phrase: &str) -> Option<WordEntry> {
        if let Some(entry) = self.phrases.get(phrase) {
            return Some(entry.clone());
        }
        let bare = self.without_affix(phrase);
        if let Some(entry) = bare.as_deref().and_then(|bare| self.phrases.get(bare)) {
            return Some(entry.clone());
        }
        // The exact word was looked for first: a stem may join what its language keeps apart.
        let mut words = [Some(phrase), bare.as_deref()].into_iter().flatten();
        let found = words.find_map(|phrase| {
            let stem = self.stems.get(&self.stem_all(phrase))?;
            let entry = stem.entry.clone()?;
            let mut bases = stem.phrases.iter();
            let is_known =
                !entry.is_noun() || bases.any(|base| is_form(self.language, base, phrase));
            is_known.then_some(entry)
        })?;
        let plural = found.plural || self.language.is_plural(phrase);
        Some(WordEntry { plural, ..found })
    }

    /// The phrase without "l'" or "'s", the Arabic article or a Korean particle.
    fn without_affix(&self, phrase: &str) -> Option<String> {
        match self.language {
            Language::French | Language::Italian => {
                let (article, rest) = phrase.split_once('\'')?;
                (article.chars().count() <= 5 && !rest.is_empty()).then(|| rest.to_owned())
            }
            Language::English => phrase.strip_suffix("'s").map(str::to_owned),
            Language::Arabic => ["وال", "بال", "كال", "فال", "لل", "ال", "و", "ب", "ل"]
                .iter()
                .find_map(|prefix| phrase.strip_prefix(prefix))
                .filter(|rest| rest.chars().count() >= 2)
                .map(str::to_owned),
            Language::Korean => self.without_particle(phrase),
            _ => None,
        }
    }

    /// A Korean word without its suffixes: the longest known beginning, if the rest is a particle or the beginning
    /// has at least two syllables.
    fn without_particle(&self, phrase: &str) -> Option<String> {
        const PARTICLES: &str = "은 는 이 가 을 를 의 에 에서 에게 와 과 로 으로 도 들 들이 들은 들을 들의 만 위 위에 위로 위를 속 속에 속을 속에서 안에 옆에 옆의 한 인 아래 앞에 뒤에 없이 까지 부터";
        let ends: Vec<usize> = phrase.char_indices().map(|(at, _)| at).skip(1).collect();
        ends.into_iter().rev().find_map(|end| {
            let (head, rest) = phrase.split_at(end);
            let joined = is_one_of(PARTICLES, rest);
            let long = head.chars().count() >= 2 && !phrase.contains(' ');
            (self.phrases.contains_key(head) && (joined || long)).then(|| head.to_owned())
        })
    }
}

/// The language of a letter's script; `None` for Latin letters and signs.
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

/// The language of `tokens`, in lower case. A small word has two votes, a known word one.
pub(super) fn detect<'a>(tokens: impl Iterator<Item = &'a str> + Clone) -> Language {
    let mut letters: Vec<(Language, usize)> = Vec::new();
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
    let most = letters.iter().max_by_key(|(_, count)| *count).copied();
    match most {
        // One letter of another script counts as much as a Latin word of four letters.
        Some((language, number)) if number * 4 >= latin => match language {
            // Japanese mixes its own letters with Chinese characters.
            Language::Chinese if letters.iter().any(|(one, _)| *one == Language::Japanese) => {
                Language::Japanese
            }
            _ => language,
        },
        _ => detect_latin(tokens),
    }
}

fn detect_latin<'a>(tokens: impl Iterator<Item = &'a str> + Clone) -> Language {
    // On a tie `max_by_key` returns the last one, so the order is reversed.
    let best = LATIN.iter().rev().max_by_key(|language| {
        let words = LanguageWords::for_language(**language);
        let votes = tokens.clone().map(|token| {
            if words.is_small_word(token) {
                2
            } else {
                usize::from(words.find(token).is_some())
            }
        });
        votes.sum::<usize>()
    });
    best.copied().unwrap_or(Language::English)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_key_is_known_and_no_word_stands_twice() {
        for (language, file) in FILES {
            let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
            for (key, list) in lines(file) {
                let verbs = key.strip_prefix("does");
                if let Some(act) = verbs.and_then(|one| one.strip_prefix('-')) {
                    assert!(!meanings(act).is_empty(), "{language:?}: {key}");
                }
                if verbs.is_some() || matches!(key, "small" | "ignore" | "undrawn" | "links") {
                    continue;
                }
                assert!(!meanings(key).is_empty(), "{language:?}: {key}");
                for word in list.split('|') {
                    let word = unmarked(word);
                    assert_eq!(word, word.to_lowercase(), "{language:?}");
                    assert!(
                        !word.is_empty() && word == word.trim(),
                        "{language:?}: {key}"
                    );
                    let before = seen.insert(word, key);
                    assert_eq!(before, None, "{language:?}: {word} also means {key}");
                }
            }
        }
    }

    #[test]
    fn no_verb_or_adjective_is_read_as_a_thing() {
        let file = include_str!("../../tests/prompts/verbs-and-adjectives.txt");
        let codes = ["en", "es", "fr", "de", "it", "pt"];
        let mut wrong = Vec::new();
        for (code, list) in lines(file) {
            let at = codes.iter().position(|one| *one == code);
            let language = at.map_or(Language::Russian, |at| LATIN[at]);
            let thing = |word: &&str| {
                let entry = LanguageWords::for_language(language).find(word);
                entry.is_some_and(|entry| entry.is_noun())
            };
            wrong.extend(list.split(' ').filter(thing).map(|word| (code, word)));
        }
        assert_eq!(wrong, []);
    }

    #[test]
    fn every_language_has_a_word_for_every_subject() {
        use crate::subject::Subject;
        for (language, file) in FILES {
            let keys: Vec<&str> = lines(file).flat_map(|(key, _)| key.split('&')).collect();
            for subject in Subject::ALL {
                let noun = subject.facts().noun.to_lowercase().replace(' ', "-");
                assert!(keys.contains(&noun.as_str()), "{language:?}: {noun}");
            }
        }
    }
}
