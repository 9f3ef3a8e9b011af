//! Splits a text into words, finds the known phrases in order, longest first, marks the negated ones, and lists
//! unknown words. It assigns no properties.

use icu_segmenter::WordSegmenter;
use icu_segmenter::options::WordBreakInvariantOptions;

use super::dictionary::{LanguageWords, WordEntry};
use super::language::Language;
use super::reading::possible_act;
use super::{Meaning, is_one_of};
use crate::subject::{Act, Subject};

/// Maximum number of tokens in a phrase.
const PHRASE_MAX: usize = 5;
/// Reach of a negation, tokens.
const DENIED: usize = 4;

/// A known phrase, or a sign that ends a clause.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScanItem {
    /// Index of its first token.
    pub(super) at: usize,
    /// Number of its tokens.
    pub(super) count: usize,
    /// Original spelling.
    pub(super) written: String,
    /// Empty for a sign that ends a clause.
    pub(super) meanings: Vec<Meaning>,
    pub(super) plural: bool,
    /// Whether a negation excludes it.
    pub(super) denied: bool,
    /// The word that is drawn in its place.
    pub(super) near: Option<String>,
}

impl ScanItem {
    pub(super) fn is_stop(&self) -> bool {
        self.meanings.is_empty()
    }

    pub(super) fn says(&self, meaning: Meaning) -> bool {
        self.meanings.contains(&meaning)
    }

    /// The subjects that it names and no negation excludes; a family names three.
    pub(super) fn subjects(&self) -> impl Iterator<Item = Subject> + '_ {
        let named = self.meanings.iter().filter(|_| !self.denied);
        named.filter_map(Meaning::subject)
    }

    pub(super) fn subject(&self) -> Option<Subject> {
        self.subjects().next()
    }

    /// Whether a meaning of it satisfies `is_it`.
    pub(super) fn has_meaning(&self, is_it: impl FnMut(&Meaning) -> bool) -> bool {
        self.meanings.iter().any(is_it)
    }
}

/// The phrases of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct PhraseScan {
    pub(super) items: Vec<ScanItem>,
    /// Nouns and actions without a drawing, as written, and their token indices.
    pub(super) unknown: Vec<(String, usize)>,
    /// Styles and qualities in the same way.
    pub(super) styles: Vec<(String, usize)>,
    /// Entries of `styles` that are parts of bodies, which can have a colour.
    pub(super) parts: Vec<(String, usize)>,
}

fn text_of(tokens: &[WordToken]) -> (String, String) {
    let glue = if tokens.iter().all(|token| token.unspaced) {
        ""
    } else {
        " "
    };
    let join = |part: fn(&WordToken) -> &str| {
        let parts: Vec<&str> = tokens.iter().map(part).collect();
        parts.join(glue)
    };
    (join(|token| &token.text), join(|token| &token.written))
}

fn number(token: &WordToken) -> Option<WordEntry> {
    let count = token.text.parse::<u32>().ok().filter(|count| *count > 0)?;
    Some(WordEntry {
        meanings: vec![Meaning::Count(count)],
        plural: count > 1,
        near: None,
    })
}

/// The meaning of the longest known phrase at `tokens[at..]`, and its number of tokens. In a script without spaces a
/// phrase is whole words, or longer than the word that it begins.
fn phrase(tokens: &[WordToken], at: usize, words: &LanguageWords) -> Option<(WordEntry, usize)> {
    let end = word_end(tokens, at);
    longest(tokens, at, words, |count| {
        tokens[at + count - 1].ends || at + count > end
    })
}

/// The longest known phrase at `tokens[at..]` among those of the numbers of tokens that are `right`.
fn longest(
    tokens: &[WordToken],
    at: usize,
    words: &LanguageWords,
    right: impl Fn(usize) -> bool,
) -> Option<(WordEntry, usize)> {
    // In scripts without spaces a token is one character, so that phrases have more of them.
    let longest = PHRASE_MAX.max(if tokens[at].unspaced { 8 } else { 0 });
    let longest = longest.min(tokens.len() - at);
    // Longest first: "fire engine" before "fire".
    (1..=longest)
        .rev()
        .filter(|count| right(*count))
        .find_map(|count| {
            let part = &tokens[at..at + count];
            if part.iter().any(|token| token.text == STOP) {
                return None;
            }
            let known = words.find(&text_of(part).0);
            known
                .or_else(|| (count == 1).then(|| number(&part[0])).flatten())
                .map(|entry| (entry, count))
        })
}

/// The token behind the word that begins at `at`.
fn word_end(tokens: &[WordToken], at: usize) -> usize {
    let rest = tokens[at..].iter().position(|token| token.ends);
    rest.map_or(tokens.len(), |rest| at + rest + 1)
}

/// The known parts of a word that the dictionary has and the engine has not: "白马" is a white horse. Of two nouns it is
/// none: "海马" is no horse at sea.
fn known_parts(
    tokens: &[WordToken],
    at: usize,
    words: &LanguageWords,
) -> Option<Vec<(usize, WordEntry, usize)>> {
    let end = word_end(tokens, at);
    let mut found: Vec<(usize, WordEntry, usize)> = Vec::new();
    let mut from = at;
    while from < end {
        let known = longest(tokens, from, words, |count| {
            count > 1 || from + count <= end
        });
        match known {
            Some((entry, count)) => {
                found.push((from, entry, count));
                from += count;
            }
            // The ending of a Japanese verb.
            None if is_hiragana(&tokens[from].text) && from > at => from += 1,
            None => return None,
        }
    }
    let named = found
        .iter()
        .filter(|(_, entry, _)| {
            entry.is_noun() || entry.meanings.iter().any(|one| one.act().is_some())
        })
        .count();
    (named <= 1).then_some(found)
}

fn is_hiragana(text: &str) -> bool {
    text.chars()
        .all(|c| matches!(u32::from(c), 0x3040..=0x309f))
}

/// The meaning of the last part of a word with hyphens, if only that is known.
fn hyphened(token: &WordToken, words: &LanguageWords) -> Option<WordEntry> {
    let (_, last) = token.text.rsplit_once('-')?;
    words.find(last)
}

/// Pronouns, which can do an action as subjects can.
const PRONOUNS: &str = "he she they who we i you";

/// The meaning of the word at `tokens[at]` as a verb of the subject just before it: "a girl waves".
fn verb<'a>(
    tokens: &[WordToken],
    at: usize,
    items: &[ScanItem],
    words: &'a LanguageWords,
) -> Option<&'a [Meaning]> {
    let meanings = words.verb_meanings(&tokens[at].text)?;
    let adverb = at > 0 && tokens[at - 1].text.ends_with("ly");
    let end = at - usize::from(adverb);
    let before = &tokens.get(end.checked_sub(1)?)?.text;
    if is_one_of(PRONOUNS, before) {
        return Some(meanings);
    }
    let mut before = items.iter().rev();
    let doer = before.find(|item| item.at + item.count == end)?;
    let mut named = doer.meanings.iter().filter_map(Meaning::subject);
    // "Baby bats" are bats, not a baby that bats.
    let living = named.any(|one| one != Subject::Baby && possible_act(one, Act::Eat).is_some());
    // In "a woman cook" the word is a noun, in "two women cook" a verb.
    let english = words.language == Language::English;
    let several = doer.plural || items.iter().any(|item| item.says(Meaning::And));
    let agrees = !english || several || tokens[at].text.ends_with('s');
    (living && agrees).then_some(meanings)
}

/// Reads `tokens` in `language`.
pub(super) fn scan_phrases(tokens: &[WordToken], language: Language) -> PhraseScan {
    let words = LanguageWords::for_language(language);
    let mut scan = PhraseScan::default();
    let mut run = String::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let known = phrase(tokens, at, words);
        let long = known.as_ref().is_some_and(|(_, count)| *count > 1);
        let verb = verb(tokens, at, &scan.items, words).filter(|_| !long);
        let known = match verb {
            Some([]) => None,
            Some(meanings) => Some((WordEntry::new(meanings), 1)),
            None => known,
        };
        let found = known.map(|(entry, count)| vec![(at, entry, count)]);
        let found = found.or_else(|| {
            token
                .unspaced
                .then(|| known_parts(tokens, at, words))
                .flatten()
        });
        let end = word_end(tokens, at);
        // Single characters without a meaning are one word.
        let single = found.is_none() && token.unspaced && end == at + 1;
        if !single {
            scan.add_unknown(std::mem::take(&mut run), at);
        }
        if let Some(found) = found {
            for (from, entry, count) in found {
                at = from + count;
                scan.add_phrase(tokens, from, count, entry);
            }
            continue;
        }
        match hyphened(token, words).filter(|_| verb.is_none()) {
            _ if token.text == STOP => scan.add_phrase(tokens, at, 1, WordEntry::new(&[])),
            _ if single => run.push_str(&token.written),
            Some(entry) => {
                let near = Some(entry.near.clone().unwrap_or_else(|| last_part(token)));
                scan.add_phrase(tokens, at, 1, WordEntry { near, ..entry });
            }
            None if token.unspaced => scan.add_unknown(text_of(&tokens[at..end]).1, at),
            None if verb.is_some() || is_noun(tokens, at, words, language) => {
                scan.add_unknown(token.written.clone(), at);
            }
            None => scan.styles.push((token.written.clone(), at)),
        }
        at = end;
    }
    scan.add_unknown(run, tokens.len());
    let PhraseScan {
        items,
        unknown,
        styles,
        ..
    } = &mut scan;
    unknown.retain(|(_, at)| !is_denied(items, *at));
    styles.retain(|(_, at)| !is_denied(items, *at));
    mark_denied(items);
    scan
}

fn last_part(token: &WordToken) -> String {
    let last = token.written.rsplit('-').next();
    last.unwrap_or_default().to_owned()
}

impl PhraseScan {
    /// Adds the phrase of `count` tokens at `at`.
    fn add_phrase(&mut self, tokens: &[WordToken], at: usize, count: usize, entry: WordEntry) {
        let (_, written) = text_of(&tokens[at..at + count]);
        match entry.meanings[..] {
            [Meaning::Ignore] => {}
            [Meaning::Undrawn] => self.add_unknown(written, at),
            [Meaning::Style] => self.styles.push((written, at)),
            [Meaning::Part] => {
                self.styles.push((written.clone(), at));
                self.parts.push((written, at));
            }
            _ => self.items.push(ScanItem {
                at,
                count,
                written,
                meanings: entry.meanings,
                plural: entry.plural,
                denied: false,
                near: entry.near,
            }),
        }
    }

    fn add_unknown(&mut self, word: String, at: usize) {
        let letters = word.chars().filter(|c| c.is_alphanumeric()).count();
        // Japanese particles and endings are in hiragana.
        let grammar = is_hiragana(&word);
        let least = match word.chars().map(u32::from).max() {
            // The Russian "с" means "with".
            Some(0..0x0530) => 2,
            _ => 1,
        };
        if letters >= least && !grammar && !self.unknown.iter().any(|(one, _)| *one == word) {
            self.unknown.push((word, at));
        }
    }
}

/// Whether a negation just before token `at` excludes an unknown word there.
fn is_denied(items: &[ScanItem], at: usize) -> bool {
    let before = items.iter().rev().find(|item| item.at < at);
    before.is_some_and(|item| item.says(Meaning::Not) && item.at + item.count + 2 > at)
}

/// Whether a negation can exclude this item.
fn is_thing(item: &ScanItem) -> bool {
    use Meaning::{Act, Fade, Heaven, Hour, Neon, Place, Season, Subject, Verb, Weather};
    item.has_meaning(|one| {
        matches!(
            one,
            Subject(_) | Weather(_) | Place(_) | Hour(_) | Neon | Heaven
        ) || matches!(one, Act(_) | Fade(_) | Verb(_) | Season(_))
    })
}

/// Marks the items that a negation excludes: the next thing within a few words, and those that "or" adds.
fn mark_denied(items: &mut [ScanItem]) {
    // `reach`: up to which token a negation still waits for its thing. `listed`: it has just found
    // one, so that "or" may add another.
    let mut reach: Option<usize> = None;
    let mut listed = false;
    for index in 0..items.len() {
        let at = items[index].at;
        if items[index].says(Meaning::Not) {
            reach = Some(at + items[index].count + DENIED);
            listed = false;
        } else if items[index].says(Meaning::NotAfter) {
            // "雲のない空": the negation follows its noun.
            let before = items[..index].iter().rposition(is_thing);
            if let Some(before) = before.filter(|before| items[*before].at + DENIED >= at) {
                items[before].denied = true;
            }
        } else if items[index].is_stop() {
            reach = None;
        } else if items[index].says(Meaning::Or) {
            // "No people or cars".
            if listed {
                reach = Some(at + 1 + DENIED);
                listed = false;
            }
        } else if reach.is_some_and(|reach| at < reach) && is_thing(&items[index]) {
            items[index].denied = true;
            reach = None;
            listed = true;
        } else if reach.is_none() && !items[index].says(Meaning::And) {
            listed = false;
        }
    }
}

// Splits a text into words, and into characters in scripts without spaces, where a dictionary says
// which characters end a word. It knows no meanings.

/// One word of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WordToken {
    /// Lower case.
    pub(super) text: String,
    /// As it was written.
    pub(super) written: String,
    /// Whether it is a character of a script without spaces.
    pub(super) unspaced: bool,
    /// Whether a word ends with it: false for a character within one.
    ends: bool,
}

impl WordToken {
    fn new(written: &str) -> Self {
        Self {
            text: written.to_lowercase().replace('’', "'"),
            written: written.to_owned(),
            unspaced: false,
            ends: true,
        }
    }
}

/// The token for a sign that ends a clause.
const STOP: &str = ",";

/// Chinese, Japanese and Korean.
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(u32::from(c), 0x2e80..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Scripts that write words without spaces between them. Korean has spaces.
fn is_unspaced(c: char) -> bool {
    is_cjk(c) && !matches!(u32::from(c), 0xac00..=0xd7af)
}

fn is_part(c: char) -> bool {
    // Unicode does not count Devanagari's joining signs as letters.
    c.is_alphanumeric() || matches!(c, '\'' | '’' | '-') || matches!(u32::from(c), 0x0900..=0x0963)
}

pub(super) fn tokenize(text: &str) -> Vec<WordToken> {
    let mut tokens: Vec<WordToken> = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        if ".!?;,:。，、！？；：،؛؟।\n".contains(c) {
            flush_word(&mut word, &mut tokens);
            tokens.push(WordToken {
                text: STOP.to_owned(),
                ..WordToken::new("")
            });
        } else if is_unspaced(c) && c.is_alphanumeric() || c == '·' {
            flush_word(&mut word, &mut tokens);
            tokens.push(WordToken {
                unspaced: true,
                ..WordToken::new(&c.to_string())
            });
        } else if is_part(c) {
            word.push(c);
        } else {
            flush_word(&mut word, &mut tokens);
        }
    }
    flush_word(&mut word, &mut tokens);
    end_words(&mut tokens);
    tokens
}

/// Ends the word that was being read.
fn flush_word(word: &mut String, tokens: &mut Vec<WordToken>) {
    // Hyphens and apostrophes belong to words only between letters: "'twas-" is "twas".
    let written = std::mem::take(word);
    let written = written.trim_matches(['-', '\'', '’']);
    if !written.is_empty() {
        tokens.push(WordToken::new(written));
    }
}

/// Finds the ends of words in each run of characters without spaces.
fn end_words(tokens: &mut [WordToken]) {
    // The dictionary decides where words end, and nothing about their meaning.
    let segmenter = WordSegmenter::new_auto(WordBreakInvariantOptions::default());
    for run in tokens.chunk_by_mut(|one, next| one.unspaced && next.unspaced) {
        let text: String = run.iter().map(|token| token.text.as_str()).collect();
        let ends: Vec<usize> = segmenter.segment_str(&text).collect();
        let mut at = 0;
        for token in run.iter_mut().filter(|token| token.unspaced) {
            at += token.text.len();
            token.ends = ends.binary_search(&at).is_ok();
        }
    }
}

// Decides by ending and position whether an unknown word is a noun or an action, or else a quality.
// A warning names either.

/// Maximum number of adjectives between a determiner and its noun.
const QUALITIES: usize = 3;
/// Small words with an adjective alone behind them: "it is majestic".
const JOINS: &str = "is are it make add there es son está están est sont ist sind è sono é são";

/// Whether the unknown word at `tokens[at]` is a noun or an action.
fn is_noun(tokens: &[WordToken], at: usize, words: &LanguageWords, language: Language) -> bool {
    let WordToken { text, written, .. } = &tokens[at];
    if !language.describes(text) {
        return true;
    }
    let first = at == 0 || tokens[at - 1].text == STOP;
    // German writes its nouns with capitals.
    let capital = written.chars().next().is_some_and(char::is_uppercase);
    if language == Language::German && !first && capital {
        return true;
    }
    opens(tokens, at, words, language) && closes(tokens, at, words, language)
}

/// Whether a noun phrase may begin before `at` without a noun so far.
fn opens(tokens: &[WordToken], at: usize, words: &LanguageWords, language: Language) -> bool {
    let from = at.saturating_sub(QUALITIES + 1);
    for token in tokens[from..at].iter().rev() {
        let text = token.text.as_str();
        if text == STOP || is_count(words, text) {
            return true;
        }
        if words.is_small_word(text) {
            return !is_one_of(JOINS, text);
        }
        if !is_quality(words, text) && !language.describes(text) {
            return false;
        }
    }
    at <= QUALITIES
}

/// Whether a noun phrase ends with the word at `at`.
fn closes(tokens: &[WordToken], at: usize, words: &LanguageWords, language: Language) -> bool {
    let Some(next) = tokens.get(at + 1) else {
        return at > 0;
    };
    let listed = next.text == STOP || says(words, &next.text, Meaning::And);
    if !listed {
        let act = words.find(&next.text).is_some_and(|entry| {
            matches!(entry.meanings[..], [Meaning::Act(_)]) && !language.leads(&next.text)
        });
        return act || words.is_small_word(&next.text) || words.ends_noun(&next.text);
    }
    // "A fantastic, gorgeous cat", but "a picnic, two dogs".
    let more = tokens.get(at + 2);
    more.is_none_or(|more| {
        let text = more.text.as_str();
        words.is_small_word(text)
            || is_count(words, text)
            || !is_quality(words, text) && !language.describes(text)
    })
}

fn says(words: &LanguageWords, text: &str, meaning: Meaning) -> bool {
    words
        .find(text)
        .is_some_and(|entry| entry.meanings.contains(&meaning))
}

fn is_count(words: &LanguageWords, text: &str) -> bool {
    text.parse::<u32>().is_ok()
        || words.find(text).is_some_and(|entry| {
            let all = entry.meanings.iter();
            all.copied().all(|one| matches!(one, Meaning::Count(_)))
        })
}

/// Whether a known word describes the noun behind it.
fn is_quality(words: &LanguageWords, text: &str) -> bool {
    use Meaning::{Colour, Ignore, Mood, Motion, Size, Style, Weather};
    words.find(text).is_some_and(|entry| {
        entry.meanings.iter().all(|one| {
            matches!(
                one,
                Ignore | Style | Colour(_) | Size(_) | Mood(_) | Motion(_) | Weather(_)
            )
        })
    })
}
