//! Decides by ending and position whether an unknown word is a noun or an action, or else a quality. A warning names
//! either.

use super::Meaning;
use super::language::Language;
use super::tokens::{STOP, Token};
use super::words::Words;

/// Maximum number of adjectives between a determiner and its noun.
const QUALITIES: usize = 3;
/// Small words with an adjective alone behind them: "it is majestic".
const JOINS: &str = "is are it make add there es son está están est sont ist sind è sono é são";

/// Whether the unknown word at `tokens[at]` is a noun or an action.
pub(super) fn is_noun(tokens: &[Token], at: usize, words: &Words, language: Language) -> bool {
    let Token { text, written, .. } = &tokens[at];
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
fn opens(tokens: &[Token], at: usize, words: &Words, language: Language) -> bool {
    let from = at.saturating_sub(QUALITIES + 1);
    for token in tokens[from..at].iter().rev() {
        let text = token.text.as_str();
        if text == STOP || is_count(words, text) {
            return true;
        }
        if words.tells(text) {
            return !JOINS.split(' ').any(|join| join == text);
        }
        if !is_quality(words, text) && !language.describes(text) {
            return false;
        }
    }
    at <= QUALITIES
}

/// Whether a noun phrase ends with the word at `at`.
fn closes(tokens: &[Token], at: usize, words: &Words, language: Language) -> bool {
    let Some(next) = tokens.get(at + 1) else {
        return at > 0;
    };
    let listed = next.text == STOP || says(words, &next.text, Meaning::And);
    if !listed {
        let act = words.means(&next.text).is_some_and(|entry| {
            matches!(entry.meanings[..], [Meaning::Act(_)]) && !language.leads(&next.text)
        });
        return act || words.tells(&next.text) || words.links(&next.text);
    }
    // "A fantastic, gorgeous cat", but "a picnic, two dogs".
    let more = tokens.get(at + 2);
    more.is_none_or(|more| {
        let text = more.text.as_str();
        words.tells(text)
            || is_count(words, text)
            || !is_quality(words, text) && !language.describes(text)
    })
}

fn says(words: &Words, text: &str, meaning: Meaning) -> bool {
    words
        .means(text)
        .is_some_and(|entry| entry.meanings.contains(&meaning))
}

fn is_count(words: &Words, text: &str) -> bool {
    let counts = |entry: super::words::Entry| {
        let all = entry.meanings.iter();
        all.copied().all(|one| matches!(one, Meaning::Count(_)))
    };
    text.parse::<u32>().is_ok() || words.means(text).is_some_and(counts)
}

/// Whether a known word describes the noun behind it.
fn is_quality(words: &Words, text: &str) -> bool {
    words.means(text).is_some_and(|entry| {
        entry.meanings.iter().all(|meaning| {
            matches!(
                meaning,
                Meaning::Ignore
                    | Meaning::Style
                    | Meaning::Colour(_)
                    | Meaning::Size(_)
                    | Meaning::Mood(_)
                    | Meaning::Motion(_)
                    | Meaning::Weather(_)
            )
        })
    })
}
