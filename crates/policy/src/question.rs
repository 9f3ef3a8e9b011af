//! Questions in their wire format: JSON objects with the stage and the subject. The field names are
//! those of the API.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kinora_contract::{ReferenceItem, TaskId, VideoLength, VideoSpec};
use serde::{Serialize, Serializer};

/// A client's request.
#[derive(Clone, Debug, Serialize)]
pub struct QuestionSubject<'a> {
    project: &'a str,
    model: &'a str,
    prompt: &'a str,
    negative_prompt: Option<&'a str>,
    /// `null` if the engine chooses.
    seconds: Option<u32>,
    /// `null` if the size follows an image.
    size: Option<String>,
    seed: u32,
    generate_audio: bool,
    /// URLs of images and sounds, in the order of the request.
    references: Vec<&'a str>,
    draft: bool,
    draft_task_id: Option<TaskId>,
    edit_task_id: Option<TaskId>,
    metadata: &'a BTreeMap<String, String>,
}

impl<'a> QuestionSubject<'a> {
    /// The request of `project` that resulted in `spec`.
    pub fn new(
        project: &'a str,
        spec: &'a VideoSpec,
        metadata: &'a BTreeMap<String, String>,
    ) -> Self {
        let references = spec.inputs.references();
        Self {
            project,
            model: &spec.model,
            prompt: &spec.prompt,
            negative_prompt: spec.negative_prompt.as_deref(),
            seconds: match spec.seconds {
                VideoLength::Fixed(seconds) => Some(seconds),
                VideoLength::Auto => None,
            },
            size: spec.render_size().map(|size| size.to_string()),
            seed: spec.seed,
            generate_audio: spec.generate_audio,
            references: references.into_iter().map(ReferenceItem::url).collect(),
            draft: spec.draft,
            draft_task_id: spec.final_of,
            edit_task_id: spec.edit.as_ref().map(|edit| edit.task_id),
            metadata,
        }
    }
}

/// The unpublished result of a request.
#[derive(Clone, Debug, Serialize)]
pub struct ResultSummary<'a> {
    /// The task.
    pub task_id: TaskId,
    /// The engine as `name/version`.
    pub engine: &'a str,
    /// Length in seconds.
    pub duration: f64,
    /// Length of the MP4.
    pub bytes: u64,
    /// SHA-256 of the MP4, in lower-case hexadecimal.
    pub sha256: &'a str,
    /// Path of the MP4 on the worker's machine, valid until the answer arrives.
    pub path: &'a str,
    /// A frame of it, WebP; sent in base 64.
    #[serde(serialize_with = "base64")]
    pub thumbnail: &'a [u8],
    /// Up to 25 frames of it, JPEG; sent in base 64.
    #[serde(serialize_with = "base64")]
    pub spritesheet: &'a [u8],
}

fn base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

/// A complete question.
#[derive(Serialize)]
#[serde(tag = "stage", rename_all = "lowercase")]
pub(crate) enum PolicyQuestion<'a> {
    /// At a submit, before there is a task.
    Request(&'a QuestionSubject<'a>),
    /// About a result before it is published.
    Result {
        #[serde(flatten)]
        subject: &'a QuestionSubject<'a>,
        #[serde(flatten)]
        made: &'a ResultSummary<'a>,
    },
    /// By an operator who checks the settings; without a subject.
    Check,
}

impl PolicyQuestion<'_> {
    pub(crate) const fn stage(&self) -> &'static str {
        match self {
            Self::Request(_) => "request",
            Self::Result { .. } => "result",
            Self::Check => "check",
        }
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::{FrameSize, SPEC_VERSION, Size, VideoInputs};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn questions_have_the_documented_fields() {
        let spec = VideoSpec {
            version: SPEC_VERSION,
            model: "kinora-a1".to_owned(),
            prompt: "A kite".to_owned(),
            negative_prompt: Some("rain".to_owned()),
            seconds: VideoLength::Fixed(5),
            frame: FrameSize::Fixed(Size::new(1280, 720)),
            seed: 7,
            generate_audio: true,
            inputs: VideoInputs::Frames {
                first: "https://example.com/a.png".to_owned(),
                last: None,
            },
            draft: false,
            final_of: None,
            edit: None,
        };
        let metadata = [("user".to_owned(), "u1".to_owned())].into();
        let subject = QuestionSubject::new("p1", &spec, &metadata);
        let sent =
            |question: &PolicyQuestion<'_>| -> Value { serde_json::to_value(question).unwrap() };
        let mut expected = json!({
            "stage": "request", "project": "p1", "model": "kinora-a1", "prompt": "A kite",
            "negative_prompt": "rain", "seconds": 5, "size": "1280x720", "seed": 7,
            "generate_audio": true, "references": ["https://example.com/a.png"], "draft": false,
            "draft_task_id": null, "edit_task_id": null, "metadata": {"user": "u1"},
        });
        assert_eq!(sent(&PolicyQuestion::Request(&subject)), expected);
        let id = TaskId::from_parts(1, [2; 10]);
        let made = ResultSummary {
            task_id: id,
            engine: "storyboard/1",
            duration: 5.0,
            bytes: 9,
            sha256: "00",
            path: "/scratch/a.mp4",
            thumbnail: b"webp",
            spritesheet: b"jpeg",
        };
        for (name, value) in [
            ("stage", json!("result")),
            ("task_id", json!(id.to_string())),
            ("engine", json!("storyboard/1")),
            ("duration", json!(5.0)),
            ("bytes", json!(9)),
            ("sha256", json!("00")),
            ("path", json!("/scratch/a.mp4")),
            ("thumbnail", json!("d2VicA==")),
            ("spritesheet", json!("anBlZw==")),
        ] {
            expected[name] = value;
        }
        let question = PolicyQuestion::Result {
            subject: &subject,
            made: &made,
        };
        assert_eq!(sent(&question), expected);
        assert_eq!(sent(&PolicyQuestion::Check), json!({"stage": "check"}));
    }
}
