//! Warnings of a task: words for which the engine draws nothing, and characters that no font has. It does not change
//! the clip.

use kinora_contract::{Inputs, VideoSpec, Warning, WarningCode};

use super::Options;
use super::caption;
use super::lexicon::{Reading, is_read, language_of, shapes};
use super::revise::{Wish, taken};
use super::script::beats_read;

/// Maximum number of words in a warning.
const WORDS_MAX: usize = 12;
/// Maximum length of a word that it quotes in full, characters.
const WORD_MAX: usize = 40;

/// Maximum number of characters in a warning.
const LISTED_MAX: usize = 20;

/// The warnings of a request.
/// `seen` says whether an edit's source can only be seen.
pub(super) fn of(spec: &VideoSpec, seen: bool, options: &Options) -> Vec<Warning> {
    let mut warnings = characters_not_set(spec, options);
    warnings.extend(not_drawn(spec, seen));
    warnings
}

/// Names the nouns and actions that are not drawn.
fn not_drawn(spec: &VideoSpec, seen: bool) -> Option<Warning> {
    let avoid = spec.negative_prompt.as_deref().unwrap_or_default();
    let warn = |message: String| Some(Warning::new(WarningCode::NotDrawn, message));
    let is_edit = spec.edit.is_some();
    let readings = beats_read(&spec.prompt, avoid);
    if !is_edit && !matches!(spec.inputs, Inputs::Text) {
        return paints_none(&readings).then(|| {
            Warning::new(
                WarningCode::NotDrawn,
                "The storyboard engine shows the given pictures with a camera move: what the prompt adds to them \
                 is not drawn.",
            )
        });
    }
    let language = language_of(&spec.prompt);
    if !is_read(language) && spec.prompt.chars().any(char::is_alphabetic) {
        return warn(
            "The storyboard engine does not read the language of the prompt: it is shown as a caption, and \
             nothing was drawn for its words."
                .to_owned(),
        );
    }
    let words = if is_edit {
        let missed = Wish::read(&spec.prompt, avoid).missed().cloned().collect();
        let shapes = |text: &str, taken| match seen {
            true => shapes(language, text, taken),
            false => Vec::new(),
        };
        let asked = shapes(&spec.prompt, false);
        let taken = shapes(&taken(&spec.prompt), true);
        unlike([asked, taken, missed].concat())
    } else {
        unlike(readings.into_iter().flat_map(|one| one.missed).collect())
    };
    let named = listed(&words)?;
    warn(if seen {
        format!(
            "The storyboard engine changes light, colours and weather of a video that it did not make from words \
             itself, and keeps every shape: it changed nothing for {named}."
        )
    } else {
        format!("The storyboard engine drew nothing for: {named}.")
    })
}

/// Each word once.
fn unlike(all: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in all {
        let lower = word.to_lowercase();
        if !words.iter().any(|one| one.to_lowercase() == lower) {
            words.push(word);
        }
    }
    words
}

/// The first of `words`, quoted, and how many more there are; `None` for none.
fn listed(words: &[String]) -> Option<String> {
    if words.is_empty() {
        return None;
    }
    let more = words.len().saturating_sub(WORDS_MAX);
    let named: Vec<String> = words
        .iter()
        .take(WORDS_MAX)
        .map(|word| quoted(word))
        .collect();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Some(format!("{}{more}", named.join(", ")))
}

/// Whether the words ask for something that pictures of the caller do not show by themselves.
fn paints_none(readings: &[Reading]) -> bool {
    readings.iter().any(|reading| {
        !reading.roles.is_empty() || !reading.weather.is_empty() || !reading.missed.is_empty()
    })
}

fn quoted(word: &str) -> String {
    let mut short: String = word.chars().take(WORD_MAX).collect();
    if short.len() < word.len() {
        short.push('…');
    }
    format!("\"{short}\"")
}

/// The characters of the prompt that captions leave out, if there are captions.
fn characters_not_set(spec: &VideoSpec, options: &Options) -> Vec<Warning> {
    let edit = spec.edit.as_ref();
    let is_faint = edit.is_some_and(|edit| edit.strength <= 0.0);
    if !options.caption || is_faint {
        return Vec::new();
    }
    let unset = caption::unset(&spec.prompt, options.system_fonts);
    if unset.is_empty() {
        return Vec::new();
    }
    let name = |c: &char| format!("{c} (U+{:04X})", u32::from(*c));
    let mut names: Vec<String> = unset.iter().take(LISTED_MAX).map(name).collect();
    if let Some(more) = unset.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        names.push(format!("and {more} more"));
    }
    let sentence = WarningCode::CharactersNotSet.sentence();
    let message = format!("{sentence} Left out: {}.", names.join(", "));
    vec![Warning::new(WarningCode::CharactersNotSet, message)]
}
