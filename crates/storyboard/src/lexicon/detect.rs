//! Detects the language of a text. The script decides if it can; among languages with Latin letters, words vote.

use super::language::{LATIN, Language};
use super::words::Words;

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
    let count = |wanted: Language| {
        let found = letters.iter().find(|(one, _)| *one == wanted);
        found.map_or(0, |(_, count)| *count)
    };
    let most = letters.iter().max_by_key(|(_, count)| *count).copied();
    match most {
        // One letter of another script counts as much as a Latin word of four letters.
        Some((language, number)) if number * 4 >= latin => match language {
            // Japanese mixes its own letters with Chinese characters.
            Language::Chinese if count(Language::Japanese) > 0 => Language::Japanese,
            _ => language,
        },
        _ => of_latin(tokens),
    }
}

fn of_latin<'a>(tokens: impl Iterator<Item = &'a str> + Clone) -> Language {
    // On a tie `max_by_key` returns the last one, so the order is reversed.
    let best = LATIN.iter().rev().max_by_key(|language| {
        let words = Words::of(**language);
        let votes = tokens.clone().map(|token| {
            if words.tells(token) {
                2
            } else {
                usize::from(words.means(token).is_some())
            }
        });
        votes.sum::<usize>()
    });
    best.copied().unwrap_or(Language::English)
}
