//! Words for an operator: what a dialect can do, and what it understands of an answer. For `kinora doctor` and
//! `kinora engine try`.

use kinora_engine::FilmEngineSummary;

use super::answer::{TaskSnapshot, object, submitted_id};
use super::calls::RepeatRule;
use super::dialect::ServerDialect;
use super::pointer::text;
use crate::servers::AnswerError;

/// What `dialect` understands of the JSON in `body`, in a line.
pub fn describe_answer(body: &str, dialect: &ServerDialect) -> String {
    let body = body.as_bytes();
    let seen = match TaskSnapshot::read(body, dialect) {
        Ok(seen) => seen,
        Err(error) => return describe_other(body, &error, dialect),
    };
    let phases = dialect.statuses.all();
    let phase = phases.iter().find(|(_, _, phase)| *phase == seen.phase);
    let phase = match phase {
        Some((name, ..)) => (*name).to_owned(),
        None => format!("unknown: '{}' is in no list of [statuses]", seen.word),
    };
    let parts = [
        seen.id.map(|id| format!("id {id}")),
        Some(format!("phase {phase}")),
        seen.progress
            .map(|done| format!("progress {:.0} %", done * 100.0)),
        seen.url.map(|url| format!("film {url}")),
        seen.error_code.map(|code| format!("error code {code}")),
        seen.error_message
            .map(|text| format!("error message {text}")),
        seen.failure
            .map(|code| format!("the task fails with {code}")),
        seen.cost.map(|cost| format!("cost {cost}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// An answer without a status: that to a submit, or a refusal.
fn describe_other(body: &[u8], error: &AnswerError, dialect: &ServerDialect) -> String {
    if let Ok(id) = submitted_id(body, dialect) {
        return format!("id {id}");
    }
    let Ok(sent) = object(body) else {
        return format!("nothing: {error}");
    };
    let words = [&dialect.answer.error_code, &dialect.answer.error_message];
    let words: Vec<&str> = words.iter().filter_map(|at| at.find(&sent, text)).collect();
    match words[..] {
        [] => format!("nothing: {error}"),
        _ => format!("error {}", words.join(": ")),
    }
}

/// What `dialect` offers to an engine with these further origins of results, and what may be missing in it.
pub(crate) fn summary(dialect: &ServerDialect, result_origins: &[String]) -> FilmEngineSummary {
    let can = dialect.features();
    let offers = [
        (true, "text".to_owned()),
        (can.first_frame, "a first frame".to_owned()),
        (can.last_frame, "a last frame".to_owned()),
        (
            can.reference_images_max > 0,
            format!("up to {} images", can.reference_images_max),
        ),
        (
            can.reference_audios_max > 0,
            format!("up to {} sounds", can.reference_audios_max),
        ),
        (can.negative_prompt, "a negative prompt".to_owned()),
        (dialect.names_seed(), "a seed".to_owned()),
        (can.audio_output, "a sound switch".to_owned()),
        (can.auto_duration, "an automatic length".to_owned()),
        (dialect.cancel.is_some(), "cancel".to_owned()),
        (!dialect.answer.progress.is_empty(), "progress".to_owned()),
        (dialect.answer.cost.is_some(), "cost".to_owned()),
    ];
    let offers = offers
        .into_iter()
        .filter_map(|(has, what)| has.then_some(what));
    let offers: Vec<String> = offers.collect();
    FilmEngineSummary {
        offers: format!(
            "dialect {} ({}) takes {}; {}",
            dialect.name,
            dialect.title,
            offers.join(", "),
            match dialect.repeat() {
                RepeatRule::Never => "a submit is never repeated, because it may cost money",
                RepeatRule::Freely => "a submit is repeated freely",
                RepeatRule::WithKey => "a submit is repeated under its key",
            }
        ),
        advice: advice(dialect, result_origins),
    }
}

fn advice(dialect: &ServerDialect, result_origins: &[String]) -> Vec<String> {
    let has_words = |phase: &str| {
        let all = dialect.statuses.all();
        all.iter()
            .any(|(name, words, _)| *name == phase && !words.is_empty())
    };
    let by_words = dialect.answer.done.is_none();
    let origins = dialect.result.origins.len() + result_origins.len();
    let rows = [
        (
            !dialect.answer.result.is_empty() && origins == 0,
            "films are read from the server's own origin alone; if their addresses have another one, name it in \
             result.origins of the dialect or in result_origins of the engine",
        ),
        (
            dialect.cancel.is_none(),
            "jobs cannot be cancelled: the server finishes a job whose task was cancelled, and may charge for it",
        ),
        (
            by_words && !has_words("failed"),
            "statuses.failed names no word: a failed job is followed until silence_seconds are over",
        ),
        (
            by_words && !has_words("running") && !has_words("queued"),
            "statuses.queued and statuses.running name no word: a job that takes longer than silence_seconds fails",
        ),
    ];
    let rows = rows.into_iter().filter(|(is_missing, _)| *is_missing);
    rows.map(|(_, text)| text.to_owned()).collect()
}
