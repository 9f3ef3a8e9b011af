//! Every refusal of a request ([`ErrorCode`]), every failure of an accepted task ([`FailureCode`]) and
//! every warning on a result ([`WarningCode`]), each with its stable code. To add one, add a line to a
//! table here; HTTP status and type follow from it. Private causes never enter these types.

use std::fmt;

use serde::{Deserialize, Serialize};

// A macro instead of an enum and three matches, so that a code, its status and its family are on
// one line and `ALL` misses none: tests walk `ALL` to prove that each code is documented.
macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $status:literal, $kind:ident;)*) => {
        /// Why a request was refused. Stable: clients branch on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as sent.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// Its HTTP status.
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// Its family, sent as `type`.
            pub const fn kind(self) -> ErrorKind {
                match self { $(Self::$variant => ErrorKind::$kind,)* }
            }
        }
    };
}

error_codes! {
    /// The body is not JSON.
    InvalidJson = "invalid_json", 400, InvalidRequest;
    /// A required field is absent.
    MissingRequiredParameter = "missing_required_parameter", 400, InvalidRequest;
    /// A field has the wrong type.
    InvalidType = "invalid_type", 400, InvalidRequest;
    /// A field is out of its range or malformed.
    InvalidValue = "invalid_value", 400, InvalidRequest;
    /// A value that other models support, but not this one.
    UnsupportedValue = "unsupported_value", 400, InvalidRequest;
    /// No such field.
    UnknownParameter = "unknown_parameter", 400, InvalidRequest;
    /// A known field that this model does not support.
    UnsupportedParameter = "unsupported_parameter", 400, InvalidRequest;
    /// Fields that exclude or need each other.
    UnsupportedCombination = "unsupported_combination", 400, InvalidRequest;
    /// No such model.
    ModelNotFound = "model_not_found", 400, InvalidRequest;
    /// A route of OpenAI's that this service does not offer.
    UnsupportedOperation = "unsupported_operation", 400, InvalidRequest;
    /// Not an http or https URL in the allowed form.
    InvalidUrl = "invalid_url", 400, InvalidRequest;
    /// A form has a file where a URL is expected.
    FileUploadUnsupported = "file_upload_unsupported", 400, InvalidRequest;
    /// An uploaded file is neither a picture nor a sound.
    UnsupportedFile = "unsupported_file", 400, InvalidRequest;
    /// An uploaded image is damaged or of a format that is not supported.
    UnsupportedImage = "unsupported_image", 400, InvalidRequest;
    /// A side of an uploaded image is too short.
    ImageTooSmall = "image_too_small", 400, InvalidRequest;
    /// A side of an uploaded image is too long.
    ImageTooLarge = "image_too_large", 400, InvalidRequest;
    /// An uploaded image is too wide or too tall.
    InvalidAspectRatio = "invalid_aspect_ratio", 400, InvalidRequest;
    /// An uploaded sound is damaged or of a format that is not supported.
    UnsupportedAudio = "unsupported_audio", 400, InvalidRequest;
    /// An uploaded sound is shorter than allowed.
    AudioTooShort = "audio_too_short", 400, InvalidRequest;
    /// An uploaded sound is longer than allowed.
    AudioTooLong = "audio_too_long", 400, InvalidRequest;
    /// `draft_task_id` does not name a usable draft.
    DraftNotUsable = "draft_not_usable", 400, InvalidRequest;
    /// `edit_task_id` does not name an editable video.
    EditSourceNotUsable = "edit_source_not_usable", 400, InvalidRequest;
    /// The operator's policy does not allow this request.
    ContentPolicy = "content_policy", 400, InvalidRequest;
    /// The multipart body cannot be parsed.
    MalformedBody = "malformed_body", 400, InvalidRequest;
    /// The key is missing, malformed, unknown, revoked or expired.
    InvalidApiKey = "invalid_api_key", 401, Authentication;
    /// The key may not use this model.
    ModelNotAllowed = "model_not_allowed", 403, Permission;
    /// The key lacks the scope of this call.
    ScopeMissing = "scope_missing", 403, Permission;
    /// The key, or the service, accepts no tasks at all: waiting does not help.
    SubmitsNotAllowed = "submits_not_allowed", 403, Permission;
    /// A budget is smaller than this video costs: waiting does not help.
    BudgetTooSmall = "budget_too_small", 403, Permission;
    /// No such task, or another project's.
    VideoNotFound = "video_not_found", 404, InvalidRequest;
    /// No such file, or another project's.
    FileNotFound = "file_not_found", 404, InvalidRequest;
    /// No such route or object.
    NotFound = "not_found", 404, InvalidRequest;
    /// The route does not support this method.
    MethodNotAllowed = "method_not_allowed", 405, InvalidRequest;
    /// The body did not arrive in time; the request had no effect.
    RequestTimeout = "request_timeout", 408, InvalidRequest;
    /// The task is not completed yet.
    VideoNotReady = "video_not_ready", 409, InvalidRequest;
    /// The task failed and has no content.
    VideoFailed = "video_failed", 409, InvalidRequest;
    /// The task is finished and cannot be cancelled.
    NotCancellable = "not_cancellable", 409, InvalidRequest;
    /// The task and its content are past their retention.
    VideoExpired = "video_expired", 410, InvalidRequest;
    /// The content does not match `If-Match`.
    PreconditionFailed = "precondition_failed", 412, InvalidRequest;
    /// The body exceeds its limit.
    RequestTooLarge = "request_too_large", 413, InvalidRequest;
    /// The request line exceeds its limit.
    UriTooLong = "uri_too_long", 414, InvalidRequest;
    /// Neither JSON nor a form.
    UnsupportedMediaType = "unsupported_media_type", 415, InvalidRequest;
    /// The body is compressed, or its text is not UTF-8.
    UnsupportedEncoding = "unsupported_encoding", 415, InvalidRequest;
    /// The requested range of bytes does not exist.
    RangeNotSatisfiable = "range_not_satisfiable", 416, InvalidRequest;
    /// The idempotency key was used with another request.
    IdempotencyKeyReused = "idempotency_key_reused", 422, InvalidRequest;
    /// The key has sent too many requests.
    RateLimitExceeded = "rate_limit_exceeded", 429, RateLimit;
    /// Too many unfinished tasks.
    QueueFull = "queue_full", 429, RateLimit;
    /// The quota for stored data is used up.
    StorageQuotaExceeded = "storage_quota_exceeded", 429, RateLimit;
    /// The budget of the key or its project does not have the amount left.
    BudgetExceeded = "budget_exceeded", 429, RateLimit;
    /// The headers exceed their limit.
    HeadersTooLarge = "headers_too_large", 431, InvalidRequest;
    /// An internal error of the service.
    InternalError = "internal_error", 500, Server;
    /// A file of a completed task was lost or damaged before it expired.
    ContentLost = "content_lost", 500, Server;
    /// The store cannot be read or written at the moment.
    StorageUnavailable = "storage_unavailable", 503, Server;
    /// There is no room for another connection.
    Overloaded = "overloaded", 503, Server;
    /// The operator's policy service does not answer, and requests need its answer.
    PolicyUnavailable = "policy_unavailable", 503, Server;
    /// The process is stopping.
    ShuttingDown = "shutting_down", 503, Server;
}

/// The family of a refusal, sent as `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is wrong.
    InvalidRequest,
    /// The key is wrong.
    Authentication,
    /// The key lacks a permission.
    Permission,
    /// Too many requests, or too much data.
    RateLimit,
    /// The service failed.
    Server,
}

impl ErrorCode {
    /// The code with this text.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == code)
    }
}

impl ErrorKind {
    /// The value sent as `type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::RateLimit => "rate_limit_error",
            Self::Server => "server_error",
        }
    }
}

/// A refused request; contains only what the client may see.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct RequestRefusal {
    /// The stable code.
    pub code: ErrorCode,
    /// What is wrong and what to do.
    pub message: String,
    /// The field or header at fault.
    pub param: Option<String>,
}

impl RequestRefusal {
    /// A refusal that no single field causes.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            param: None,
        }
    }

    /// A refusal caused by `param`.
    pub fn for_param(
        code: ErrorCode,
        param: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            message: message.into(),
            param: Some(param.into()),
        }
    }

    /// The response body.
    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            error: ErrorDetail {
                message: self.message.clone(),
                kind: self.code.kind().as_str(),
                param: self.param.clone(),
                code: self.code.as_str(),
            },
        }
    }
}

/// The body of every refusal.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

/// The error.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorDetail {
    /// A sentence for people.
    pub message: String,
    /// The family of the code.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The field or header at fault, if there is one.
    pub param: Option<String>,
    /// The stable code.
    pub code: &'static str,
}

macro_rules! failure_codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $sentence:literal;)*) => {
        /// Why an accepted task failed. Stable: clients branch on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FailureCode { $($(#[$doc])* $variant,)* }

        impl FailureCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as sent.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The public sentence, unless a failure has its own.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)* }
            }
        }
    };
}

failure_codes! {
    /// A reference could not be fetched.
    ReferenceUnreachable = "reference_unreachable", "A reference could not be fetched from its URL.";
    /// A reference is at an address that the service does not fetch from.
    ReferenceForbiddenAddress = "reference_forbidden_address", "A reference is at an address that is not allowed.";
    /// A reference exceeds its size in bytes.
    ReferenceTooLarge = "reference_too_large", "A reference is larger than allowed.";
    /// A reference did not arrive in time.
    ReferenceTimeout = "reference_timeout", "A reference did not arrive in time.";
    /// The image format is not supported.
    UnsupportedImage = "unsupported_image", "A reference image is not a readable JPEG, PNG, WebP or GIF.";
    /// A side is too short.
    ImageTooSmall = "image_too_small", "A reference image is smaller than allowed.";
    /// A side is too long.
    ImageTooLarge = "image_too_large", "A reference image is larger than allowed.";
    /// Too wide or too tall.
    InvalidAspectRatio = "invalid_aspect_ratio", "A reference image is too wide or too tall.";
    /// The audio format is not supported.
    UnsupportedAudio = "unsupported_audio", "A reference audio is not a readable WAV, MP3, M4A, FLAC, Ogg or WebM.";
    /// Shorter than allowed.
    AudioTooShort = "audio_too_short", "A reference audio is shorter than allowed.";
    /// Longer than allowed, alone or together.
    AudioTooLong = "audio_too_long", "The reference audio is longer than allowed.";
    /// The engine failed.
    GenerationFailed = "generation_failed", "The engine could not generate this video.";
    /// The engine ran out of memory.
    OutOfMemory = "out_of_memory", "The engine ran out of memory; a smaller size or fewer seconds may work.";
    /// The engine made no progress.
    GenerationTimeout = "generation_timeout", "The engine made no progress in time.";
    /// The task waited too long.
    TaskExpired = "task_expired", "The task waited too long in the queue.";
    /// The task's workers failed too often.
    WorkerLost = "worker_lost", "This task's workers failed too often.";
    /// The result could not be stored.
    StorageFailed = "storage_failed", "The result could not be stored.";
    /// The operator's policy does not allow the result.
    ContentPolicy = "content_policy", "The result is against the policy of this service.";
    /// The operator's policy service did not answer about the result.
    PolicyUnavailable = "policy_unavailable", "The result could not be checked against the policy of this service.";
    /// The client cancelled.
    Cancelled = "cancelled", "The task was cancelled.";
}

impl FailureCode {
    /// The code with this text.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == code)
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a task failed, as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Failure {
    /// A stable code, such as `reference_unreachable`.
    pub code: String,
    /// The public sentence, also sent as `fail_reason`.
    pub message: String,
    /// The field of the request that failed, with the index of an item: `reference_images[1]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
}

impl Failure {
    /// A failure with a more specific sentence than its code's.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            code: code.as_str().to_owned(),
            message: message.into(),
            param: None,
        }
    }

    /// The same failure for the field `param`, named at the start of the message.
    #[must_use]
    pub fn with_param(self, param: impl Into<String>) -> Self {
        let param = param.into();
        Self {
            // Clients of `fail_reason` see only the sentence, so the field is named there as well.
            message: format!("{param}: {}", self.message),
            param: Some(param),
            ..self
        }
    }
}

impl From<FailureCode> for Failure {
    fn from(code: FailureCode) -> Self {
        Self::new(code, code.sentence())
    }
}

/// Why a result differs from the request. Stable: clients branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningCode {
    /// The engine ignores the seed.
    SeedIgnored,
    /// Some words of the prompt were not drawn.
    NotDrawn,
    /// Some words of the prompt were drawn as something near.
    Approximated,
    /// Some styles, qualities or relations of the prompt were not drawn.
    StyleNotDrawn,
    /// Captions omit characters that no font has.
    CharactersNotSet,
    /// The colour profile of a picture was not applied.
    ColourProfileIgnored,
    /// The video has another size than requested.
    SizeDiffers,
    /// The video has another length than requested.
    LengthDiffers,
    /// The video has sound although none was requested, or lacks it.
    SoundDiffers,
}

impl WarningCode {
    /// Every code.
    pub const ALL: &'static [Self] = &[
        Self::SeedIgnored,
        Self::NotDrawn,
        Self::Approximated,
        Self::StyleNotDrawn,
        Self::CharactersNotSet,
        Self::ColourProfileIgnored,
        Self::SizeDiffers,
        Self::LengthDiffers,
        Self::SoundDiffers,
    ];

    /// The code as sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SeedIgnored => "seed_ignored",
            Self::NotDrawn => "not_drawn",
            Self::Approximated => "approximated",
            Self::StyleNotDrawn => "style_not_drawn",
            Self::CharactersNotSet => "characters_not_set",
            Self::ColourProfileIgnored => "colour_profile_ignored",
            Self::SizeDiffers => "size_differs",
            Self::LengthDiffers => "length_differs",
            Self::SoundDiffers => "sound_differs",
        }
    }

    /// The public sentence, unless a warning has its own.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::SeedIgnored => {
                "The engine takes no seed: the same request may give another video."
            }
            Self::NotDrawn => "The engine drew nothing for some words of the prompt.",
            Self::Approximated => "The engine drew something near for some words of the prompt.",
            Self::StyleNotDrawn => {
                "The engine does not draw some styles, qualities or relations of the prompt."
            }
            Self::CharactersNotSet => {
                "Captions leave out characters of the prompt that no font here has."
            }
            Self::ColourProfileIgnored => {
                "The colour profile of a picture cannot be converted: its colours may look different."
            }
            Self::SizeDiffers => "The video has another size than requested.",
            Self::LengthDiffers => "The video has another length than requested.",
            Self::SoundDiffers => "The video's sound is not as requested.",
        }
    }
}

/// A part of the request that the engine ignored, as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Warning {
    /// A stable code, such as `seed_ignored`.
    #[cfg_attr(feature = "openapi", schema(example = "seed_ignored"))]
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

impl Warning {
    /// A warning with a more specific sentence than its code's.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self {
            code: code.as_str().to_owned(),
            message: message.into(),
        }
    }
}

impl From<WarningCode> for Warning {
    fn from(code: WarningCode) -> Self {
        Self::new(code, code.sentence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_statuses_fit_their_family() {
        for (index, code) in ErrorCode::ALL.iter().enumerate() {
            assert!(
                ErrorCode::ALL[..index]
                    .iter()
                    .all(|one| one.as_str() != code.as_str())
            );
            let server = code.http_status() >= 500;
            assert_eq!(server, code.kind() == ErrorKind::Server, "{code:?}");
        }
    }

    #[test]
    fn a_failure_names_its_field_and_one_without_is_stored_as_before() {
        let plain = Failure::from(FailureCode::StorageFailed);
        let stored = r#"{"code":"storage_failed","message":"The result could not be stored."}"#;
        assert_eq!(serde_json::to_string(&plain).unwrap(), stored);
        assert_eq!(serde_json::from_str::<Failure>(stored).unwrap(), plain);
        let failure = Failure::new(
            FailureCode::ReferenceUnreachable,
            "the server answered 404.",
        );
        let failure = failure.with_param("reference_images[1]");
        assert_eq!(failure.param.as_deref(), Some("reference_images[1]"));
        let message = "reference_images[1]: the server answered 404.";
        assert_eq!(failure.message, message);
        let text = serde_json::to_string(&failure).unwrap();
        assert_eq!(serde_json::from_str::<Failure>(&text).unwrap(), failure);
    }

    #[test]
    fn a_failure_code_is_found_by_its_text() {
        for code in FailureCode::ALL {
            assert_eq!(FailureCode::from_code(code.as_str()), Some(*code));
        }
        assert_eq!(FailureCode::from_code("nonsense"), None);
    }
}
