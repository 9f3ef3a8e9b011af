//! The calls of a dialect: the submit, whose path and body may differ by the kind of input, and those about a job.

use std::collections::BTreeMap;

use hyper::Method;
use kinora_contract::VideoInputs;
use serde::Deserialize;
use serde_json::Value;

use super::address::PathTemplate;
use super::pointer::Pointers;
use super::template::{EachReference, Placeholder, Template, TextTemplate, ValueName};

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
    pub(crate) path: PathTemplate,
    #[serde(default = "post")]
    pub(crate) method: HttpMethod,
    #[serde(default)]
    pub(crate) form: BodyForm,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, TextTemplate>,
    pub(crate) idempotency_header: Option<String>,
    pub(crate) repeat: Option<RepeatRule>,
    pub(crate) auto_seconds: Option<Value>,
    pub(crate) body: Template,
    /// What differs by the kind of input.
    #[serde(default)]
    inputs: BTreeMap<InputKind, InputCall>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InputCall {
    path: Option<PathTemplate>,
    body: Option<Template>,
}

/// The kind of a request's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
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

    /// The kind of these inputs.
    pub(crate) const fn of(inputs: &VideoInputs) -> Self {
        match inputs {
            VideoInputs::Text => Self::Text,
            VideoInputs::Frames { last: None, .. } => Self::FirstFrame,
            VideoInputs::Frames { .. } => Self::Frames,
            VideoInputs::References { .. } => Self::References,
        }
    }

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
    /// Merges `body` into every body.
    pub(crate) fn merge(&mut self, body: &Template) {
        self.body.merge(body);
        let inputs = self.inputs.values_mut();
        let bodies = inputs.filter_map(|input| input.body.as_mut());
        bodies.for_each(|own| own.merge(body));
    }

    /// The path of a submit with this kind of input.
    pub(crate) fn path(&self, kind: InputKind) -> &PathTemplate {
        let own = self.inputs.get(&kind).and_then(|input| input.path.as_ref());
        own.unwrap_or(&self.path)
    }

    /// The body of a submit with this kind of input.
    pub(crate) fn body(&self, kind: InputKind) -> &Template {
        let own = self.inputs.get(&kind).and_then(|input| input.body.as_ref());
        own.unwrap_or(&self.body)
    }

    /// Every placeholder of a submit with this kind of input, and the repetition that it is in.
    pub(crate) fn visit<'t>(
        &'t self,
        kind: InputKind,
        visit: &mut dyn FnMut(&str, &'t Placeholder, Option<EachReference>),
    ) {
        let input = self.inputs.get(&kind);
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

/// The call that asks for the state of a job.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PollCall {
    pub(crate) path: PathTemplate,
    #[serde(default = "get")]
    pub(crate) method: HttpMethod,
    pub(crate) body: Option<Template>,
    /// Status words, and parts of a refusal's words, that mean that the server does not know the job.
    #[serde(default)]
    pub(crate) forgotten: Vec<String>,
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
