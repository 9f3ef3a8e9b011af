//! How to talk to one kind of server: a record that is read from a TOML file. No other code asks which server it
//! talks to. A mistake in a file is an error that names its key; what a dialect cannot say is not offered.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue};
use kinora_contract::Features;
use kinora_engine::KindError;
use serde::Deserialize;

use super::address::{OriginPattern, PathTemplate};
use super::calls::{
    CancelCall, InputKind, PollCall, ProbeCall, RepeatRule, SubmitCall, UploadCall,
};
use super::shape::{AnswerShape, FailureWords, StatusWords};
use super::template::{EachReference, Placeholder, Template, TextTemplate, ValueName};
use crate::servers::{AuthScheme, KeySigner, read_small};

/// Larger files are not dialects.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The built-in dialects, by name.
const BUILT_IN: &[(&str, &str)] = &[
    ("kinora", include_str!("../../dialects/kinora.toml")),
    ("openai", include_str!("../../dialects/openai.toml")),
    ("vllm-omni", include_str!("../../dialects/vllm-omni.toml")),
    ("sglang", include_str!("../../dialects/sglang.toml")),
    ("ark", include_str!("../../dialects/ark.toml")),
    ("dashscope", include_str!("../../dialects/dashscope.toml")),
    ("fal", include_str!("../../dialects/fal.toml")),
    (
        "gemini-omni",
        include_str!("../../dialects/gemini-omni.toml"),
    ),
    ("kling", include_str!("../../dialects/kling.toml")),
    ("luma", include_str!("../../dialects/luma.toml")),
    ("minimax", include_str!("../../dialects/minimax.toml")),
    ("openrouter", include_str!("../../dialects/openrouter.toml")),
    ("replicate", include_str!("../../dialects/replicate.toml")),
    ("runway", include_str!("../../dialects/runway.toml")),
    ("veo", include_str!("../../dialects/veo.toml")),
    ("vidu", include_str!("../../dialects/vidu.toml")),
    ("xai", include_str!("../../dialects/xai.toml")),
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
    pub(crate) poll: PollCall,
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
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuthRule {
    pub(crate) header: String,
    pub(crate) value: TextTemplate,
    signer: Option<KeySigner>,
}

impl Default for AuthRule {
    fn default() -> Self {
        Self {
            header: "authorization".to_owned(),
            value: "Bearer {key}".to_owned().try_into().unwrap_or_default(),
            signer: None,
        }
    }
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

impl ServerDialect {
    /// The names of the built-in dialects.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The built-in dialect with this name.
    ///
    /// # Errors
    /// If there is none, with every name.
    pub fn named(name: &str) -> Result<Arc<Self>, KindError> {
        let Some((_, text)) = BUILT_IN.iter().find(|(one, _)| *one == name) else {
            let known: Vec<&str> = Self::names().collect();
            return Err(KindError(format!(
                "unknown dialect '{name}'; use one of: {}, or the path of a dialect file, such as ./provider.toml",
                known.join(", ")
            )));
        };
        let mut dialect = Self::read(text)?;
        name.clone_into(&mut dialect.name);
        Ok(Arc::new(dialect))
    }

    /// The dialect in the file at `path`. Blocks while reading a small file.
    ///
    /// # Errors
    /// If it cannot be read or meant, with the path.
    pub fn load(path: &Path) -> Result<Arc<Self>, KindError> {
        let name = path.display().to_string();
        let wrong = |reason: String| KindError(format!("dialect file {name}: {reason}"));
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(wrong("write the path without '..'".to_owned()));
        }
        let text = read_small(path, FILE_BYTES_MAX).map_err(wrong)?;
        let mut dialect = Self::read(&text).map_err(|error| wrong(error.0))?;
        dialect.name = name;
        Ok(Arc::new(dialect))
    }

    /// The dialect that an engine's setting `dialect` names: a path if it has a slash or ends with `.toml`,
    /// otherwise a built-in name.
    ///
    /// # Errors
    /// Those of [`Self::load`] and [`Self::named`].
    pub fn find(setting: &str) -> Result<Arc<Self>, KindError> {
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
    /// The first mistake: no TOML, an unknown or missing key, or a value that cannot be meant, with its place.
    pub fn read(text: &str) -> Result<Self, KindError> {
        let read = toml::from_str::<Self>(text);
        let dialect = read.map_err(|error| KindError(error.to_string().trim().to_owned()))?;
        dialect.check()?;
        Ok(dialect)
    }

    /// This dialect with `body` merged into every submit.
    ///
    /// # Errors
    /// If the result cannot be meant.
    pub(crate) fn with_body(
        &self,
        body: &Template,
        lookup: &LookupTables,
    ) -> Result<Self, KindError> {
        let mut changed = self.clone();
        changed.submit.merge(body);
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

    /// Whether each submit may be charged, so that none is repeated without need.
    pub fn is_paid(&self) -> bool {
        self.repeat() != RepeatRule::Freely && !self.failures.shares_codes
    }

    /// Whether a submit names the upstream's model; in a path, it must.
    pub(crate) fn names_model(&self) -> (bool, bool) {
        let is_named = InputKind::ALL
            .iter()
            .any(|kind| self.submit.names(*kind, ValueName::Model));
        let mut paths = InputKind::ALL
            .iter()
            .flat_map(|kind| self.submit.path(*kind).holes());
        let in_path = paths.any(|hole| hole.name == ValueName::Model);
        (is_named, in_path || self.needs_later(ValueName::Model))
    }

    /// The features that a model behind this dialect can offer; a model card is restricted to
    /// these. Drafts and edits refer to earlier tasks, which an upstream does not have.
    pub fn features(&self) -> Features {
        let has_sound = self.submit.names(InputKind::Text, ValueName::Audio);
        Features {
            audio_output: has_sound,
            ..self.features_with(false)
        }
    }

    /// The features of a model whose sound is switched or not: with a switch, only the kinds of input whose
    /// submit can say it.
    pub(crate) fn features_with(&self, sound: bool) -> Features {
        let submit = &self.submit;
        let sound = sound && submit.names(InputKind::Text, ValueName::Audio);
        let names = |kind, name: ValueName| {
            submit.names(kind, name) && (!sound || submit.names(kind, ValueName::Audio))
        };
        let first_frame = names(InputKind::FirstFrame, ValueName::FirstFrame);
        let last_frame = first_frame
            && names(InputKind::Frames, ValueName::FirstFrame)
            && names(InputKind::Frames, ValueName::LastFrame);
        let has_references = names(InputKind::References, ValueName::Prompt);
        let images = match has_references {
            true => self.references_max(EachReference::Image),
            false => 0,
        };
        let offered = [
            (InputKind::Text, true),
            (InputKind::FirstFrame, first_frame),
            (InputKind::Frames, last_frame),
            (InputKind::References, images > 0),
        ];
        // What one kind of submit cannot say is not offered: a model takes it with any input, or never.
        let mut offered = offered.into_iter().filter(|(_, is_offered)| *is_offered);
        let negative_prompt =
            offered.all(|(kind, _)| submit.names(kind, ValueName::NegativePrompt));
        Features {
            text_to_video: true,
            first_frame,
            last_frame,
            reference_images_max: images,
            reference_audios_max: match images {
                0 => 0,
                _ => self.references_max(EachReference::Sound),
            },
            audio_output: sound,
            auto_duration: submit.auto_seconds.is_some(),
            negative_prompt,
            draft: false,
            edit: false,
        }
    }

    /// The most references of a kind in one request; 0 if the template never names them.
    pub(crate) fn references_max(&self, each: EachReference) -> u32 {
        let limit = match each {
            EachReference::Image => self.limits.images,
            EachReference::Sound => self.limits.audios,
        };
        match self.names_references(each) {
            (_, true) => limit.unwrap_or(1),
            (true, false) => limit.unwrap_or(1).min(1),
            (false, false) => 0,
        }
    }

    /// Whether a submit names one reference of a kind, and whether it names all of them.
    pub(crate) fn names_references(&self, each: EachReference) -> (bool, bool) {
        let (one, all) = match each {
            EachReference::Image => (ValueName::Image, ValueName::Images),
            EachReference::Sound => (ValueName::Sound, ValueName::Audios),
        };
        let (mut has_one, mut has_all) = (false, false);
        self.submit
            .visit(InputKind::References, &mut |_, hole, within| {
                has_all |= hole.name == all || (hole.name == one && within == Some(each));
                has_one |= hole.name == one;
            });
        (has_one, has_all)
    }

    /// The paths and bodies of the calls about a job, by their keys.
    pub(crate) fn job_calls(&self) -> Vec<(&'static str, &PathTemplate, Option<&Template>)> {
        let mut calls = vec![("poll", &self.poll.path, self.poll.body.as_ref())];
        let cancel = self.cancel.as_ref();
        calls.extend(cancel.map(|call| ("cancel", &call.path, call.body.as_ref())));
        let result = &self.result;
        calls.extend(result.path.as_ref().map(|path| ("result.path", path, None)));
        calls.extend(
            result
                .lookup
                .as_ref()
                .map(|path| ("result.lookup", path, None)),
        );
        calls
    }

    /// Whether a call about a job needs this value of its submit.
    pub(crate) fn needs_later(&self, name: ValueName) -> bool {
        let mut calls = self.job_calls().into_iter();
        calls.any(|(_, path, body)| holes(path, body).iter().any(|hole| hole.name == name))
    }

    /// Whether a seed reaches the server.
    pub(crate) fn names_seed(&self) -> bool {
        self.submit.names(InputKind::Text, ValueName::Seed)
    }

    /// How the key is sent.
    pub(crate) fn auth(&self) -> Option<AuthScheme> {
        let value = self.auth.value.join(|piece| match piece {
            Ok(literal) => Ok::<_, ()>(literal.to_owned()),
            Err(_) => Ok(AuthScheme::KEY.to_owned()),
        });
        Some(AuthScheme {
            header: self.auth.header.parse().ok()?,
            value: value.ok()?,
            signer: self.auth.signer,
        })
    }

    /// The headers of every call.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.headers
            .iter()
            .filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)))
    }
}

/// Every placeholder of a call.
pub(crate) fn holes<'t>(
    path: &'t PathTemplate,
    body: Option<&'t Template>,
) -> Vec<&'t Placeholder> {
    let mut holes: Vec<&Placeholder> = path.holes().collect();
    if let Some(body) = body {
        body.visit("", None, &mut |_, hole, _| holes.push(hole));
    }
    holes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: &str = r#"
title = "A server"
source = "this test"
submit = { path = "videos", body = { prompt = "{prompt}" } }
poll = { path = "videos/{id}" }
statuses = { completed = ["done"] }
answer = { result = "/url" }
"#;

    /// What is wrong with [`SMALL`] after `from` became `to`.
    fn problem(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from), "{from}");
        ServerDialect::read(&SMALL.replace(from, to))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn every_built_in_dialect_is_read_and_says_where_it_is_from() {
        for name in ServerDialect::names() {
            let dialect = ServerDialect::named(name).unwrap();
            assert!(!dialect.title.is_empty() && !dialect.source.is_empty());
            assert_eq!(dialect.name, name);
            let features = dialect.features();
            assert!(!features.draft && !features.edit);
        }
        let unknown = ServerDialect::named("esperanto").unwrap_err().to_string();
        assert!(
            unknown.contains("kinora, openai") && unknown.contains(".toml"),
            "{unknown}"
        );
    }

    #[test]
    fn features_follow_from_the_templates() {
        let features = |name| ServerDialect::named(name).unwrap().features();
        let all = features("kinora");
        assert!(all.first_frame && all.last_frame && all.audio_output && all.auto_duration);
        assert_eq!((all.reference_images_max, all.reference_audios_max), (9, 3));
        let one = features("vllm-omni");
        assert_eq!((one.reference_images_max, one.reference_audios_max), (1, 1));
        let few = features("sglang");
        assert!(few.first_frame && !few.last_frame && !few.audio_output);
        assert_eq!((few.reference_images_max, few.reference_audios_max), (0, 0));
    }

    type Mistake = (&'static str, &'static str, &'static str);

    const MISTAKES_IN_TEMPLATES: &[Mistake] = &[
        ("\"{prompt}\"", "\"{promt}\"", "line 4"),
        (
            "\"{prompt}\"",
            "\"{promt}\"",
            "unknown placeholder {promt}; use one of: model, prompt",
        ),
        ("\"{prompt}\"", "\"{prompt\"", "not closed"),
        ("\"{prompt}\"", "\"{seed:hex}\"", "it takes :text or :31"),
        (
            "\"{prompt}\"",
            "\"{prompt}{id}\"",
            "submit.body.prompt: {id} has a value only after the submit",
        ),
        ("\"{prompt}\"", "\"a\"", "submit.body: must name {prompt}"),
        (
            "\"{prompt}\"",
            "[\"{prompt}\", \"{size@s}\"]",
            "submit.body.prompt[1]: {size@s}: there is no [lookup.s]",
        ),
        (
            "\"{prompt}\"",
            "\"{prompt}\", a = { for_each = \"images\" }",
            "submit.body.a.for_each",
        ),
        (
            "\"{prompt}\"",
            "\"{prompt}\", a = [{ for_each = \"frames\" }]",
            "for_each must be \"images\"",
        ),
        (
            "\"{prompt}\"",
            "\"{prompt}\", a = [{ for_each = \"images\", b = \"{sound}\" }]",
            "for_each = \"audios\"",
        ),
        (
            "\"{prompt}\"",
            "\"{prompt}\", a = \"{images}\"",
            "limits.images",
        ),
        (
            "\"{prompt}\"",
            "\"{prompt}\", a = { b = \"{first_frame:file}\" }",
            "submit.body.a.b: :file",
        ),
    ];

    const OTHER_MISTAKES: &[Mistake] = &[
        ("\"videos\"", "\"/videos\"", "relative to base_url"),
        ("\"videos\"", "\"a/../videos\"", "relative to base_url"),
        ("\"videos\"", "\"https://h/videos\"", "relative to base_url"),
        (
            "\"videos\"",
            "\"videos/{image}\"",
            "submit.path: {image} belongs into the body",
        ),
        ("videos/{id}", "videos", "poll: must name {id}"),
        (
            "videos/{id}",
            "videos/{id}/{seed}",
            "poll: {seed} has no value after the submit",
        ),
        ("[\"done\"]", "[]", "statuses.completed"),
        (
            "[\"done\"]",
            "[\"done\"], failed = [\"done\"]",
            "statuses.completed as well",
        ),
        ("\"/url\"", "\"url\"", "begins with a slash"),
        ("answer = { result = \"/url\" }", "", "answer.result"),
        (
            "answer = {",
            "failures = { odd = [\"a\"] }\nanswer = {",
            "failures.odd: not a failure code",
        ),
        (
            "answer = {",
            "result = { origins = [\"*.e.org\"] }\nanswer = {",
            "https://*.example.com",
        ),
        (
            "answer = {",
            "auth = { value = \"Bearer\" }\nanswer = {",
            "auth.value: must have {key} once",
        ),
        (
            "answer = {",
            "auth = { signer = \"rsa\" }\nanswer = {",
            "jwt-hs256",
        ),
        ("answer = {", "base_url = \"e.org\"\nanswer = {", "base_url"),
        (
            "answer = {",
            "colour = 1\nanswer = {",
            "unknown field `colour`",
        ),
        ("title = \"A server\"\n", "", "title"),
    ];

    #[test]
    fn a_mistake_is_named_with_its_key_and_with_what_is_right() {
        ServerDialect::read(SMALL).unwrap();
        for (from, to, told) in [MISTAKES_IN_TEMPLATES, OTHER_MISTAKES].concat() {
            let problem = problem(from, to);
            assert!(problem.contains(told), "{told:?} in: {problem}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_one_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        let told = |path: &Path| ServerDialect::load(path).unwrap_err().to_string();
        assert!(told(&file).contains("a.toml: cannot be read"));
        std::fs::write(&file, SMALL).unwrap();
        let text = file.to_str().unwrap();
        let loaded = ServerDialect::find(text).unwrap();
        assert_eq!(
            (loaded.name.as_str(), loaded.title.as_str()),
            (text, "A server")
        );
        assert!(told(&folder.path().join("b/../a.toml")).contains("without '..'"));
        std::fs::write(&file, "title = 3").unwrap();
        assert!(told(&file).contains("a.toml: TOML parse error at line 1"));
        std::fs::write(&file, [0xff; 8]).unwrap();
        assert!(told(&file).contains("cannot be read"));
        std::fs::write(&file, vec![b'#'; 300 * 1024]).unwrap();
        assert!(told(&file).contains("is larger than 262144 bytes"));
    }

    #[test]
    fn a_body_of_an_engine_is_merged_into_every_kind_of_submit() {
        let text = format!(
            "{SMALL}\n[submit.inputs.first_frame.body]\nprompt = \"{{prompt}}\"\nimage = 1\n"
        );
        let text = text
            .replace("submit = {", "submit.path = \"videos\"\nsubmit.body = {")
            .replace(
                " path = \"videos\", body = { prompt = \"{prompt}\" } }",
                " prompt = \"{prompt}\" }",
            );
        let dialect = ServerDialect::read(&text).unwrap();
        assert!(!dialect.features().first_frame);
        let body: toml::Table = toml::from_str("image = { url = \"{first_frame}\" }").unwrap();
        let body = Template::deserialize(toml::Value::Table(body)).unwrap();
        let merged = dialect.with_body(&body, &LookupTables::new()).unwrap();
        assert!(merged.features().first_frame);
        let wrong: toml::Table = toml::from_str("prompt = \"always the same\"").unwrap();
        let wrong = Template::deserialize(toml::Value::Table(wrong)).unwrap();
        assert!(dialect.with_body(&wrong, &LookupTables::new()).is_err());
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in ".{0,200}") {
            let _ = ServerDialect::read(&text);
            let _ = ServerDialect::read(&format!("{SMALL}\n{text}"));
        }

        #[test]
        fn no_template_breaks_the_reader(text in "[a-z{}:@_ 0-9/?&=.]{0,40}") {
            let quoted = serde_json::to_string(&text).unwrap();
            let _ = ServerDialect::read(&SMALL.replace("\"{prompt}\"", &quoted));
            let _ = ServerDialect::read(&SMALL.replace("\"videos/{id}\"", &quoted));
        }
    }
}
