//! Finds the known phrases of a text in order, longest first, marks the negated ones, and lists unknown words. It
//! assigns no properties.

use super::Meaning;
use super::able::able;
use super::language::Language;
use super::nouns::is_noun;
use super::tokens::{STOP, Token};
use super::words::{Entry, Words};
use crate::subject::{Act, Subject};

/// Maximum number of tokens in a phrase.
const PHRASE_MAX: usize = 5;
/// Reach of a negation, tokens.
const DENIED: usize = 4;

/// A known phrase, or a sign that ends a clause.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    /// Index of its first token.
    pub(super) at: usize,
    /// Number of its tokens.
    pub(super) count: usize,
    /// As it was written.
    pub(super) written: String,
    /// Empty for a sign that ends a clause.
    pub(super) meanings: Vec<Meaning>,
    pub(super) plural: bool,
    /// Whether a negation excludes it.
    pub(super) denied: bool,
    /// The word that is drawn in its place.
    pub(super) near: Option<String>,
}

impl Item {
    pub(super) fn is_stop(&self) -> bool {
        self.meanings.is_empty()
    }

    pub(super) fn says(&self, meaning: Meaning) -> bool {
        self.meanings.contains(&meaning)
    }
}

/// The phrases of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    pub(super) items: Vec<Item>,
    /// Nouns and actions without a drawing, as written, and their token indices.
    pub(super) unknown: Vec<(String, usize)>,
    /// Styles and qualities in the same way.
    pub(super) styles: Vec<(String, usize)>,
    /// Those of them that are parts of bodies, which can have a colour.
    pub(super) parts: Vec<(String, usize)>,
}

fn text_of(tokens: &[Token]) -> (String, String) {
    let glue = if tokens.iter().all(|token| token.unspaced) {
        ""
    } else {
        " "
    };
    let join = |part: fn(&Token) -> &str| {
        let parts: Vec<&str> = tokens.iter().map(part).collect();
        parts.join(glue)
    };
    (join(|token| &token.text), join(|token| &token.written))
}

fn number(token: &Token) -> Option<Entry> {
    let count = token.text.parse::<u32>().ok().filter(|count| *count > 0)?;
    Some(Entry {
        meanings: vec![Meaning::Count(count)],
        plural: count > 1,
        near: None,
    })
}

/// The meaning of the longest known phrase at `tokens[at..]`, and its number of tokens. In a script without spaces a
/// phrase is whole words, or longer than the word that it begins.
fn phrase(tokens: &[Token], at: usize, words: &Words) -> Option<(Entry, usize)> {
    let end = word_end(tokens, at);
    let whole = |count: usize| tokens[at + count - 1].ends || at + count > end;
    longest(tokens, at, words, whole)
}

/// The longest known phrase at `tokens[at..]` among those of the numbers of tokens that are `right`.
fn longest(
    tokens: &[Token],
    at: usize,
    words: &Words,
    right: impl Fn(usize) -> bool,
) -> Option<(Entry, usize)> {
    let longest = PHRASE_MAX.max(if tokens[at].unspaced { 8 } else { 0 });
    let longest = longest.min(tokens.len() - at);
    (1..=longest)
        .rev()
        .filter(|count| right(*count))
        .find_map(|count| {
            let part = &tokens[at..at + count];
            if part.iter().any(|token| token.text == STOP) {
                return None;
            }
            let known = words.means(&text_of(part).0);
            known
                .or_else(|| (count == 1).then(|| number(&part[0])).flatten())
                .map(|entry| (entry, count))
        })
}

/// The token behind the word that begins at `at`.
fn word_end(tokens: &[Token], at: usize) -> usize {
    let rest = tokens[at..].iter().position(|token| token.ends);
    rest.map_or(tokens.len(), |rest| at + rest + 1)
}

/// The known parts of a word that the dictionary has and the engine has not: "白马" is a white horse. Of two nouns it is
/// none: "海马" is no horse at sea.
fn parts(tokens: &[Token], at: usize, words: &Words) -> Option<Vec<(usize, Entry, usize)>> {
    let end = word_end(tokens, at);
    let mut found: Vec<(usize, Entry, usize)> = Vec::new();
    let mut from = at;
    while from < end {
        let inside = |count: usize| count > 1 || from + count <= end;
        match longest(tokens, from, words, inside) {
            Some((entry, count)) => {
                found.push((from, entry, count));
                from += count;
            }
            // The ending of a Japanese verb.
            None if is_hiragana(&tokens[from].text) && from > at => from += 1,
            None => return None,
        }
    }
    let names = |entry: &Entry| {
        let name = |one: &Meaning| {
            matches!(
                one,
                Meaning::Subject(_) | Meaning::Place(_) | Meaning::Act(_)
            )
        };
        entry.meanings.iter().any(name)
    };
    let named = found.iter().filter(|(_, entry, _)| names(entry)).count();
    (named <= 1).then_some(found)
}

fn is_hiragana(text: &str) -> bool {
    text.chars()
        .all(|c| matches!(u32::from(c), 0x3040..=0x309f))
}

/// The meaning of the last part of a word with hyphens, if only that is known.
fn hyphened(token: &Token, words: &Words) -> Option<Entry> {
    let (_, last) = token.text.rsplit_once('-')?;
    words.means(last)
}

/// Pronouns, which can do an action as subjects can.
const PRONOUNS: &str = "he she they who we i you";

/// The meaning of the word at `tokens[at]` as a verb of the subject just before it: "a girl waves".
fn verb<'a>(
    tokens: &[Token],
    at: usize,
    items: &[Item],
    words: &'a Words,
) -> Option<&'a [Meaning]> {
    let meanings = words.does(&tokens[at].text)?;
    let adverb = at > 0 && tokens[at - 1].text.ends_with("ly");
    let end = at - usize::from(adverb);
    let before = &tokens.get(end.checked_sub(1)?)?.text;
    if PRONOUNS.split(' ').any(|one| one == before) {
        return Some(meanings);
    }
    let mut before = items.iter().rev();
    let doer = before.find(|item| item.at + item.count == end)?;
    let living = doer.meanings.iter().any(|meaning| match meaning {
        // "Baby bats" are bats, not a baby that bats.
        Meaning::Subject(one) => *one != Subject::Baby && able(*one, Act::Eat).is_some(),
        _ => false,
    });
    // In "a woman cook" the word is a noun, in "two women cook" a verb.
    let english = words.language() == Some(Language::English);
    let several = doer.plural || items.iter().any(|item| item.says(Meaning::And));
    let agrees = !english || several || tokens[at].text.ends_with('s');
    (living && agrees).then_some(meanings)
}

/// Reads `tokens` in `language`.
pub(super) fn scan(tokens: &[Token], language: Language) -> Scan {
    let words = Words::of(language);
    let mut scan = Scan::default();
    let mut run = String::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let known = phrase(tokens, at, words);
        let long = known.as_ref().is_some_and(|(_, count)| *count > 1);
        let verb = verb(tokens, at, &scan.items, words).filter(|_| !long);
        let known = match verb {
            Some([]) => None,
            Some(meanings) => Some((Entry::of(meanings), 1)),
            None => known,
        };
        let found = known.map(|(entry, count)| vec![(at, entry, count)]);
        let found = found.or_else(|| token.unspaced.then(|| parts(tokens, at, words)).flatten());
        let end = word_end(tokens, at);
        // Single characters without a meaning are one word.
        let single = found.is_none() && token.unspaced && end == at + 1;
        if !single {
            scan.miss(std::mem::take(&mut run), at);
        }
        if let Some(found) = found {
            for (from, entry, count) in found {
                at = from + count;
                scan.add(tokens, from, count, entry);
            }
            continue;
        }
        match hyphened(token, words).filter(|_| verb.is_none()) {
            _ if token.text == STOP => scan.add(tokens, at, 1, Entry::of(&[])),
            _ if single => run.push_str(&token.written),
            Some(entry) => {
                let near = Some(entry.near.clone().unwrap_or_else(|| last_part(token)));
                scan.add(tokens, at, 1, Entry { near, ..entry });
            }
            None if token.unspaced => scan.miss(text_of(&tokens[at..end]).1, at),
            None if verb.is_some() || is_noun(tokens, at, words, language) => {
                scan.miss(token.written.clone(), at);
            }
            None => scan.styles.push((token.written.clone(), at)),
        }
        at = end;
    }
    scan.miss(run, tokens.len());
    let Scan {
        items,
        unknown,
        styles,
        ..
    } = &mut scan;
    unknown.retain(|(_, at)| !is_denied(items, *at));
    styles.retain(|(_, at)| !is_denied(items, *at));
    deny(items);
    scan
}

fn last_part(token: &Token) -> String {
    let last = token.written.rsplit('-').next();
    last.unwrap_or_default().to_owned()
}

impl Scan {
    /// Adds the phrase of `count` tokens at `at`.
    fn add(&mut self, tokens: &[Token], at: usize, count: usize, entry: Entry) {
        let (_, written) = text_of(&tokens[at..at + count]);
        match entry.meanings[..] {
            [Meaning::Ignore] => {}
            [Meaning::Undrawn] => self.miss(written, at),
            [Meaning::Style] => self.styles.push((written, at)),
            [Meaning::Part] => {
                self.styles.push((written.clone(), at));
                self.parts.push((written, at));
            }
            _ => self.items.push(Item {
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

    fn miss(&mut self, word: String, at: usize) {
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
fn is_denied(items: &[Item], at: usize) -> bool {
    let before = items.iter().rev().find(|item| item.at < at);
    before.is_some_and(|item| item.says(Meaning::Not) && item.at + item.count + 2 > at)
}

/// Whether a negation can exclude this item.
fn is_thing(item: &Item) -> bool {
    item.meanings.iter().any(|meaning| {
        matches!(
            meaning,
            Meaning::Subject(_)
                | Meaning::Weather(_)
                | Meaning::Place(_)
                | Meaning::Hour(_)
                | Meaning::Neon
                | Meaning::Heaven
                | Meaning::Act(_)
                | Meaning::Fade(_)
                | Meaning::Verb(_)
                | Meaning::Season(_)
        )
    })
}

/// Marks the items that a negation excludes: the next thing within a few words, and those that "or" adds.
fn deny(items: &mut [Item]) {
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
