//! OpenAI's endpoints for edits: `POST /v1/videos/edits` with `video: {id}`, and `POST
//! /v1/videos/{id}/remix`. Both become a submit request with `edit_task_id` and are validated as
//! one. They take OpenAI's fields and those of an edit.

use serde_json::{Map, Value};

use crate::card::ModelCatalog;
use crate::error::{ErrorCode, RequestRefusal};
use crate::fields::wrong_type;
use crate::id::TaskId;
use crate::ranges::missing;
use crate::request::SubmitRequest;

/// The body of `POST /v1/videos/edits`, which also takes the other fields of an edit.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EditVideo {
    /// The change to make.
    #[cfg_attr(feature = "openapi", schema(example = "The same scene in deep snow"))]
    pub prompt: String,
    /// A completed video of this project.
    pub video: VideoRef,
    /// A model that supports edits. Default: the first one.
    pub model: Option<String>,
    /// 0.0 to 1.0 (default 0.6): how far the result may depart from the source.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
    pub edit_strength: Option<f64>,
}

/// A video by its identifier.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VideoRef {
    /// Task identifier.
    pub id: String,
}

/// The body of `POST /v1/videos/{id}/remix`, which also takes the other fields of an edit.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemixVideo {
    /// The change to make.
    #[cfg_attr(feature = "openapi", schema(example = "The same scene at night"))]
    pub prompt: String,
}

/// The request of `POST /v1/videos/edits`.
///
/// # Errors
/// As [`SubmitRequest::from_fields`]; `missing_required_parameter` without a video,
/// `unsupported_operation` when no model edits.
pub fn edits_request(
    mut sent: Map<String, Value>,
    catalog: &ModelCatalog,
) -> Result<SubmitRequest, RequestRefusal> {
    let source = extract_video_id(&mut sent)?;
    into_edit(sent, source, catalog)
}

/// The request of `POST /v1/videos/{id}/remix`.
///
/// # Errors
/// As [`edits_request`].
pub fn remix_request(
    sent: Map<String, Value>,
    source: TaskId,
    catalog: &ModelCatalog,
) -> Result<SubmitRequest, RequestRefusal> {
    into_edit(sent, Value::String(source.to_string()), catalog)
}

/// Renames `edit_task_id` in a refusal to the field that these endpoints have instead.
#[must_use]
pub fn rename_param_for_edits(refusal: RequestRefusal) -> RequestRefusal {
    match refusal.param.as_deref() {
        Some("edit_task_id") => RequestRefusal {
            param: Some("video".to_owned()),
            message: refusal.message.replace("edit_task_id", "video"),
            ..refusal
        },
        _ => refusal,
    }
}

/// Takes `video: {"id": …}`, which a form sends as the part `video[id]`.
fn extract_video_id(sent: &mut Map<String, Value>) -> Result<Value, RequestRefusal> {
    let id = match sent.remove("video") {
        Some(Value::Object(mut video)) => {
            let id = video.remove("id");
            if !video.is_empty() {
                return Err(wrong_type("video", "an object with the field 'id' alone"));
            }
            id
        }
        Some(Value::Null) | None => None,
        Some(_) => return Err(wrong_type("video", "an object with the field 'id'")),
    };
    match id {
        Some(Value::String(id)) => Ok(Value::String(id)),
        Some(_) => Err(wrong_type("video", "an object whose 'id' is a string")),
        None => Err(missing("video")),
    }
}

fn into_edit(
    mut sent: Map<String, Value>,
    source: Value,
    catalog: &ModelCatalog,
) -> Result<SubmitRequest, RequestRefusal> {
    let editor = catalog
        .cards()
        .iter()
        .find(|card| card.capabilities.features.edit);
    let Some(editor) = editor else {
        let message = "None of the served models edits videos.";
        return Err(RequestRefusal::new(
            ErrorCode::UnsupportedOperation,
            message,
        ));
    };
    // These endpoints have their own names for the source. Taking both would need a rule for two
    // that differ.
    if sent.contains_key("edit_task_id") {
        let message =
            "Unknown parameter: 'edit_task_id'. Name the source with 'video' or in the path.";
        return Err(RequestRefusal::for_param(
            ErrorCode::UnknownParameter,
            "edit_task_id",
            message,
        ));
    }
    // OpenAI's clients may send no model with an edit. The first one that edits is the default, so
    // the order of the configuration decides.
    if sent.get("model").is_none_or(Value::is_null) {
        sent.insert("model".to_owned(), Value::String(editor.id.clone()));
    }
    sent.insert("edit_task_id".to_owned(), source);
    SubmitRequest::from_fields(sent)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::card::built_in_cards;
    use crate::form::FormFields;

    fn fields(value: Value) -> Map<String, Value> {
        let Value::Object(fields) = value else {
            panic!("{value} is no object")
        };
        fields
    }

    #[test]
    fn openais_spellings_are_an_edit_on_the_model_that_edits() {
        let catalog = ModelCatalog::new(built_in_cards()).unwrap();
        let id = TaskId::from_parts(1, [2; 10]);
        let plain = SubmitRequest::from_fields(fields(
            json!({"model": "kinora-b1", "prompt": "snow", "edit_task_id": id}),
        ));
        for sent in [
            json!({"prompt": "snow", "video": {"id": id}}),
            json!({"prompt": "snow", "video": {"id": id}, "model": null}),
        ] {
            assert_eq!(edits_request(fields(sent), &catalog), plain);
        }
        let mut form = FormFields::default();
        form.push("prompt", "snow".to_owned()).unwrap();
        form.push("video[id]", id.to_string()).unwrap();
        assert_eq!(edits_request(form.into_fields(), &catalog), plain);
        let mut form = FormFields::default();
        form.push("prompt", "snow".to_owned()).unwrap();
        form.push("video", json!({"id": id}).to_string()).unwrap();
        assert_eq!(edits_request(form.into_fields(), &catalog), plain);
        let remix = remix_request(fields(json!({"prompt": "snow"})), id, &catalog);
        assert_eq!(remix, plain);
    }

    #[test]
    fn what_names_no_video_is_refused() {
        let catalog = ModelCatalog::new(built_in_cards()).unwrap();
        for (sent, code, param) in [
            (
                json!({"prompt": "x"}),
                ErrorCode::MissingRequiredParameter,
                "video",
            ),
            (
                json!({"video": null}),
                ErrorCode::MissingRequiredParameter,
                "video",
            ),
            (
                json!({"video": {}}),
                ErrorCode::MissingRequiredParameter,
                "video",
            ),
            (json!({"video": "v"}), ErrorCode::InvalidType, "video"),
            (json!({"video": {"id": 1}}), ErrorCode::InvalidType, "video"),
            (
                json!({"video": {"id": "v", "x": 1}}),
                ErrorCode::InvalidType,
                "video",
            ),
            (
                json!({"video": {"id": "v"}, "edit_task_id": "v"}),
                ErrorCode::UnknownParameter,
                "edit_task_id",
            ),
            (
                json!({"video": {"id": "v"}, "colour": 1}),
                ErrorCode::UnknownParameter,
                "colour",
            ),
        ] {
            let refusal = edits_request(fields(sent), &catalog).unwrap_err();
            assert_eq!(
                (refusal.code, refusal.param.as_deref()),
                (code, Some(param))
            );
        }
    }
}
