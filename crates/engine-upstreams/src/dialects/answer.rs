//! Parses an upstream's description of a task: the few fields that matter, from any JSON it sends.
//! Every text is bounded, and none reaches a client.

use crate::servers::shown;
use serde_json::{Map, Value};

use super::dialect::{ServerDialect, UpstreamPhase};

const ID_BYTES_MAX: usize = 512;
const URL_BYTES_MAX: usize = 8 * 1024;

/// A task as its upstream describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSnapshot {
    /// The upstream's identifier of the task.
    pub id: String,
    /// The state of the task.
    pub phase: UpstreamPhase,
    /// The upstream's own status word.
    pub word: String,
    /// The fraction done, 0.0 to 1.0, if reported.
    pub progress: Option<f64>,
    /// The URL of the result, if reported.
    pub url: Option<String>,
    /// `error.code`; private.
    pub error_code: Option<String>,
    /// `error.message`; private.
    pub error_message: Option<String>,
}

/// Why an answer is unusable.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Not JSON, or nested too deeply.
    #[error("the answer is not JSON")]
    Json(#[from] serde_json::Error),
    /// JSON, but not an object.
    #[error("the answer is not a JSON object")]
    NotAnObject,
    /// No identifier that fits into a URL.
    #[error("the answer has no usable id")]
    Id,
    /// No status.
    #[error("the answer has no status")]
    Status,
    /// The answer is about another task.
    #[error("the answer is about another task")]
    OtherTask,
}

impl TaskSnapshot {
    /// Parses `body`, the JSON of a task object in `dialect`.
    ///
    /// # Errors
    /// [`AnswerError`] without an identifier or a status; all other fields are optional.
    pub fn read(body: &[u8], dialect: &ServerDialect) -> Result<Self, AnswerError> {
        let Value::Object(sent) = serde_json::from_slice(body)? else {
            return Err(AnswerError::NotAnObject);
        };
        let id = text(&sent, "id").filter(|id| is_usable(id));
        let word = text(&sent, "status").ok_or(AnswerError::Status)?;
        let error = sent.get("error").and_then(Value::as_object);
        Ok(Self {
            id: id.ok_or(AnswerError::Id)?.to_owned(),
            phase: dialect.phase(word),
            word: shown(word.as_bytes()),
            progress: sent.get("progress").and_then(fraction),
            url: text(&sent, "url")
                .filter(|url| url.len() <= URL_BYTES_MAX)
                .map(str::to_owned),
            error_code: error.and_then(|error| word_of(error.get("code")?)),
            error_message: error
                .and_then(|error| word_of(error.get("message")?))
                .or_else(|| sent.get("error").and_then(word_of)),
        })
    }
}

fn text<'a>(sent: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    sent.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Whether an identifier can be one segment of a path; a dot segment would change the path.
fn is_usable(id: &str) -> bool {
    id.len() <= ID_BYTES_MAX
        && id.bytes().all(|byte| byte.is_ascii_graphic())
        && id != "."
        && id != ".."
}

fn fraction(percent: &Value) -> Option<f64> {
    let fraction = percent.as_f64()? / 100.0;
    fraction.is_finite().then(|| fraction.clamp(0.0, 1.0))
}

/// A string, or a number as a string: some codes are HTTP statuses.
fn word_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(shown(text.as_bytes())),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dialects::dialect::{KINORA, OPENAI, SGLANG};

    fn read(body: &str) -> Result<TaskSnapshot, AnswerError> {
        TaskSnapshot::read(body.as_bytes(), &KINORA)
    }

    #[test]
    fn an_object_is_read_and_unknown_fields_do_not_matter() {
        let seen = read(
            r#"{"id":"video_1","object":"video","status":"in_progress","progress":42,
                "error":null,"seconds":"4","stage_durations":{"vae":1.5}}"#,
        )
        .unwrap();
        assert_eq!(
            (seen.id.as_str(), seen.phase),
            ("video_1", UpstreamPhase::Running)
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
            TaskSnapshot::read(body.as_bytes(), dialect).unwrap().phase
        };
        assert_eq!(phase("succeeded", &OPENAI), UpstreamPhase::Completed);
        assert_eq!(phase("succeeded", &KINORA), UpstreamPhase::Unknown);
        assert_eq!(phase("deleted", &SGLANG), UpstreamPhase::Failed);
        assert_eq!(phase("cancelling", &SGLANG), UpstreamPhase::Unknown);
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
        is_usable(&seen.id)
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
            let _ = TaskSnapshot::read(&body, &KINORA);
        }

        #[test]
        fn whatever_is_read_is_bounded(
            id in json(), status in json(), progress in json(), error in json(), url in json(),
        ) {
            let body = serde_json::json!({
                "id": id, "status": status, "progress": progress, "error": error, "url": url,
            });
            if let Ok(seen) = TaskSnapshot::read(body.to_string().as_bytes(), &OPENAI) {
                prop_assert!(is_bounded(&seen));
            }
        }

        #[test]
        fn any_usable_object_is_read(id in "[!-~]{1,80}", progress in json(), error in json()) {
            prop_assume!(id != "." && id != "..");
            let body = serde_json::json!({
                "id": id, "status": "queued", "progress": progress, "error": error,
            });
            let seen = TaskSnapshot::read(body.to_string().as_bytes(), &KINORA).unwrap();
            prop_assert!(is_bounded(&seen) && seen.id == id && seen.phase == UpstreamPhase::Queued);
        }
    }
}
