//! The bodies of endpoints that take a few texts: a cancel of all queued tasks, and the pause of a model. They
//! are JSON objects only, read as strictly as a submit.

use serde_json::{Map, Value};

use crate::error::{ErrorCode, RequestRefusal};
use crate::fields::{TEXT, take, unknown_field};
use crate::json::parse_object;
use crate::limits::PAUSE_REASON_CHARS_MAX;
use crate::ranges::missing;
use crate::task::Status;

/// The body of `POST /v1/videos/cancel`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelVideos {
    /// Always `queued`: the tasks that wait for their first run.
    #[cfg_attr(feature = "openapi", schema(example = "queued"))]
    pub status: String,
    /// Only tasks of this model, by its identifier or an alias. Default: of every model.
    #[cfg_attr(feature = "openapi", schema(example = "kinora-a1"))]
    pub model: Option<String>,
}

/// The body of `POST /v1/operations/pause`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseModel {
    /// The model, by its identifier or an alias. Default: all models.
    #[cfg_attr(feature = "openapi", schema(example = "kinora-a1"))]
    pub model: Option<String>,
    /// The reason, for clients and operators; up to 200 characters after trimming. Default: the reason of
    /// the pause that there is, if there is one.
    #[cfg_attr(feature = "openapi", schema(example = "new weights"))]
    pub reason: Option<String>,
}

/// The body of `POST /v1/operations/resume`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResumeModel {
    /// The model, by its identifier or an alias. Default: ends the pause of all models, and no pause of a
    /// single one.
    #[cfg_attr(feature = "openapi", schema(example = "kinora-a1"))]
    pub model: Option<String>,
}

impl CancelVideos {
    /// Parses a body.
    ///
    /// # Errors
    /// `invalid_json`, `unknown_parameter`, `invalid_type`, `missing_required_parameter`, or
    /// `invalid_value` for another status.
    pub fn from_json(body: &[u8]) -> Result<Self, RequestRefusal> {
        let mut sent = fields(body, |name| check_name(name, &["status", "model"]))?;
        let Some(status) = take(&mut sent, "status", &TEXT)? else {
            return Err(missing("status"));
        };
        // The field says in the request itself what it cancels, and leaves room for other states.
        if status != Status::Queued.as_str() {
            let message = "'status' must be 'queued'; cancel running tasks one by one.";
            return Err(invalid("status", message));
        }
        let model = take(&mut sent, "model", &TEXT)?;
        Ok(Self { status, model })
    }
}

impl PauseModel {
    /// Parses a body.
    ///
    /// # Errors
    /// `invalid_json`, `unknown_parameter`, `invalid_type`, or that of [`pause_reason`].
    pub fn from_json(body: &[u8]) -> Result<Self, RequestRefusal> {
        let mut sent = fields(body, |name| check_name(name, &["model", "reason"]))?;
        let model = take(&mut sent, "model", &TEXT)?;
        let reason = take(&mut sent, "reason", &TEXT)?;
        let reason = reason.map_or(Ok(None), |text| pause_reason(&text))?;
        Ok(Self { model, reason })
    }
}

impl ResumeModel {
    /// Parses a body.
    ///
    /// # Errors
    /// `invalid_json`, `unknown_parameter` or `invalid_type`.
    pub fn from_json(body: &[u8]) -> Result<Self, RequestRefusal> {
        let mut sent = fields(body, |name| check_name(name, &["model"]))?;
        let model = take(&mut sent, "model", &TEXT)?;
        Ok(Self { model })
    }
}

/// The reason of a pause, trimmed; `None` if it is blank.
///
/// # Errors
/// `invalid_value` if it is too long, or is not one line.
pub fn pause_reason(text: &str) -> Result<Option<String>, RequestRefusal> {
    let reason = text.trim();
    if reason.chars().count() > PAUSE_REASON_CHARS_MAX {
        let message = format!("'reason' may have {PAUSE_REASON_CHARS_MAX} characters.");
        return Err(invalid("reason", message));
    }
    // It is shown within a line of a terminal and of a page; a NUL cannot be stored in PostgreSQL.
    if reason.chars().any(char::is_control) {
        let message = "'reason' must be one line without control characters.";
        return Err(invalid("reason", message));
    }
    Ok((!reason.is_empty()).then(|| reason.to_owned()))
}

fn fields(
    body: &[u8],
    check_name: fn(&str) -> Result<(), RequestRefusal>,
) -> Result<Map<String, Value>, RequestRefusal> {
    let mut sent = parse_object(body, check_name)?;
    // As in a submit, `null` means absent.
    sent.retain(|_, value| !value.is_null());
    Ok(sent)
}

fn check_name(name: &str, known: &'static [&'static str]) -> Result<(), RequestRefusal> {
    if known.contains(&name) {
        return Ok(());
    }
    Err(unknown_field(name, known.iter().copied()))
}

fn invalid(param: &str, message: impl Into<String>) -> RequestRefusal {
    RequestRefusal::for_param(ErrorCode::InvalidValue, param, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Refused = (&'static str, ErrorCode, &'static str);

    fn check<T: std::fmt::Debug>(
        parse: fn(&[u8]) -> Result<T, RequestRefusal>,
        refused: &[Refused],
    ) {
        for (body, code, param) in refused {
            let refusal = parse(body.as_bytes()).unwrap_err();
            let found = (refusal.code, refusal.param.as_deref().unwrap_or_default());
            assert_eq!(found, (*code, *param), "{body}");
        }
    }

    #[test]
    fn a_cancel_names_the_state_and_perhaps_a_model() {
        let read = |body: &str| CancelVideos::from_json(body.as_bytes()).unwrap().model;
        assert_eq!(read(r#"{"status": "queued"}"#), None);
        assert_eq!(read(r#"{"status": "queued", "model": null}"#), None);
        let one = read(r#"{"model": "a", "status": "queued", "other": null}"#);
        assert_eq!(one.as_deref(), Some("a"));
        check(
            CancelVideos::from_json,
            &[
                ("", ErrorCode::InvalidJson, ""),
                ("[]", ErrorCode::InvalidJson, ""),
                ("{}", ErrorCode::MissingRequiredParameter, "status"),
                (
                    r#"{"status": null}"#,
                    ErrorCode::MissingRequiredParameter,
                    "status",
                ),
                (r#"{"status": 1}"#, ErrorCode::InvalidType, "status"),
                (
                    r#"{"status": "in_progress"}"#,
                    ErrorCode::InvalidValue,
                    "status",
                ),
                (
                    r#"{"status": "queued", "model": 1}"#,
                    ErrorCode::InvalidType,
                    "model",
                ),
                (
                    r#"{"status": "queued", "state": 1}"#,
                    ErrorCode::UnknownParameter,
                    "state",
                ),
            ],
        );
    }

    #[test]
    fn a_pause_is_of_one_model_or_of_all_and_may_have_a_reason() {
        let read = |body: &str| PauseModel::from_json(body.as_bytes()).unwrap();
        let all = read("{}");
        assert_eq!((all.model, all.reason), (None, None));
        let one = read(r#"{"model": "a", "reason": "  new weights \n"}"#);
        assert_eq!(one.model.as_deref(), Some("a"));
        assert_eq!(one.reason.as_deref(), Some("new weights"));
        assert_eq!(read(r#"{"reason": " "}"#).reason, None);
        check(
            PauseModel::from_json,
            &[
                (r#"{"model": 1}"#, ErrorCode::InvalidType, "model"),
                (r#"{"reason": []}"#, ErrorCode::InvalidType, "reason"),
                (r#"{"reason": "a\nb"}"#, ErrorCode::InvalidValue, "reason"),
                (
                    r#"{"reason": "a\u0000b"}"#,
                    ErrorCode::InvalidValue,
                    "reason",
                ),
                (r#"{"why": "a"}"#, ErrorCode::UnknownParameter, "why"),
            ],
        );
        check(
            ResumeModel::from_json,
            &[
                (r#"{"reason": "a"}"#, ErrorCode::UnknownParameter, "reason"),
                (r#"{"model": true}"#, ErrorCode::InvalidType, "model"),
            ],
        );
    }

    #[test]
    fn a_reason_is_bounded_at_its_limit() {
        let most = "\u{fc}".repeat(PAUSE_REASON_CHARS_MAX);
        assert_eq!(pause_reason(&most).unwrap().as_deref(), Some(&*most));
        assert_eq!(
            pause_reason(&format!(" {most} ")).unwrap(),
            Some(most.clone())
        );
        for over in [1, 1_000_000] {
            let refusal = pause_reason(&format!("{most}{}", "a".repeat(over))).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidValue);
        }
    }
}
