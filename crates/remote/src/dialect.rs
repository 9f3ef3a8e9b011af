//! How each kind of server is spoken to: one declarative record per dialect. Nothing else asks which
//! server it has, and what a dialect's table does not name cannot be said in it.

use kinora_contract::Features;

/// One way of speaking `/v1/videos`.
#[derive(Debug, PartialEq, Eq)]
pub struct Dialect {
    /// As configured.
    pub name: &'static str,
    /// The form of a submit's body.
    pub form: Form,
    /// What can be said, by which name and in which shape.
    pub fields: &'static [(Field, &'static str, Shape)],
    /// Whether the server may choose the length.
    pub auto_seconds: bool,
    /// What follows a submit of which nobody knows whether it was taken.
    pub resubmit: Resubmit,
    /// How work is stopped.
    pub cancel: CancelBy,
    /// Where the result lies.
    pub result: ResultAt,
    /// Its status words. Any other word is no sign of life.
    pub statuses: &'static [(&'static str, Phase)],
    /// Whether its `error.code` means what ours means.
    pub shares_failure_codes: bool,
}

/// The form of a submit's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object.
    Json,
    /// `multipart/form-data`.
    Multipart,
    /// JSON, unless a file goes with it.
    JsonUnlessUpload,
}

/// What a request can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The upstream's name of the model.
    Model,
    /// What to show.
    Prompt,
    /// What to avoid.
    NegativePrompt,
    /// Length in whole seconds.
    Seconds,
    /// `WIDTHxHEIGHT`.
    Size,
    /// Seed of all randomness; the one field that a dialect may be without and still be spoken.
    Seed,
    /// Whether there is sound.
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
pub enum Shape {
    /// A string.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Flag,
    /// The address of one reference.
    Url,
    /// The addresses of up to so many references.
    Urls(u32),
    /// The bytes of one reference as a file part.
    Upload,
    /// An object with this one key, whose value is a `data:` URL of one reference.
    DataUrl(&'static str),
}

impl Shape {
    const fn references_max(self) -> u32 {
        match self {
            Self::Text | Self::Number | Self::Flag => 0,
            Self::Url | Self::Upload | Self::DataUrl(_) => 1,
            Self::Urls(max) => max,
        }
    }
}

/// What follows a submit of which nobody knows whether it was taken: the connection broke before
/// the answer, or a gateway answered in the server's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resubmit {
    /// The same submit again, at the same upstream, under the same key in this header: the server
    /// gives the same task.
    WithKey(&'static str),
    /// Another submit: a second run costs nothing but an own accelerator's time.
    Freely,
    /// Nothing: a second run may be paid twice.
    Never,
}

/// How work is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelBy {
    /// `POST {id}/cancel`.
    Post,
    /// `DELETE {id}`.
    Delete,
}

/// Where the result lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultAt {
    /// Under `GET {id}/content`.
    Content,
    /// At the `url` of the object when it has one, else under `GET {id}/content`.
    UrlElseContent,
}

/// Where a task stands at its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits.
    Queued,
    /// It is worked on.
    Running,
    /// There is a result.
    Completed,
    /// There will be none.
    Failed,
    /// A word that the dialect does not know.
    Unknown,
}

const OPENAI_STATUSES: &[(&str, Phase)] = &[
    ("queued", Phase::Queued),
    ("in_progress", Phase::Running),
    ("completed", Phase::Completed),
    ("failed", Phase::Failed),
];

/// Another Kinora.
pub const KINORA: Dialect = Dialect {
    name: "kinora",
    form: Form::Json,
    fields: &[
        (Field::Model, "model", Shape::Text),
        (Field::Prompt, "prompt", Shape::Text),
        (Field::NegativePrompt, "negative_prompt", Shape::Text),
        (Field::Seconds, "seconds", Shape::Text),
        (Field::Size, "size", Shape::Text),
        (Field::Seed, "seed", Shape::Number),
        (Field::AudioSwitch, "generate_audio", Shape::Flag),
        (Field::FirstFrame, "first_frame", Shape::Url),
        (Field::LastFrame, "last_frame", Shape::Url),
        (Field::Images, "reference_images", Shape::Urls(9)),
        (Field::Audios, "reference_audios", Shape::Urls(3)),
    ],
    auto_seconds: true,
    resubmit: Resubmit::WithKey("idempotency-key"),
    cancel: CancelBy::Post,
    result: ResultAt::Content,
    statuses: OPENAI_STATUSES,
    shares_failure_codes: true,
};

/// `OpenAI`'s own Videos API and hosted providers that follow it. Some of those keep the status
/// words of what is behind them.
pub const OPENAI: Dialect = Dialect {
    name: "openai",
    form: Form::Multipart,
    fields: &[
        (Field::Model, "model", Shape::Text),
        (Field::Prompt, "prompt", Shape::Text),
        (Field::Seconds, "seconds", Shape::Text),
        (Field::Size, "size", Shape::Text),
        (Field::FirstFrame, "input_reference", Shape::Upload),
    ],
    auto_seconds: false,
    resubmit: Resubmit::Never,
    cancel: CancelBy::Delete,
    result: ResultAt::Content,
    statuses: &[
        ("queued", Phase::Queued),
        ("in_progress", Phase::Running),
        ("running", Phase::Running),
        ("completed", Phase::Completed),
        ("succeeded", Phase::Completed),
        ("failed", Phase::Failed),
        ("expired", Phase::Failed),
        ("cancelled", Phase::Failed),
    ],
    shares_failure_codes: false,
};

/// vLLM-Omni: forms only, references by upload or `data:` URL, `DELETE` stops the engine.
pub const VLLM_OMNI: Dialect = Dialect {
    name: "vllm-omni",
    form: Form::Multipart,
    fields: &[
        (Field::Model, "model", Shape::Text),
        (Field::Prompt, "prompt", Shape::Text),
        (Field::NegativePrompt, "negative_prompt", Shape::Text),
        (Field::Seconds, "seconds", Shape::Text),
        (Field::Size, "size", Shape::Text),
        (Field::Seed, "seed", Shape::Number),
        (Field::AudioSwitch, "generate_sound", Shape::Flag),
        (Field::FirstFrame, "input_reference", Shape::Upload),
        (
            Field::Images,
            "image_reference",
            Shape::DataUrl("image_url"),
        ),
        (
            Field::Audios,
            "audio_reference",
            Shape::DataUrl("audio_url"),
        ),
    ],
    auto_seconds: false,
    resubmit: Resubmit::Freely,
    cancel: CancelBy::Delete,
    result: ResultAt::Content,
    statuses: OPENAI_STATUSES,
    shares_failure_codes: false,
};

/// SGLang-Diffusion: JSON, or a form with an uploaded first frame; with cloud storage the object
/// names the result and `content` is refused. `DELETE` forgets a task without stopping it.
pub const SGLANG: Dialect = Dialect {
    name: "sglang",
    form: Form::JsonUnlessUpload,
    fields: &[
        (Field::Model, "model", Shape::Text),
        (Field::Prompt, "prompt", Shape::Text),
        (Field::NegativePrompt, "negative_prompt", Shape::Text),
        (Field::Seconds, "seconds", Shape::Number),
        (Field::Size, "size", Shape::Text),
        (Field::Seed, "seed", Shape::Number),
        (Field::FirstFrame, "input_reference", Shape::Upload),
    ],
    auto_seconds: false,
    resubmit: Resubmit::Freely,
    cancel: CancelBy::Delete,
    result: ResultAt::UrlElseContent,
    statuses: &[
        ("queued", Phase::Queued),
        ("in_progress", Phase::Running),
        ("completed", Phase::Completed),
        ("failed", Phase::Failed),
        ("deleted", Phase::Failed),
    ],
    shares_failure_codes: false,
};

impl Dialect {
    /// Every dialect.
    pub const ALL: &'static [&'static Self] = &[&KINORA, &OPENAI, &VLLM_OMNI, &SGLANG];

    /// The dialect of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().copied().find(|one| one.name == name)
    }

    /// What a model behind this dialect can be asked for; a model card is restricted to this.
    /// Drafts and edits refer to earlier tasks, which an upstream does not have.
    pub fn features(&self) -> Features {
        let references = |field| {
            self.wire(field)
                .map_or(0, |(_, shape)| shape.references_max())
        };
        Features {
            text_to_video: true,
            first_frame: self.wire(Field::FirstFrame).is_some(),
            last_frame: self.wire(Field::LastFrame).is_some(),
            reference_images_max: references(Field::Images),
            reference_audios_max: references(Field::Audios),
            audio_output: self.wire(Field::AudioSwitch).is_some(),
            auto_duration: self.auto_seconds,
            negative_prompt: self.wire(Field::NegativePrompt).is_some(),
            draft: false,
            edit: false,
        }
    }

    /// The name and shape of `field`.
    pub(crate) fn wire(&self, field: Field) -> Option<(&'static str, Shape)> {
        let row = self.fields.iter().find(|(one, _, _)| *one == field);
        row.map(|(_, name, shape)| (*name, *shape))
    }

    pub(crate) fn phase(&self, word: &str) -> Phase {
        let row = self.statuses.iter().find(|(one, _)| *one == word);
        row.map_or(Phase::Unknown, |(_, phase)| *phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_found_by_its_name_and_names_no_field_twice() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::named(dialect.name), Some(*dialect));
            for (index, (field, name, _)) in dialect.fields.iter().enumerate() {
                let others = &dialect.fields[..index];
                assert!(others.iter().all(|one| one.0 != *field && one.1 != *name));
            }
        }
        assert_eq!(Dialect::named("esperanto"), None);
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
            Dialect::ALL
                .iter()
                .all(|one| !one.features().draft && !one.features().edit)
        );
    }
}
