//! Warnings of a task: words for which the engine draws nothing or something similar, styles and
//! relations, figures that it leaves out, and characters that no font has. It reads the shots that
//! the engine draws, and does not change the clip.

use kinora_contract::{VideoInputs, VideoSpec, Warning, WarningCode};

use kinora_engine::FrameJob;

use crate::caption;
use crate::edit::remake::Remake;
use crate::lexicon::{Language, LostWords, Reading, language_of, shape_words, word_for};
use crate::options::StoryboardKind;
use crate::places::FigureShortage;
use crate::revise::{EditChange, removed_words};
use crate::scene::shortages;
use crate::script::{avoided, beats_read, shots};

/// Maximum number of words in a warning.
const WORDS_MAX: usize = 12;
/// Maximum length of a word that it quotes in full, characters.
const WORD_MAX: usize = 40;

/// Maximum number of characters in a warning.
const LISTED_MAX: usize = 20;

/// The warnings of a request. `job` is its clip, `None` if it cannot be planned.
pub(crate) fn collect(
    spec: &VideoSpec,
    job: Option<&FrameJob<'_>>,
    options: &StoryboardKind,
) -> Vec<Warning> {
    // Captions may lack characters in any clip; what is not drawn depends on what the clip is made
    // of.
    let mut warnings = characters_not_set(spec, options);
    let language = language_of(&spec.prompt);
    match (&spec.inputs, job) {
        (VideoInputs::Frames { .. } | VideoInputs::References { .. }, _) if spec.edit.is_none() => {
            warnings.extend(unpainted(spec).map(not_drawn));
        }
        (_, Some(job)) => match unread(spec, language) {
            Some(message) => warnings.push(not_drawn(message)),
            // An edit of a video is judged by what the edit changes, and not by what its prompt
            // names.
            None if spec.edit.is_some() => warnings.extend(edit_warnings(job, language)),
            None => warnings.extend(words_warnings(job, language)),
        },
        (_, None) => {}
    }
    warnings
}

fn not_drawn(message: String) -> Warning {
    Warning::new(WarningCode::NotDrawn, message)
}

/// The warnings of a clip painted from words alone.
fn words_warnings(job: &FrameJob<'_>, language: Language) -> Vec<Warning> {
    let (spec, clip) = (job.spec, job.clip);
    let shots = shots(&spec.prompt, avoided(spec), &[clip.frames], clip.fps);
    let short = shots
        .iter()
        .flat_map(|shot| shortages(shot, &spec.prompt, spec.seed));
    let short = counted(language, &spec.prompt, short);
    // All shots together: `deduplicated` then lists a word once, however many of them miss it.
    let mut lost = LostWords::default();
    for shot in shots {
        lost.missed.extend(shot.reading.lost.missed);
        lost.near.extend(shot.reading.lost.near);
        lost.styles.extend(shot.reading.lost.styles);
    }
    omissions(lost, &short)
}

/// The warnings of an edit: words that change nothing, and figures that it leaves out.
fn edit_warnings(job: &FrameJob<'_>, language: Language) -> Vec<Warning> {
    let spec = job.spec;
    let lost = EditChange::read(&spec.prompt, avoided(spec)).lost();
    if let Some(remake) = Remake::from_job(job) {
        let short = counted(language, &spec.prompt, remake.shortages());
        return omissions(lost, &short);
    }
    let asked = shape_words(language, &spec.prompt, false);
    let removed = shape_words(language, &removed_words(&spec.prompt), true);
    let named = join_list(
        &deduplicated([asked, removed, lost.missed].concat()),
        quoted,
    );
    let warning = named.map(|named| {
        not_drawn(format!(
            "The storyboard engine changes light, colours and weather of a video that it did not make from words \
             itself, and keeps every shape: it changed nothing for {named}."
        ))
    });
    warning.into_iter().collect()
}

/// Message for a clip that shows the client's pictures: the words add nothing to them.
fn unpainted(spec: &VideoSpec) -> Option<String> {
    asks_for_drawing(&beats_read(&spec.prompt, avoided(spec))).then(|| {
        "The storyboard engine shows the given pictures with a camera move: what the prompt adds to them is not drawn."
            .to_owned()
    })
}

/// Message for a prompt in a language without a word file.
fn unread(spec: &VideoSpec, language: Language) -> Option<String> {
    let has_words = spec.prompt.chars().any(char::is_alphabetic);
    (language == Language::Other && has_words).then(|| {
        "The storyboard engine does not read the language of the prompt: it is shown as a caption, and nothing was \
         drawn for its words."
            .to_owned()
    })
}

/// The warnings for the words of `lost`, and for `short`, figures that are left out.
fn omissions(lost: LostWords, short: &[String]) -> Vec<Warning> {
    let missed = join_list(&deduplicated(lost.missed), quoted)
        .map(|words| format!("drew nothing for: {words}."));
    let short = join_list(short, str::to_owned)
        .map(|counts| format!("drew fewer figures than the prompt asks for: {counts}."));
    let not_drawn = match (missed, short) {
        (Some(missed), Some(short)) => Some(format!("The storyboard engine {missed} It {short}")),
        (one, other) => one
            .or(other)
            .map(|only| format!("The storyboard engine {only}")),
    };
    let near = deduplicated(
        lost.near
            .into_iter()
            .map(|(word, near)| format!("{} as {}", quoted(&word), quoted(&near)))
            .collect(),
    );
    let near = join_list(&near, str::to_owned)
        .map(|words| format!("The storyboard engine drew something near: {words}."));
    let styles = join_list(&deduplicated(lost.styles), quoted).map(|words| {
        format!(
            "The storyboard engine draws no styles, qualities and relations like these: {words}."
        )
    });
    let all = [
        (WarningCode::NotDrawn, not_drawn),
        (WarningCode::Approximated, near),
        (WarningCode::StyleNotDrawn, styles),
    ];
    all.into_iter()
        .filter_map(|(code, message)| Some(Warning::new(code, message?)))
        .collect()
}

/// Each of `shortages` once, with the word of `prompt` for its subject: `12 of 20 "sheep"`.
fn counted(
    language: Language,
    prompt: &str,
    shortages: impl IntoIterator<Item = FigureShortage>,
) -> Vec<String> {
    deduplicated(
        shortages
            .into_iter()
            .map(|one| {
                let FigureShortage {
                    subject,
                    asked,
                    drawn,
                } = one;
                let word = word_for(language, prompt, subject);
                let word = word.unwrap_or_else(|| subject.facts().noun.to_owned());
                format!("{drawn} of {asked} {}", quoted(&word))
            })
            .collect(),
    )
}

/// Each word once.
fn deduplicated(all: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in all {
        // The first spelling stays: it is the caller's own.
        let lower = word.to_lowercase();
        if !words.iter().any(|one| one.to_lowercase() == lower) {
            words.push(word);
        }
    }
    words
}

/// The first of `words` as `shown`, and how many more there are; `None` for none.
fn join_list(words: &[String], shown: fn(&str) -> String) -> Option<String> {
    if words.is_empty() {
        return None;
    }
    let more = words.len().saturating_sub(WORDS_MAX);
    let named: Vec<String> = words
        .iter()
        .take(WORDS_MAX)
        .map(|word| shown(word))
        .collect();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Some(format!("{}{more}", named.join(", ")))
}

/// Whether the words ask for anything that the client's pictures do not show by themselves.
fn asks_for_drawing(readings: &[Reading]) -> bool {
    readings.iter().any(|reading| {
        !reading.roles.is_empty() || !reading.weather.is_empty() || !reading.lost.missed.is_empty()
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
fn characters_not_set(spec: &VideoSpec, options: &StoryboardKind) -> Vec<Warning> {
    let edit = spec.edit.as_ref();
    // At strength 0.0 the source's frames are returned as they are, without new captions.
    let is_faint = edit.is_some_and(|edit| edit.strength <= 0.0);
    if !options.caption || is_faint {
        return Vec::new();
    }
    let unset = caption::unset_characters(&spec.prompt, options.system_fonts);
    if unset.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<String> = unset
        .iter()
        .take(LISTED_MAX)
        .map(|c| format!("{c} (U+{:04X})", u32::from(*c)))
        .collect();
    if let Some(more) = unset.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        names.push(format!("and {more} more"));
    }
    let sentence = WarningCode::CharactersNotSet.sentence();
    let message = format!("{sentence} Left out: {}.", names.join(", "));
    vec![Warning::new(WarningCode::CharactersNotSet, message)]
}
