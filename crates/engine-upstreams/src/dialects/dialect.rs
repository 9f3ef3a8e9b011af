//! How to talk to each kind of server: one declarative record per dialect. No other code asks which
//! server it talks to; a field missing in a dialect's table cannot be sent.

use kinora_contract::Features;

/// A variant of the `/v1/videos` protocol.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerDialect {
    /// The name in the configuration.
    pub name: &'static str,
    /// The form of a submit's body.
    pub form: BodyForm,
    /// The supported fields, with their names and shapes.
    pub fields: &'static [(WireField, &'static str, FieldShape)],
    /// The path of the endpoint that stores the file of a reference and answers with its `url`, for
    /// references that are not on the web.
    pub uploads: Option<&'static str>,
    /// Whether the server may choose the length.
    pub auto_seconds: bool,
    /// What to do when it is unknown whether a submit was accepted.
    pub resubmit: ResubmitRule,
    /// How to stop work.
    pub cancel: CancelMethod,
    /// Where to get the result.
    pub result: ResultLocation,
    /// Its status words. Other words do not count as a sign of life.
    pub statuses: &'static [(&'static str, UpstreamPhase)],
    /// Whether its `error.code` values mean the same as ours.
    pub shares_failure_codes: bool,
}

/// The form of a submit's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// One JSON object.
    Json,
    /// `multipart/form-data`.
    Multipart,
    /// JSON, unless the request has a file.
    JsonUnlessUpload,
}

/// A field of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireField {
    /// The upstream's name of the model.
    Model,
    /// The prompt.
    Prompt,
    /// The negative prompt.
    NegativePrompt,
    /// Length in whole seconds.
    Seconds,
    /// `WIDTHxHEIGHT`.
    Size,
    /// Seed of all randomness; the only field that a dialect may silently omit.
    Seed,
    /// Whether to generate sound.
    AudioSwitch,
    /// The result starts with this image.
    FirstFrame,
    /// The result ends with this image.
    LastFrame,
    /// Images to show.
    Images,
    /// Sound to hear.
    Audios,
}

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// A string.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Flag,
    /// The URL of one reference.
    Url,
    /// The URLs of at most this many references.
    Urls(u32),
    /// The bytes of one reference as a file part.
    Upload,
    /// An object with this single key and a `data:` URL of one reference.
    DataUrl(&'static str),
}

impl FieldShape {
    const fn references_max(self) -> u32 {
        match self {
            Self::Text | Self::Number | Self::Flag => 0,
            Self::Url | Self::Upload | Self::DataUrl(_) => 1,
            Self::Urls(max) => max,
        }
    }
}

/// What to do when it is unknown whether a submit was accepted: the connection broke before the
/// answer, or a gateway answered instead of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResubmitRule {
    /// Repeat the submit at the same upstream with the same key in this header: the server returns
    /// the same task.
    WithKey(&'static str),
    /// Submit again: a second run only costs time on our own accelerator.
    Freely,
    /// Give up: a second run may be charged twice.
    Never,
}

/// How to stop work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelMethod {
    /// `POST {id}/cancel`.
    Post,
    /// `DELETE {id}`.
    Delete,
}

/// Where to get the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultLocation {
    /// Under `GET {id}/content`.
    Content,
    /// From the object's `url` if present, otherwise from `GET {id}/content`.
    UrlElseContent,
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
    /// A status word that the dialect does not know.
    Unknown,
}

const OPENAI_STATUSES: &[(&str, UpstreamPhase)] = &[
    ("queued", UpstreamPhase::Queued),
    ("in_progress", UpstreamPhase::Running),
    ("completed", UpstreamPhase::Completed),
    ("failed", UpstreamPhase::Failed),
];

/// Another Kinora.
pub const KINORA: ServerDialect = ServerDialect {
    name: "kinora",
    form: BodyForm::Json,
    fields: &[
        (WireField::Model, "model", FieldShape::Text),
        (WireField::Prompt, "prompt", FieldShape::Text),
        (
            WireField::NegativePrompt,
            "negative_prompt",
            FieldShape::Text,
        ),
        (WireField::Seconds, "seconds", FieldShape::Text),
        (WireField::Size, "size", FieldShape::Text),
        (WireField::Seed, "seed", FieldShape::Number),
        (WireField::AudioSwitch, "generate_audio", FieldShape::Flag),
        (WireField::FirstFrame, "first_frame", FieldShape::Url),
        (WireField::LastFrame, "last_frame", FieldShape::Url),
        (WireField::Images, "reference_images", FieldShape::Urls(9)),
        (WireField::Audios, "reference_audios", FieldShape::Urls(3)),
    ],
    uploads: Some("files"),
    auto_seconds: true,
    resubmit: ResubmitRule::WithKey("idempotency-key"),
    cancel: CancelMethod::Post,
    result: ResultLocation::Content,
    statuses: OPENAI_STATUSES,
    shares_failure_codes: true,
};

/// `OpenAI`'s own Videos API and hosted providers that follow it. Some of them pass through the
/// status words of their backends.
pub const OPENAI: ServerDialect = ServerDialect {
    name: "openai",
    form: BodyForm::Multipart,
    fields: &[
        (WireField::Model, "model", FieldShape::Text),
        (WireField::Prompt, "prompt", FieldShape::Text),
        (WireField::Seconds, "seconds", FieldShape::Text),
        (WireField::Size, "size", FieldShape::Text),
        (WireField::FirstFrame, "input_reference", FieldShape::Upload),
    ],
    uploads: None,
    auto_seconds: false,
    resubmit: ResubmitRule::Never,
    cancel: CancelMethod::Delete,
    result: ResultLocation::Content,
    statuses: &[
        ("queued", UpstreamPhase::Queued),
        ("in_progress", UpstreamPhase::Running),
        ("running", UpstreamPhase::Running),
        ("completed", UpstreamPhase::Completed),
        ("succeeded", UpstreamPhase::Completed),
        ("failed", UpstreamPhase::Failed),
        ("expired", UpstreamPhase::Failed),
        ("cancelled", UpstreamPhase::Failed),
    ],
    shares_failure_codes: false,
};

/// vLLM-Omni: forms only, references by upload or `data:` URL, `DELETE` stops the engine.
pub const VLLM_OMNI: ServerDialect = ServerDialect {
    name: "vllm-omni",
    form: BodyForm::Multipart,
    fields: &[
        (WireField::Model, "model", FieldShape::Text),
        (WireField::Prompt, "prompt", FieldShape::Text),
        (
            WireField::NegativePrompt,
            "negative_prompt",
            FieldShape::Text,
        ),
        (WireField::Seconds, "seconds", FieldShape::Text),
        (WireField::Size, "size", FieldShape::Text),
        (WireField::Seed, "seed", FieldShape::Number),
        (WireField::AudioSwitch, "generate_sound", FieldShape::Flag),
        (WireField::FirstFrame, "input_reference", FieldShape::Upload),
        (
            WireField::Images,
            "image_reference",
            FieldShape::DataUrl("image_url"),
        ),
        (
            WireField::Audios,
            "audio_reference",
            FieldShape::DataUrl("audio_url"),
        ),
    ],
    uploads: None,
    auto_seconds: false,
    resubmit: ResubmitRule::Freely,
    cancel: CancelMethod::Delete,
    result: ResultLocation::Content,
    statuses: OPENAI_STATUSES,
    shares_failure_codes: false,
};

/// SGLang-Diffusion: JSON, or a form with an uploaded first frame; with cloud storage the object
/// has the result's URL and `content` is refused. `DELETE` removes a task without stopping it.
pub const SGLANG: ServerDialect = ServerDialect {
    name: "sglang",
    form: BodyForm::JsonUnlessUpload,
    fields: &[
        (WireField::Model, "model", FieldShape::Text),
        (WireField::Prompt, "prompt", FieldShape::Text),
        (
            WireField::NegativePrompt,
            "negative_prompt",
            FieldShape::Text,
        ),
        (WireField::Seconds, "seconds", FieldShape::Number),
        (WireField::Size, "size", FieldShape::Text),
        (WireField::Seed, "seed", FieldShape::Number),
        (WireField::FirstFrame, "input_reference", FieldShape::Upload),
    ],
    uploads: None,
    auto_seconds: false,
    resubmit: ResubmitRule::Freely,
    cancel: CancelMethod::Delete,
    result: ResultLocation::UrlElseContent,
    statuses: &[
        ("queued", UpstreamPhase::Queued),
        ("in_progress", UpstreamPhase::Running),
        ("completed", UpstreamPhase::Completed),
        ("failed", UpstreamPhase::Failed),
        ("deleted", UpstreamPhase::Failed),
    ],
    shares_failure_codes: false,
};

impl ServerDialect {
    /// Every dialect.
    pub const ALL: &'static [&'static Self] = &[&KINORA, &OPENAI, &VLLM_OMNI, &SGLANG];

    /// The dialect with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().copied().find(|one| one.name == name)
    }

    /// The features that a model behind this dialect can offer; a model card is restricted to
    /// these. Drafts and edits refer to earlier tasks, which an upstream does not have.
    pub fn features(&self) -> Features {
        let references = |field| {
            self.wire(field)
                .map_or(0, |(_, shape)| shape.references_max())
        };
        Features {
            text_to_video: true,
            first_frame: self.wire(WireField::FirstFrame).is_some(),
            last_frame: self.wire(WireField::LastFrame).is_some(),
            reference_images_max: references(WireField::Images),
            reference_audios_max: references(WireField::Audios),
            audio_output: self.wire(WireField::AudioSwitch).is_some(),
            auto_duration: self.auto_seconds,
            negative_prompt: self.wire(WireField::NegativePrompt).is_some(),
            draft: false,
            edit: false,
        }
    }

    /// The name and shape of `field`.
    pub(crate) fn wire(&self, field: WireField) -> Option<(&'static str, FieldShape)> {
        let row = self.fields.iter().find(|(one, _, _)| *one == field);
        row.map(|(_, name, shape)| (*name, *shape))
    }

    pub(crate) fn phase(&self, word: &str) -> UpstreamPhase {
        let row = self.statuses.iter().find(|(one, _)| *one == word);
        row.map_or(UpstreamPhase::Unknown, |(_, phase)| *phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_found_by_its_name_and_names_no_field_twice() {
        for dialect in ServerDialect::ALL {
            assert_eq!(ServerDialect::named(dialect.name), Some(*dialect));
            for (index, (field, name, _)) in dialect.fields.iter().enumerate() {
                let others = &dialect.fields[..index];
                assert!(others.iter().all(|one| one.0 != *field && one.1 != *name));
            }
        }
        assert_eq!(ServerDialect::named("esperanto"), None);
    }

    #[test]
    fn features_follow_from_the_table() {
        let all = KINORA.features();
        assert!(all.first_frame && all.last_frame && all.audio_output && all.auto_duration);
        assert_eq!((all.reference_images_max, all.reference_audios_max), (9, 3));
        let few = SGLANG.features();
        assert!(few.first_frame && !few.last_frame && !few.audio_output);
        assert_eq!((few.reference_images_max, few.reference_audios_max), (0, 0));
        assert!(
            ServerDialect::ALL
                .iter()
                .all(|one| !one.features().draft && !one.features().edit)
        );
    }
}
