//! What the answers of a dialect mean: where which value is, and the words of statuses and failures.

use std::collections::BTreeMap;

use kinora_contract::{Currency, FailureCode};
use serde::Deserialize;
use serde_json::Value;

use super::pointer::Pointers;
use super::template::text_of;

/// Where an answer has what.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AnswerShape {
    pub(crate) id: Pointers,
    pub(crate) status: Option<Pointers>,
    pub(crate) done: Option<Pointers>,
    pub(crate) progress: Pointers,
    pub(crate) progress_max: f64,
    pub(crate) result: Pointers,
    pub(crate) error_code: Pointers,
    pub(crate) error_message: Pointers,
    pub(crate) success: Option<SuccessRule>,
    pub(crate) cost: Option<CostRule>,
}

impl Default for AnswerShape {
    fn default() -> Self {
        Self {
            id: Pointers::one("/id"),
            status: None,
            done: None,
            progress: Pointers::default(),
            progress_max: 100.0,
            result: Pointers::default(),
            error_code: Pointers::default(),
            error_message: Pointers::default(),
            success: None,
            cost: None,
        }
    }
}

impl AnswerShape {
    /// Where the status word is; `None` with `done` alone.
    pub(crate) fn status(&self) -> Option<Pointers> {
        match (&self.status, &self.done) {
            (Some(pointers), _) => Some(pointers.clone()),
            (None, None) => Some(Pointers::one("/status")),
            (None, Some(_)) => None,
        }
    }
}

/// An answer with another value there is a refusal, whatever its HTTP status.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuccessRule {
    pub(crate) pointer: Pointers,
    pub(crate) equals: Value,
    /// Values that mean what the status 429 means: later.
    #[serde(default)]
    pub(crate) busy: Vec<String>,
    /// Values that mean what the status 403 means: a wrong key, or no credit.
    #[serde(default)]
    pub(crate) denied: Vec<String>,
    /// The failure that another value means; otherwise the words of `[failures]` say it.
    pub(crate) failure: Option<RequestFailure>,
}

impl SuccessRule {
    /// The failure that the value of an answer means, if it is another one and says nothing about us.
    pub(crate) fn failure(&self, sent: &Value) -> Option<FailureCode> {
        let code = self.broken(sent).map(|value| text_of(value.clone()))?;
        let is_about_us = self.busy.contains(&code) || self.denied.contains(&code);
        self.failure
            .filter(|_| !is_about_us)
            .map(|failure| failure.0)
    }

    /// The value of an answer, if it is another one.
    pub(crate) fn broken<'v>(&self, sent: &'v Value) -> Option<&'v Value> {
        let found = self.pointer.find(sent, Some);
        found.filter(|value| **value != self.equals)
    }
}

/// What the server says that it charged.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CostRule {
    pub(crate) pointer: Pointers,
    pub(crate) currency: Currency,
    #[serde(default = "one")]
    pub(crate) per_unit: f64,
}

const fn one() -> f64 {
    1.0
}

/// The state of a task at its upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamPhase {
    /// Waiting.
    Queued,
    /// In progress.
    Running,
    /// Done, with a result.
    Completed,
    /// Ended without a result.
    Failed,
    /// Ended without a result, and nobody's fault.
    Cancelled,
    /// A status word that the dialect does not know.
    #[default]
    Unknown,
}

impl UpstreamPhase {
    /// Whether the task has ended, well or badly.
    pub(crate) const fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// The words of a status. Others do not count as a sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StatusWords {
    queued: Vec<String>,
    running: Vec<String>,
    completed: Vec<String>,
    failed: Vec<String>,
    cancelled: Vec<String>,
}

impl StatusWords {
    pub(crate) fn all(&self) -> [(&'static str, &[String], UpstreamPhase); 5] {
        [
            ("queued", &self.queued, UpstreamPhase::Queued),
            ("running", &self.running, UpstreamPhase::Running),
            ("completed", &self.completed, UpstreamPhase::Completed),
            ("failed", &self.failed, UpstreamPhase::Failed),
            ("cancelled", &self.cancelled, UpstreamPhase::Cancelled),
        ]
    }

    /// The phase that `word` means.
    pub(crate) fn phase(&self, word: &str) -> UpstreamPhase {
        let rows = self.all();
        let row = rows
            .iter()
            .find(|(_, words, _)| words.iter().any(|one| one == word));
        row.map_or(UpstreamPhase::Unknown, |(_, _, phase)| *phase)
    }
}

/// The words of a failure's code or message that tell its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, FailureEntry>")]
pub(crate) struct FailureWords {
    /// Whether the server's codes are ours.
    pub(crate) shares_codes: bool,
    /// A word that begins with a slash is a pointer to something that is there after such a failure alone.
    words: Vec<(FailureCode, Vec<String>)>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FailureEntry {
    Shares(bool),
    Words(Vec<String>),
}

/// A failure code of a file: one that a request can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct RequestFailure(FailureCode);

impl TryFrom<String> for RequestFailure {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let found = FailureCode::from_code(&text).filter(|code| is_the_request_s(*code));
        found.map(Self).ok_or_else(|| {
            let known = FailureCode::ALL.iter();
            let known = known.filter(|code| is_the_request_s(**code));
            let known: Vec<&str> = known.map(|code| code.as_str()).collect();
            let known = known.join(", ");
            format!("{text}: not a failure code of a request; use one of: {known}")
        })
    }
}

impl TryFrom<BTreeMap<String, FailureEntry>> for FailureWords {
    type Error = String;

    fn try_from(entries: BTreeMap<String, FailureEntry>) -> Result<Self, String> {
        let mut failures = Self::default();
        for (key, entry) in entries {
            match (key.as_str(), entry) {
                ("shares_codes", FailureEntry::Shares(shares)) => failures.shares_codes = shares,
                (code, FailureEntry::Words(words)) => {
                    let code = RequestFailure::try_from(code.to_owned());
                    let RequestFailure(code) =
                        code.map_err(|problem| format!("failures.{problem}"))?;
                    if words.iter().any(|word| word.trim().is_empty()) {
                        return Err(format!(
                            "failures.{key}: an empty word would fit everything"
                        ));
                    }
                    failures.words.push((code, words));
                }
                (key, FailureEntry::Shares(_)) => {
                    return Err(format!("failures.{key}: must be a list of words"));
                }
            }
        }
        Ok(failures)
    }
}

impl FailureWords {
    /// The kind of failure that a server's code and message, or its whole answer, tell.
    pub(crate) fn kind(
        &self,
        code: Option<&str>,
        message: Option<&str>,
        sent: &Value,
    ) -> Option<FailureCode> {
        let shared = code
            .filter(|_| self.shares_codes)
            .and_then(FailureCode::from_code);
        if let Some(shared) = shared.filter(|code| is_the_request_s(*code)) {
            return Some(shared);
        }
        let texts = [code, message].into_iter().flatten();
        let texts: Vec<String> = texts.map(str::to_lowercase).collect();
        let is_told = |word: &String| match word.starts_with('/') {
            true => sent.pointer(word).is_some_and(says_something),
            false => {
                let word = word.to_lowercase();
                texts.iter().any(|text| text.contains(&word))
            }
        };
        let row = self
            .words
            .iter()
            .find(|(_, words)| words.iter().any(is_told));
        row.map(|(code, _)| *code)
    }
}

/// Whether a value is there: no `null`, zero, `false`, or empty text, list or table.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    }
}

/// Whether a failure at the upstream is about the request rather than about the upstream.
const fn is_the_request_s(code: FailureCode) -> bool {
    !matches!(
        code,
        FailureCode::Cancelled
            | FailureCode::WorkerLost
            | FailureCode::StorageFailed
            | FailureCode::TaskExpired
    )
}
