//! Parses an upstream's answers: the few values that matter, from wherever the dialect says that they are.
//! Every text is bounded, and none reaches a client.

use kinora_contract::{Amount, FailureCode, Money};
use serde_json::Value;

use super::dialect::ServerDialect;
use super::pointer::text;
use super::shape::UpstreamPhase;
use super::template::text_of;
use crate::servers::{AnswerError, ServerAnswer, UpstreamError, shown};

const ID_BYTES_MAX: usize = 512;
const URL_BYTES_MAX: usize = 8 * 1024;

/// A task as its upstream describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskSnapshot {
    /// The upstream's identifier of the task, if the answer has it.
    pub id: Option<String>,
    /// The state of the task.
    pub phase: UpstreamPhase,
    /// The upstream's own status word.
    pub word: String,
    /// The fraction done, 0.0 to 1.0, if reported.
    pub progress: Option<f64>,
    /// The URL of the result, if reported.
    pub url: Option<String>,
    /// The upstream's code of a failure; private.
    pub error_code: Option<String>,
    /// The upstream's words about a failure; private.
    pub error_message: Option<String>,
    /// The kind of failure that the answer tells, if the dialect knows its words.
    pub failure: Option<FailureCode>,
    /// What the upstream says that it charged.
    pub cost: Option<Money>,
}

impl TaskSnapshot {
    /// Parses `body`, the JSON answer to a poll in `dialect`.
    ///
    /// # Errors
    /// [`AnswerError`] with an unusable identifier or without a status; all other values are optional.
    pub fn read(body: &[u8], dialect: &ServerDialect) -> Result<Self, AnswerError> {
        let sent = object(body)?;
        let shape = &dialect.answer;
        let id = match shape.id.find(&sent, Some) {
            None | Some(Value::Null) => None,
            Some(value) => Some(usable_id(value).ok_or(AnswerError::Id)?),
        };
        let told = Refusal::of(sent, dialect);
        let url = result_url(&told.sent, dialect);
        let (mut phase, word) = phase(&told, dialect)?;
        let failure = told.kind(dialect);
        // An answer of success says nothing with its code and message; a film that is there was made.
        let is_told = (told.is_told() && shape.success.is_none()) || failure.is_some();
        if phase == UpstreamPhase::Completed && is_told && url.is_none() {
            phase = UpstreamPhase::Failed;
        }
        Ok(Self {
            id,
            phase,
            word: shown(word.as_bytes()),
            progress: shape
                .progress
                .find(&told.sent, |value| fraction(value, shape.progress_max)),
            url,
            cost: cost(&told.sent, dialect),
            error_code: told.code,
            error_message: told.message,
            failure,
        })
    }

    /// The failure that the answer reports.
    pub(crate) fn into_failure(self) -> UpstreamError {
        let code = self.failure.unwrap_or(FailureCode::GenerationFailed);
        UpstreamError::Failed {
            code,
            text: told(self.error_code.unwrap_or(self.word), self.error_message),
        }
    }
}

/// The identifier in the answer to a submit, if it fits into a URL.
pub(crate) fn submitted_id(body: &[u8], dialect: &ServerDialect) -> Result<String, AnswerError> {
    dialect
        .answer
        .id
        .find(&object(body)?, usable_id)
        .ok_or(AnswerError::Id)
}

/// The address of the result in an answer.
pub(crate) fn result_url(sent: &Value, dialect: &ServerDialect) -> Option<String> {
    let url = dialect.answer.result.find(sent, text)?;
    (url.len() <= URL_BYTES_MAX).then(|| url.to_owned())
}

/// The JSON object of a body.
pub(crate) fn object(body: &[u8]) -> Result<Value, AnswerError> {
    let sent: Value = serde_json::from_slice(body)?;
    if sent.is_object() {
        Ok(sent)
    } else {
        Err(AnswerError::NotAnObject)
    }
}

/// What a server says about a failure or a refusal; private.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    code: Option<String>,
    message: Option<String>,
    sent: Value,
}

impl Refusal {
    fn of(sent: Value, dialect: &ServerDialect) -> Self {
        Self {
            code: dialect.answer.error_code.find(&sent, word_of),
            message: dialect.answer.error_message.find(&sent, word_of),
            sent,
        }
    }

    /// The words in the body of `reply`; the body itself if it has no such words.
    pub(crate) fn read(reply: &ServerAnswer, dialect: &ServerDialect) -> Self {
        let sent = object(&reply.body).unwrap_or_default();
        let mut told = Self::of(sent, dialect);
        if !told.is_told() {
            told.message = Some(shown(&reply.body));
        }
        told
    }

    const fn is_told(&self) -> bool {
        self.code.is_some() || self.message.is_some()
    }

    /// Whether one of `words` is in the words.
    pub(crate) fn has_any(&self, words: &[String]) -> bool {
        let texts = [&self.code, &self.message];
        let mut texts = texts.into_iter().flatten();
        texts.any(|text| words.iter().any(|word| text.contains(word)))
    }

    fn kind(&self, dialect: &ServerDialect) -> Option<FailureCode> {
        let (code, message) = (self.code.as_deref(), self.message.as_deref());
        dialect.failures.kind(code, message, &self.sent)
    }

    /// As the failure of a task, if the dialect knows its kind and `status` can be about a task: 401 and 402 are
    /// about the key and the account, 429 and 5xx about the server.
    pub(crate) fn failure_at(self, status: u16, dialect: &ServerDialect) -> Option<UpstreamError> {
        let is_about_task = matches!(status, 400 | 403..=428 | 430..=499);
        self.failure(dialect).filter(|_| is_about_task)
    }

    /// As the failure of a task, if the dialect knows its kind.
    pub(crate) fn failure(self, dialect: &ServerDialect) -> Option<UpstreamError> {
        let by_rule = || dialect.answer.success.as_ref()?.failure(&self.sent);
        let kind = self.kind(dialect).or_else(by_rule)?;
        Some(self.with(kind))
    }

    /// As the failure of a task, of an unknown kind if the dialect does not know it.
    pub(crate) fn failed(self, dialect: &ServerDialect) -> UpstreamError {
        let kind = self.kind(dialect);
        self.with(kind.unwrap_or(FailureCode::GenerationFailed))
    }

    fn with(self, code: FailureCode) -> UpstreamError {
        UpstreamError::Failed {
            code,
            text: told(self.code.unwrap_or_default(), self.message),
        }
    }
}

/// A server's code and words.
fn told(code: String, message: Option<String>) -> String {
    match message {
        Some(message) if code.is_empty() => message,
        Some(message) => format!("{code}: {message}"),
        None => code,
    }
}

impl ServerDialect {
    /// `reply` with the status that its body means, for servers that refuse with a status of success.
    pub(crate) fn judged(&self, reply: ServerAnswer) -> ServerAnswer {
        let Some(rule) = &self.answer.success else {
            return reply;
        };
        let sent: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let Some(value) = rule.broken(&sent) else {
            return reply;
        };
        let code = text_of(value.clone());
        let status = match reply.status {
            _ if rule.busy.contains(&code) => 429,
            _ if rule.denied.contains(&code) => 403,
            200..=299 => 400,
            status => status,
        };
        ServerAnswer { status, ..reply }
    }
}

fn phase(told: &Refusal, dialect: &ServerDialect) -> Result<(UpstreamPhase, String), AnswerError> {
    let (shape, sent) = (&dialect.answer, &told.sent);
    if let Some(done) = &shape.done {
        let is_done = done.find(sent, Value::as_bool);
        let is_failed = told.is_told() && is_done != Some(false);
        let phase = match is_done {
            _ if is_failed => UpstreamPhase::Failed,
            Some(true) => UpstreamPhase::Completed,
            _ => UpstreamPhase::Running,
        };
        return Ok((phase, is_done.unwrap_or_default().to_string()));
    }
    let status = shape.status().unwrap_or_default();
    let word = status.find(sent, |value| match value {
        // Only where the dialect has numbers among its words.
        Value::Number(number) => {
            let word = number.to_string();
            (dialect.statuses.phase(&word) != UpstreamPhase::Unknown).then_some(word)
        }
        value => text(value).map(str::to_owned),
    });
    let word = word.ok_or(AnswerError::Status)?;
    Ok((dialect.statuses.phase(&word), word))
}

fn usable_id(value: &Value) -> Option<String> {
    let id = match value {
        // A fraction has more than one form.
        Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
        value => text(value)?.to_owned(),
    };
    is_usable(&id).then_some(id)
}

/// Whether an identifier can be a part of a path; a dot segment would change the path.
fn is_usable(id: &str) -> bool {
    id.len() <= ID_BYTES_MAX
        && id.bytes().all(|byte| byte.is_ascii_graphic())
        && id != "."
        && id != ".."
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().trim_end_matches('%').parse().ok(),
        value => value.as_f64(),
    }
}

fn fraction(value: &Value, whole: f64) -> Option<f64> {
    let fraction = number(value)? / whole;
    fraction.is_finite().then(|| fraction.clamp(0.0, 1.0))
}

fn cost(sent: &Value, dialect: &ServerDialect) -> Option<Money> {
    let rule = dialect.answer.cost.as_ref()?;
    let units = rule.pointer.find(sent, number)?;
    Some(Money {
        amount: Amount::from_units(units * rule.per_unit)?,
        currency: rule.currency,
    })
}

/// A string, or a number as a string: some codes are HTTP statuses. Empty texts and 0 say nothing.
fn word_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(shown(text.as_bytes())),
        Value::Number(number) if number.as_f64() != Some(0.0) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(body: &str) -> Result<TaskSnapshot, AnswerError> {
        read_as("kinora", body.as_bytes())
    }

    fn read_as(dialect: &str, body: &[u8]) -> Result<TaskSnapshot, AnswerError> {
        TaskSnapshot::read(body, &ServerDialect::named(dialect).unwrap())
    }

    #[test]
    fn an_object_is_read_and_unknown_fields_do_not_matter() {
        let seen = read(
            r#"{"id":"video_1","object":"video","status":"in_progress","progress":42,
                "error":null,"seconds":"4","stage_durations":{"vae":1.5}}"#,
        )
        .unwrap();
        assert_eq!(
            (seen.id.as_deref(), seen.phase),
            (Some("video_1"), UpstreamPhase::Running)
        );
        assert_eq!(seen.progress, Some(0.42));
        assert_eq!(
            (seen.url, seen.error_code, seen.error_message),
            (None, None, None)
        );
    }

    #[test]
    fn a_failure_is_read_in_each_of_its_forms() {
        for (error, code, message) in [
            (r#"{"code":"x","message":"y"}"#, Some("x"), Some("y")),
            (r#"{"code":500,"message":"y"}"#, Some("500"), Some("y")),
            (
                r#"{"message":"CUDA out of memory"}"#,
                None,
                Some("CUDA out of memory"),
            ),
            (r#""plain""#, None, Some("plain")),
            ("null", None, None),
            ("[1]", None, None),
        ] {
            let body = format!(r#"{{"id":"a","status":"failed","error":{error}}}"#);
            let seen = read(&body).unwrap();
            assert_eq!(seen.phase, UpstreamPhase::Failed);
            assert_eq!(seen.error_code.as_deref(), code, "{error}");
            assert_eq!(seen.error_message.as_deref(), message, "{error}");
        }
    }

    #[test]
    fn each_dialect_has_its_own_words() {
        let phase = |word: &str, dialect| {
            let body = format!(r#"{{"id":"a","status":"{word}"}}"#);
            read_as(dialect, body.as_bytes()).unwrap().phase
        };
        assert_eq!(phase("succeeded", "openai"), UpstreamPhase::Completed);
        assert_eq!(phase("succeeded", "kinora"), UpstreamPhase::Unknown);
        assert_eq!(phase("deleted", "sglang"), UpstreamPhase::Failed);
        assert_eq!(phase("cancelling", "sglang"), UpstreamPhase::Unknown);
    }

    #[test]
    fn an_operation_with_an_error_failed_unless_it_goes_on() {
        let phase = |more: &str| {
            let body = format!(r#"{{"name":"operations/o",{more}"error":{{"message":"no"}}}}"#);
            read_as("veo", body.as_bytes()).unwrap().phase
        };
        assert_eq!(phase(""), UpstreamPhase::Failed);
        assert_eq!(phase(r#""done":true,"#), UpstreamPhase::Failed);
        assert_eq!(phase(r#""done":false,"#), UpstreamPhase::Running);
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for body in ["", "{", "[]", "null", "<html>", &"[".repeat(100_000)] {
            assert!(read(body).is_err(), "{body:.20}");
        }
        for id in ["", ".", "..", "a b", "a\\nb", "\u{e9}", &"a".repeat(513)] {
            let body = format!(r#"{{"id":"{id}","status":"queued"}}"#);
            assert!(matches!(read(&body), Err(AnswerError::Id)), "{id:.20}");
        }
        let fraction = read(r#"{"id":7.0,"status":"queued"}"#);
        assert!(matches!(fraction, Err(AnswerError::Id)), "{fraction:?}");
        assert!(matches!(
            read(r#"{"id":"a","status":3}"#),
            Err(AnswerError::Status)
        ));
    }

    /// Any JSON with a few levels.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,600}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,8}", inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    fn is_bounded(seen: &TaskSnapshot) -> bool {
        let texts = [&seen.error_code, &seen.error_message];
        seen.id.as_deref().is_none_or(is_usable)
            && seen.word.chars().count() <= 500
            && seen.progress.is_none_or(|one| (0.0..=1.0).contains(&one))
            && texts
                .into_iter()
                .flatten()
                .all(|one| one.chars().count() <= 500)
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(body in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read_as("kinora", &body);
        }

        #[test]
        fn whatever_is_read_is_bounded(
            id in json(), status in json(), progress in json(), error in json(), url in json(),
        ) {
            let body = serde_json::json!({
                "id": id, "status": status, "progress": progress, "error": error, "url": url,
            });
            if let Ok(seen) = read_as("openai", body.to_string().as_bytes()) {
                prop_assert!(is_bounded(&seen));
            }
        }

        #[test]
        fn any_usable_object_is_read(id in "[!-~]{1,80}", progress in json(), error in json()) {
            prop_assume!(id != "." && id != "..");
            let body = serde_json::json!({
                "id": id, "status": "queued", "progress": progress, "error": error,
            });
            let seen = read_as("kinora", body.to_string().as_bytes()).unwrap();
            prop_assert!(is_bounded(&seen) && seen.id == Some(id) && seen.phase == UpstreamPhase::Queued);
        }
    }
}
