//! How to talk to one kind of server: a record that is read from a TOML file. No other code asks which server it
//! talks to. A mistake in a file is an error that names its key; what a dialect cannot say is not offered.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use kinora_contract::{FailureCode, Features};
use serde::Deserialize;
use serde_json::Value;

use super::address::{OriginPattern, PathTemplate};
use super::pointer::Pointers;
use super::template::{EachReference, Placeholder, Template, TextTemplate, ValueName};
use crate::servers::{AuthScheme, KeySigner};

/// Larger files are not dialects.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The built-in dialects, by name.
const BUILT_IN: &[(&str, &str)] = &[
    ("kinora", include_str!("../../dialects/kinora.toml")),
    ("openai", include_str!("../../dialects/openai.toml")),
    ("vllm-omni", include_str!("../../dialects/vllm-omni.toml")),
    ("sglang", include_str!("../../dialects/sglang.toml")),
];

/// A protocol of servers that make videos.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerDialect {
    /// Its built-in name, or the path of its file.
    #[serde(skip)]
    pub name: String,
    /// The servers that speak it, for operators.
    pub title: String,
    /// Where its facts are from, and whether it ran against the real server.
    pub source: String,
    /// The base URL of engines that name none.
    pub base_url: Option<String>,
    #[serde(default)]
    pub(crate) auth: AuthRule,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) submit: SubmitCall,
    pub(crate) poll: JobCall,
    pub(crate) cancel: Option<CancelCall>,
    pub(crate) probe: Option<ProbeCall>,
    pub(crate) uploads: Option<UploadCall>,
    #[serde(default)]
    pub(crate) answer: AnswerShape,
    #[serde(default)]
    pub(crate) statuses: StatusWords,
    #[serde(default)]
    pub(crate) failures: FailureWords,
    #[serde(default)]
    pub(crate) result: ResultPlace,
    #[serde(default)]
    pub(crate) limits: ReferenceLimits,
    #[serde(default)]
    pub(crate) lookup: LookupTables,
}

/// Tables of texts, by their names.
pub(crate) type LookupTables = BTreeMap<String, BTreeMap<String, String>>;

/// How a key is sent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuthRule {
    #[serde(default = "authorization")]
    pub(crate) header: String,
    #[serde(default = "bearer")]
    pub(crate) value: TextTemplate,
    signer: Option<KeySigner>,
}

impl Default for AuthRule {
    fn default() -> Self {
        Self {
            header: authorization(),
            value: bearer(),
            signer: None,
        }
    }
}

fn authorization() -> String {
    "authorization".to_owned()
}

fn bearer() -> TextTemplate {
    "Bearer {key}".parse().unwrap_or_default()
}

/// The methods of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum HttpMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl From<HttpMethod> for Method {
    fn from(method: HttpMethod) -> Self {
        match method {
            HttpMethod::Get => Self::GET,
            HttpMethod::Post => Self::POST,
            HttpMethod::Put => Self::PUT,
            HttpMethod::Patch => Self::PATCH,
            HttpMethod::Delete => Self::DELETE,
        }
    }
}

const fn get() -> HttpMethod {
    HttpMethod::Get
}

const fn post() -> HttpMethod {
    HttpMethod::Post
}

/// The form of a submit's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BodyForm {
    /// One JSON object.
    #[default]
    Json,
    /// `multipart/form-data`.
    Multipart,
    /// JSON, unless the request has a file.
    JsonUnlessFile,
}

/// What to do when it is unknown whether a submit was accepted: the connection broke before the
/// answer, or a gateway answered instead of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatRule {
    /// Give up: a second run may be charged twice.
    Never,
    /// Submit again: a second run only costs time on our own accelerator.
    Freely,
    /// Repeat the submit at the same upstream with the same key: the server returns the same task.
    WithKey,
}

/// A submit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitCall {
    path: PathTemplate,
    #[serde(default = "post")]
    pub(crate) method: HttpMethod,
    #[serde(default)]
    pub(crate) form: BodyForm,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, TextTemplate>,
    pub(crate) idempotency_header: Option<String>,
    pub(crate) repeat: Option<RepeatRule>,
    pub(crate) auto_seconds: Option<Value>,
    body: Template,
    #[serde(default)]
    inputs: InputCalls,
}

/// What differs by the kind of input.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct InputCalls {
    text: Option<InputCall>,
    first_frame: Option<InputCall>,
    frames: Option<InputCall>,
    references: Option<InputCall>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct InputCall {
    path: Option<PathTemplate>,
    body: Option<Template>,
}

/// The kind of a request's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    Text,
    /// A first frame alone.
    FirstFrame,
    /// A first and a last frame.
    Frames,
    References,
}

impl InputKind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Text, Self::FirstFrame, Self::Frames, Self::References];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::FirstFrame => "first_frame",
            Self::Frames => "frames",
            Self::References => "references",
        }
    }
}

impl SubmitCall {
    fn input(&self, kind: InputKind) -> Option<&InputCall> {
        let inputs = &self.inputs;
        let input = match kind {
            InputKind::Text => &inputs.text,
            InputKind::FirstFrame => &inputs.first_frame,
            InputKind::Frames => &inputs.frames,
            InputKind::References => &inputs.references,
        };
        input.as_ref()
    }

    /// The path of a submit with this kind of input.
    pub(crate) fn path(&self, kind: InputKind) -> &PathTemplate {
        let own = self.input(kind).and_then(|input| input.path.as_ref());
        own.unwrap_or(&self.path)
    }

    /// The body of a submit with this kind of input.
    pub(crate) fn body(&self, kind: InputKind) -> &Template {
        let own = self.input(kind).and_then(|input| input.body.as_ref());
        own.unwrap_or(&self.body)
    }

    /// Every placeholder of a submit with this kind of input, and the repetition that it is in.
    pub(crate) fn visit<'t>(
        &'t self,
        kind: InputKind,
        visit: &mut dyn FnMut(&str, &'t Placeholder, Option<EachReference>),
    ) {
        let input = self.input(kind);
        let place = |own: bool, part: &str| match own {
            true => format!("submit.inputs.{}.{part}", kind.name()),
            false => format!("submit.{part}"),
        };
        let path = place(input.is_some_and(|input| input.path.is_some()), "path");
        self.path(kind)
            .holes()
            .for_each(|hole| visit(&path, hole, None));
        for (name, value) in &self.headers {
            let place = format!("submit.headers.{name}");
            value.holes().for_each(|hole| visit(&place, hole, None));
        }
        let body = place(input.is_some_and(|input| input.body.is_some()), "body");
        self.body(kind).visit(&body, None, visit);
    }

    /// Whether a submit with this kind of input names this value.
    pub(crate) fn names(&self, kind: InputKind, name: ValueName) -> bool {
        let mut is_named = false;
        self.visit(kind, &mut |_, hole, _| is_named |= hole.name == name);
        is_named
    }
}

/// A call about a job.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobCall {
    pub(crate) path: PathTemplate,
    #[serde(default = "get")]
    pub(crate) method: HttpMethod,
    pub(crate) body: Option<Template>,
}

/// The call that stops a job.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelCall {
    pub(crate) path: PathTemplate,
    #[serde(default = "post")]
    pub(crate) method: HttpMethod,
    pub(crate) body: Option<Template>,
}

/// The call that costs nothing and shows whether a server would serve us.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbeCall {
    pub(crate) path: PathTemplate,
}

/// The endpoint that stores a reference.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadCall {
    pub(crate) path: PathTemplate,
    /// The name of the form's part.
    #[serde(default = "file")]
    pub(crate) field: String,
    /// Where its answer has the address.
    pub(crate) url: Pointers,
}

fn file() -> String {
    "file".to_owned()
}

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
}

/// What the server says that it charged.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CostRule {
    pub(crate) pointer: Pointers,
    pub(crate) currency: String,
    #[serde(default = "one")]
    pub(crate) per_unit: f64,
}

const fn one() -> f64 {
    1.0
}

/// The state of a task at its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    Unknown,
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
    words: Vec<(FailureCode, Vec<String>)>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FailureEntry {
    Shares(bool),
    Words(Vec<String>),
}

impl TryFrom<BTreeMap<String, FailureEntry>> for FailureWords {
    type Error = String;

    fn try_from(entries: BTreeMap<String, FailureEntry>) -> Result<Self, String> {
        let mut failures = Self::default();
        for (key, entry) in entries {
            match (key.as_str(), entry) {
                ("shares_codes", FailureEntry::Shares(shares)) => failures.shares_codes = shares,
                (code, FailureEntry::Words(words)) => {
                    let found = FailureCode::from_code(code).filter(|code| is_the_request_s(*code));
                    let Some(code) = found else {
                        let known: Vec<&str> = FailureCode::ALL
                            .iter()
                            .filter(|code| is_the_request_s(**code))
                            .map(|code| code.as_str())
                            .collect();
                        return Err(format!(
                            "failures.{code}: not a failure code of a request; use one of: {}",
                            known.join(", ")
                        ));
                    };
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
    /// The kind of failure that these texts, a server's code and message, tell.
    pub(crate) fn kind(&self, code: Option<&str>, message: Option<&str>) -> Option<FailureCode> {
        if let Some(shared) = code
            .filter(|_| self.shares_codes)
            .and_then(FailureCode::from_code)
            && is_the_request_s(shared)
        {
            return Some(shared);
        }
        let texts: Vec<String> = [code, message]
            .into_iter()
            .flatten()
            .map(str::to_lowercase)
            .collect();
        let is_told = |words: &[String]| {
            words.iter().any(|word| {
                let word = word.to_lowercase();
                texts.iter().any(|text| text.contains(&word))
            })
        };
        let row = self.words.iter().find(|(_, words)| is_told(words));
        row.map(|(code, _)| *code)
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

/// Where the film is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ResultPlace {
    /// If no answer has its address.
    pub(crate) path: Option<PathTemplate>,
    /// A second request, whose answer has the address.
    pub(crate) lookup: Option<PathTemplate>,
    /// Origins of films besides the server's own.
    pub(crate) origins: Vec<OriginPattern>,
    /// Whether the film's address may redirect, to these origins.
    pub(crate) redirects: bool,
}

/// The most references of a kind in one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReferenceLimits {
    pub(crate) images: Option<u32>,
    pub(crate) audios: Option<u32>,
}

/// Why a dialect is unusable, for an operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    /// No built-in dialect has this name.
    #[error(
        "unknown dialect '{name}'; use one of: {known}, or the path of a dialect file, such as ./provider.toml"
    )]
    Unknown {
        /// The name.
        name: String,
        /// Every name.
        known: String,
    },
    /// A file that cannot be read.
    #[error("dialect file {path}: {reason}")]
    File {
        /// The path.
        path: String,
        /// The cause.
        reason: String,
    },
    /// No TOML, an unknown or missing key, or a value of another type; with line and column.
    #[error("{0}")]
    Syntax(String),
    /// A value that cannot be meant.
    #[error("{key}: {problem}")]
    Value {
        /// The key's path.
        key: String,
        /// What is wrong, and what is right.
        problem: String,
    },
}

impl ServerDialect {
    /// The names of the built-in dialects.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The built-in dialects.
    ///
    /// # Errors
    /// None, unless this program is damaged: a test reads them all.
    pub fn built_in() -> Result<Vec<Arc<Self>>, DialectError> {
        Self::names().map(Self::named).collect()
    }

    /// The built-in dialect with this name.
    ///
    /// # Errors
    /// [`DialectError::Unknown`].
    pub fn named(name: &str) -> Result<Arc<Self>, DialectError> {
        let Some((_, text)) = BUILT_IN.iter().find(|(one, _)| *one == name) else {
            return Err(DialectError::Unknown {
                name: name.to_owned(),
                known: Self::names().collect::<Vec<_>>().join(", "),
            });
        };
        let mut dialect = Self::read(text)?;
        name.clone_into(&mut dialect.name);
        Ok(Arc::new(dialect))
    }

    /// The dialect in the file at `path`. Blocks while reading a small file.
    ///
    /// # Errors
    /// [`DialectError`], with the path.
    pub fn load(path: &Path) -> Result<Arc<Self>, DialectError> {
        let name = path.display().to_string();
        let wrong = |reason: String| DialectError::File {
            path: name.clone(),
            reason,
        };
        let is_above = path
            .components()
            .any(|part| part == std::path::Component::ParentDir);
        if is_above {
            return Err(wrong("write the path without '..'".to_owned()));
        }
        let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
        if std::fs::metadata(path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
            return Err(wrong("is larger than any dialect".to_owned()));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let mut dialect = Self::read(&text).map_err(|error| wrong(error.to_string()))?;
        dialect.name = name;
        Ok(Arc::new(dialect))
    }

    /// The dialect that an engine's setting `dialect` names: a path if it has a slash or ends with `.toml`,
    /// otherwise a built-in name.
    ///
    /// # Errors
    /// Those of [`Self::load`] and [`Self::named`].
    pub fn find(setting: &str) -> Result<Arc<Self>, DialectError> {
        match Self::path_of(setting) {
            Some(path) => Self::load(&path),
            None => Self::named(setting),
        }
    }

    /// The path that an engine's setting `dialect` names; `None` if it is a built-in name.
    pub fn path_of(setting: &str) -> Option<PathBuf> {
        let is_path = setting.contains('/') || setting.ends_with(".toml");
        is_path.then(|| setting.into())
    }

    /// The dialect in `text`, without a name.
    ///
    /// # Errors
    /// [`DialectError`] for the first mistake.
    pub fn read(text: &str) -> Result<Self, DialectError> {
        let read = toml::from_str::<Self>(text);
        let dialect =
            read.map_err(|error| DialectError::Syntax(error.to_string().trim().to_owned()))?;
        dialect.check()?;
        Ok(dialect)
    }

    /// This dialect with `body` merged into every submit.
    ///
    /// # Errors
    /// [`DialectError`] if the result cannot be meant.
    pub(crate) fn with_body(
        &self,
        body: &Template,
        lookup: &LookupTables,
    ) -> Result<Self, DialectError> {
        let mut changed = self.clone();
        let submit = &mut changed.submit;
        submit.body.merge(body);
        let inputs = &mut submit.inputs;
        let inputs = [
            &mut inputs.text,
            &mut inputs.first_frame,
            &mut inputs.frames,
            &mut inputs.references,
        ];
        let bodies = inputs
            .into_iter()
            .flatten()
            .filter_map(|input| input.body.as_mut());
        bodies.for_each(|own| own.merge(body));
        changed.lookup.extend(lookup.clone());
        changed.check()?;
        Ok(changed)
    }

    /// What to do when it is unknown whether a submit was accepted.
    pub fn repeat(&self) -> RepeatRule {
        match (&self.submit.repeat, &self.submit.idempotency_header) {
            (Some(rule), _) => *rule,
            (None, Some(_)) => RepeatRule::WithKey,
            (None, None) => RepeatRule::Never,
        }
    }

    /// The features that a model behind this dialect can offer; a model card is restricted to
    /// these. Drafts and edits refer to earlier tasks, which an upstream does not have.
    pub fn features(&self) -> Features {
        let submit = &self.submit;
        let names = |kind, name| submit.names(kind, name);
        let first_frame = names(InputKind::FirstFrame, ValueName::FirstFrame);
        let last_frame = names(InputKind::Frames, ValueName::FirstFrame)
            && names(InputKind::Frames, ValueName::LastFrame);
        let images = self.references_max(EachReference::Image);
        let offered: Vec<InputKind> = InputKind::ALL
            .into_iter()
            .filter(|kind| match kind {
                InputKind::Text => true,
                InputKind::FirstFrame => first_frame,
                InputKind::Frames => first_frame && last_frame,
                InputKind::References => images > 0,
            })
            .collect();
        // A model has sound or not, whatever the input: what one kind of submit cannot say is not offered.
        let everywhere = |name| offered.iter().all(|kind| submit.names(*kind, name));
        Features {
            text_to_video: true,
            first_frame,
            last_frame: first_frame && last_frame,
            reference_images_max: images,
            reference_audios_max: match images {
                0 => 0,
                _ => self.references_max(EachReference::Sound),
            },
            audio_output: everywhere(ValueName::Audio),
            auto_duration: submit.auto_seconds.is_some(),
            negative_prompt: everywhere(ValueName::NegativePrompt),
            draft: false,
            edit: false,
        }
    }

    /// The most references of a kind in one request; 0 if the template never names them.
    pub(crate) fn references_max(&self, each: EachReference) -> u32 {
        let (one, all, limit) = match each {
            EachReference::Image => (ValueName::Image, ValueName::Images, self.limits.images),
            EachReference::Sound => (ValueName::Sound, ValueName::Audios, self.limits.audios),
        };
        let (mut has_one, mut has_all) = (false, false);
        self.submit
            .visit(InputKind::References, &mut |_, hole, within| {
                has_all |= hole.name == all || (hole.name == one && within == Some(each));
                has_one |= hole.name == one;
            });
        match (has_one, has_all) {
            (_, true) => limit.unwrap_or(1),
            (true, false) => limit.unwrap_or(1).min(1),
            (false, false) => 0,
        }
    }

    /// Whether a call about a job needs this value of its submit.
    pub(crate) fn needs_later(&self, name: ValueName) -> bool {
        let (cancel, result) = (self.cancel.as_ref(), &self.result);
        let paths = [
            Some(&self.poll.path),
            cancel.map(|call| &call.path),
            result.path.as_ref(),
            result.lookup.as_ref(),
        ];
        let mut is_needed = paths
            .into_iter()
            .flatten()
            .flat_map(PathTemplate::holes)
            .any(|hole| hole.name == name);
        let bodies = [
            self.poll.body.as_ref(),
            cancel.and_then(|call| call.body.as_ref()),
        ];
        for body in bodies.into_iter().flatten() {
            body.visit("", None, &mut |_, hole, _| is_needed |= hole.name == name);
        }
        is_needed
    }

    /// Whether a seed reaches the server.
    pub(crate) fn names_seed(&self) -> bool {
        self.submit.names(InputKind::Text, ValueName::Seed)
    }

    /// How the key is sent.
    pub(crate) fn auth(&self) -> Option<AuthScheme> {
        let name = HeaderName::try_from(self.auth.header.as_str()).ok()?;
        let value = self.auth.value.join(|piece| match piece {
            Ok(literal) => Ok::<_, ()>(literal.to_owned()),
            Err(_) => Ok(AuthScheme::KEY.to_owned()),
        });
        Some(AuthScheme::new(name, value.ok()?, self.auth.signer))
    }

    /// The headers of every call.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.headers
            .iter()
            .filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)))
    }
}
