//! Counts the content words of a prompt that are neither drawn nor named in a warning, by a list of function words of
//! its own (`tests/prompts/function-words.txt`). The example `prompt_report` uses it too.

use std::collections::BTreeSet;

use icu_segmenter::WordSegmenter;
use icu_segmenter::options::WordBreakInvariantOptions;
use kinora_contract::VideoSpec;
use kinora_engine::{ClipPlanner, JobMaterials};
use kinora_engine_storyboard::{Storyboard, drawn_words, figures_in_frame};

const FUNCTION_WORDS: &str = include_str!("../prompts/function-words.txt");

/// What became of the content words of a prompt.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Neither drawn nor named.
    pub(crate) silent: Vec<String>,
    /// Named as not drawn, although a figure of that name is seen.
    pub(crate) wronged: Vec<String>,
    /// The words that the engine calls drawn.
    pub(crate) drawn: Vec<String>,
    /// The warnings.
    pub(crate) said: Vec<String>,
}

/// The words that ask for nothing, of all languages.
pub(crate) fn function_words() -> BTreeSet<&'static str> {
    let lines = FUNCTION_WORDS.lines().filter(|line| !line.starts_with('#'));
    let words = lines.filter_map(|line| line.split_once(": "));
    words.flat_map(|(_, words)| words.split(' ')).collect()
}

fn is_chinese(word: &str) -> bool {
    word.chars()
        .any(|c| matches!(u32::from(c), 0x3400..=0x9fff))
}

/// The content words of `prompt`, in lower case, and where they begin.
fn content(prompt: &str, closed: &BTreeSet<&str>) -> Vec<(usize, String)> {
    let segmenter = WordSegmenter::new_auto(WordBreakInvariantOptions::default());
    let lower = prompt.to_lowercase().replace('’', "'");
    let ends: Vec<usize> = segmenter.segment_str(&lower).collect();
    let words = ends
        .windows(2)
        .map(|pair| (pair[0], &lower[pair[0]..pair[1]]));
    let plain = |word: &str| word.strip_suffix("'s").unwrap_or(word).to_owned();
    words
        .filter(|(_, word)| word.chars().any(char::is_alphabetic))
        .map(|(at, word)| (at, plain(word)))
        .filter(|(_, word)| !closed.contains(word.as_str()))
        .filter(|(_, word)| is_chinese(word) || word.chars().count() > 1)
        .collect()
}

/// Whether `word` is one of `phrases` or a word of one.
fn covered(word: &str, phrases: &[String]) -> bool {
    let is_sign = |c: char| !c.is_alphanumeric() && c != '\'';
    phrases.iter().any(|phrase| {
        let mut parts = phrase
            .split(is_sign)
            .map(|part| part.strip_suffix("'s").unwrap_or(part));
        phrase == word || parts.any(|part| part == word)
    })
}

/// The characters of `prompt`, in lower case, without those of `phrases`, which `*` replaces.
fn rest(prompt: &str, phrases: &[String]) -> String {
    let mut rest = prompt.to_lowercase();
    let mut long: Vec<&String> = phrases.iter().filter(|one| is_chinese(one)).collect();
    long.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
    for phrase in long {
        rest = rest.replace(phrase.as_str(), &"*".repeat(phrase.len()));
    }
    rest
}

/// The words in quotation marks of `message`.
fn quoted(message: &str) -> Vec<String> {
    message
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_lowercase)
        .collect()
}

/// What became of the content words of the prompt of `spec`.
pub(crate) fn account(spec: &VideoSpec) -> Account {
    let closed = function_words();
    let warnings = Storyboard::default().warnings(spec, &JobMaterials::default());
    let said: Vec<String> = warnings
        .into_iter()
        .map(|one| format!("{}: {}", one.code, one.message))
        .collect();
    let named: Vec<String> = said.iter().flat_map(|message| quoted(message)).collect();
    let drawn: Vec<String> = drawn_words(spec)
        .iter()
        .map(|word| word.to_lowercase())
        .collect();
    let known = [named, drawn.clone()].concat();
    let rest = rest(&spec.prompt, &known);
    // The dictionary errs at times: of a word of function characters and a drawn one nothing is lost.
    let remains = |at: usize, word: &str| {
        let rest = rest.get(at..at + word.len()).unwrap_or(word).chars();
        rest.filter(|c| *c != '*')
            .any(|c| !closed.contains(c.to_string().as_str()))
    };
    let is_lost = |(at, word): &(usize, String)| match is_chinese(word) {
        true => remains(*at, word),
        false => !covered(word, &known),
    };
    let words = content(&spec.prompt, &closed).into_iter();
    let silent = words.filter(is_lost).map(|(_, word)| word).collect();
    let figures = figures_in_frame(spec, 0).unwrap_or_default();
    let shown = |word: &String| figures.iter().any(|one| one.name == word.as_str());
    let undrawn = said
        .iter()
        .filter(|message| message.starts_with("not_drawn") && !message.contains(" of "));
    let wronged = undrawn
        .flat_map(|message| quoted(message))
        .filter(shown)
        .collect();
    Account {
        silent,
        wronged,
        drawn,
        said,
    }
}
