//! The submit request as sent. [`SubmitRequest::from_json`] checks syntax, types and field names,
//! nothing else; a form ([`crate::form`]) takes the same way. Judgement is [`mod@crate::validate`]'s.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::{ErrorCode, Refusal};
use crate::fields;
pub use crate::fields::SecondsField;
use crate::hints::unknown_field;
use crate::json;

/// A submit request as sent, each field of the right type and nothing judged yet.
/// `null` means absent. Unknown fields are refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SubmitRequest {
    /// The model, by identifier or alias. Required.
    #[cfg_attr(feature = "openapi", schema(required, example = "kinora-a1"))]
    pub model: Option<String>,
    /// What to show; 1 to 5,000 characters after trimming. Required, except with `draft_task_id`.
    #[cfg_attr(
        feature = "openapi",
        schema(
            example = "A red balloon drifts over the sea at dawn",
            max_length = 5000
        )
    )]
    pub prompt: Option<String>,
    /// What to avoid; up to 2,500 characters.
    #[cfg_attr(feature = "openapi", schema(max_length = 2500))]
    pub negative_prompt: Option<String>,
    /// Length in seconds, 2 to 15, as a number or a numeric string; `"auto"` (or -1) where the
    /// model chooses itself. Default 5.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub seconds: Option<SecondsField>,
    /// One of the model's listed sizes, `"WIDTHxHEIGHT"`; excludes `resolution` and `aspect_ratio`.
    #[cfg_attr(feature = "openapi", schema(example = "1280x720"))]
    pub size: Option<String>,
    /// `480p`, `720p` (default) or `1080p`.
    #[cfg_attr(feature = "openapi", schema(example = "720p"))]
    pub resolution: Option<String>,
    /// `16:9` (default), `9:16`, `1:1`, `4:3`, `3:4`, `21:9`, or `adaptive` to follow the first image.
    #[cfg_attr(feature = "openapi", schema(example = "16:9"))]
    pub aspect_ratio: Option<String>,
    /// OpenAI's name for `first_frame`: a URL, or an object with `image_url`.
    pub input_reference: Option<String>,
    /// URL of the image that the video starts with.
    pub first_frame: Option<String>,
    /// URL of the image that the video ends with; needs `first_frame`.
    pub last_frame: Option<String>,
    /// URLs of images to show; excludes `first_frame` and `last_frame`.
    pub reference_images: Option<Vec<String>>,
    /// URLs of sound to hear; needs at least one reference image.
    pub reference_audios: Option<Vec<String>>,
    /// Whether the result has a sound track.
    pub generate_audio: Option<bool>,
    /// 0 to 4,294,967,295, or -1 (default) for a random one.
    #[cfg_attr(feature = "openapi", schema(minimum = -1, maximum = 4_294_967_295_i64))]
    pub seed: Option<i64>,
    /// A quick 480p preview.
    pub draft: Option<bool>,
    /// A completed draft to render as a final.
    pub draft_task_id: Option<String>,
    /// A completed task whose video is to be edited.
    pub edit_task_id: Option<String>,
    /// 0.0 to 1.0 (default 0.6): how far an edit may leave its source.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
    pub edit_strength: Option<f64>,
    /// Up to 16 pairs of strings, given back unchanged.
    pub metadata: Option<BTreeMap<String, String>>,
    /// The first field present that no model takes, by name; such a request is refused by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub never_supported: Option<&'static str>,
}

impl SubmitRequest {
    /// Reads a JSON body.
    ///
    /// # Errors
    /// `invalid_json`, `invalid_type` or `unknown_parameter`, in this order.
    pub fn from_json(body: &[u8]) -> Result<Self, Refusal> {
        Self::from_fields(json::object(body)?)
    }

    /// Reads fields that are JSON values already.
    ///
    /// # Errors
    /// `invalid_type` or `unknown_parameter`, in this order.
    pub fn from_fields(mut sent: Map<String, Value>) -> Result<Self, Refusal> {
        sent.retain(|_, value| !value.is_null());
        let request = Self {
            model: fields::text(&sent, "model")?,
            prompt: fields::text(&sent, "prompt")?,
            negative_prompt: fields::text(&sent, "negative_prompt")?,
            seconds: fields::seconds(&sent)?,
            size: fields::text(&sent, "size")?,
            resolution: fields::text(&sent, "resolution")?,
            aspect_ratio: fields::text(&sent, "aspect_ratio")?,
            input_reference: fields::input_reference(&sent)?,
            first_frame: fields::text(&sent, "first_frame")?,
            last_frame: fields::text(&sent, "last_frame")?,
            reference_images: fields::texts(&sent, "reference_images")?,
            reference_audios: fields::texts(&sent, "reference_audios")?,
            generate_audio: fields::flag(&sent, "generate_audio")?,
            seed: fields::integer(&sent, "seed")?,
            draft: fields::flag(&sent, "draft")?,
            draft_task_id: fields::text(&sent, "draft_task_id")?,
            edit_task_id: fields::text(&sent, "edit_task_id")?,
            edit_strength: fields::number(&sent, "edit_strength")?,
            metadata: fields::pairs(&sent, "metadata")?,
            never_supported: fields::NEVER_SUPPORTED
                .iter()
                .copied()
                .find(|name| sent.contains_key(*name)),
        };
        // The least by name, so that the answer does not depend on how the map is ordered.
        match sent.keys().filter(|name| !fields::is_known(name)).min() {
            Some(name) => Err(unknown_field(name)),
            None => Ok(request),
        }
    }

    /// SHA-256 of the request in a normal form: the same for the same fields, whether they came
    /// as JSON or as a form, in whatever order.
    ///
    /// # Errors
    /// `invalid_value` when a field cannot be written down, which no parsed request shows.
    pub fn fingerprint(&self) -> Result<[u8; 32], Refusal> {
        let normal = serde_json::to_vec(self)
            .map_err(|_| Refusal::new(ErrorCode::InvalidValue, "the request cannot be written"))?;
        Ok(Sha256::digest(normal).into())
    }
}
