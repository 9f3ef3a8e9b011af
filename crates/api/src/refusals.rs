//! The error codes that each endpoint may return. The document lists them per status.

use std::collections::BTreeMap;

use kinora_contract::ErrorCode::{self, *};
use utoipa::IntoResponses;
use utoipa::openapi::response::Response;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

/// Every endpoint: refusals of the listener and internal errors.
const ANY: &[ErrorCode] = &[
    InvalidValue,
    UriTooLong,
    HeadersTooLarge,
    RateLimitExceeded,
    InternalError,
    Overloaded,
];
/// Every endpoint that needs a key.
const KEY: &[ErrorCode] = &[InvalidApiKey, ScopeMissing, StorageUnavailable];
/// Every endpoint that reads JSON.
const JSON: &[ErrorCode] = &[
    InvalidJson,
    InvalidType,
    UnknownParameter,
    RequestTimeout,
    RequestTooLarge,
    UnsupportedMediaType,
    UnsupportedEncoding,
];
/// Every endpoint that also reads forms.
const FORM: &[ErrorCode] = &[MalformedBody, FileUploadUnsupported];
/// Every endpoint that takes a file.
const FILE: &[ErrorCode] = &[
    UnsupportedFile,
    UnsupportedImage,
    ImageTooSmall,
    ImageTooLarge,
    InvalidAspectRatio,
    UnsupportedAudio,
    AudioTooShort,
    AudioTooLong,
];
/// Every endpoint that creates a task.
const TASK: &[ErrorCode] = &[
    MissingRequiredParameter,
    UnsupportedValue,
    UnsupportedParameter,
    UnsupportedCombination,
    ModelNotFound,
    InvalidUrl,
    DraftNotUsable,
    EditSourceNotUsable,
    ModelNotAllowed,
    SubmitsNotAllowed,
    VideoExpired,
    IdempotencyKeyReused,
    QueueFull,
    StorageQuotaExceeded,
    BudgetExceeded,
    BudgetTooSmall,
    ContentPolicy,
    PolicyUnavailable,
    ShuttingDown,
];

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $($set:expr),*;)*) => {
        $(
            $(#[$doc])*
            pub(crate) struct $name;

            impl $name {
                const SETS: &[&[ErrorCode]] = &[$($set),*];
            }

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    responses(Self::SETS)
                }
            }
        )*

        /// The sets of every endpoint.
        #[cfg(test)]
        const ALL: &[&[&[ErrorCode]]] = &[$($name::SETS),*];
    };
}

refusals! {
    /// `POST /v1/videos`.
    OfSubmit = ANY, KEY, JSON, FORM, TASK, FILE;
    /// `POST /v1/videos/edits`.
    OfEdits = ANY, KEY, JSON, FORM, TASK, &[UnsupportedImage, UnsupportedOperation];
    /// `POST /v1/videos/{id}/remix`.
    OfRemix = ANY, KEY, JSON, FORM, TASK, &[UnsupportedImage, UnsupportedOperation, VideoNotFound];
    /// `GET /v1/videos`.
    OfList = ANY, KEY, &[UnknownParameter];
    /// `GET /v1/videos/{id}`.
    OfRead = ANY, KEY, &[VideoNotFound, VideoExpired];
    /// `GET /v1/videos/events`.
    OfEvents = ANY, KEY;
    /// `GET /v1/videos/{id}/events`.
    OfTaskEvents = ANY, KEY, &[VideoNotFound, VideoExpired];
    /// `DELETE /v1/videos/{id}`.
    OfDelete = ANY, KEY, &[VideoNotFound];
    /// `POST /v1/videos/{id}/cancel`.
    OfCancel = ANY, KEY, &[VideoNotFound, VideoExpired, NotCancellable];
    /// `POST /v1/videos/cancel`.
    OfCancelQueued = ANY, KEY, JSON, &[MissingRequiredParameter, ModelNotFound];
    /// `GET /v1/videos/{id}/content`.
    OfContent = ANY, KEY, &[
        UnknownParameter, VideoNotFound, NotFound, VideoNotReady, VideoFailed, VideoExpired,
        PreconditionFailed, RangeNotSatisfiable, ContentLost,
    ];
    /// `POST /v1/files`.
    OfCreateFile = ANY, KEY, FILE, &[
        MalformedBody, MissingRequiredParameter, InvalidType, UnknownParameter, RequestTimeout, RequestTooLarge,
        UnsupportedMediaType, UnsupportedEncoding, IdempotencyKeyReused, StorageQuotaExceeded, SubmitsNotAllowed,
        ShuttingDown,
    ];
    /// `GET /v1/files`.
    OfFiles = ANY, KEY, &[UnknownParameter];
    /// `GET /v1/files/{id}`.
    OfFile = ANY, KEY, &[FileNotFound];
    /// `DELETE /v1/files/{id}`.
    OfDeleteFile = ANY, KEY, &[FileNotFound];
    /// `GET /v1/files/{id}/content`.
    OfFileContent = ANY, KEY, &[
        UnknownParameter, FileNotFound, PreconditionFailed, RangeNotSatisfiable, ContentLost,
    ];
    /// `GET /v1/models`.
    OfModels = ANY, KEY;
    /// `GET /v1/models/{id}`.
    OfModel = ANY, KEY, &[NotFound];
    /// `GET /v1/usage`.
    OfUsage = ANY, KEY, &[UnknownParameter];
    /// `GET /v1/operations`.
    OfOperations = ANY, KEY;
    /// `POST /v1/operations/pause` and `POST /v1/operations/resume`.
    OfPause = ANY, KEY, JSON, &[ModelNotFound];
    /// `GET /healthz`.
    OfAlive = ANY;
    /// `GET /readyz`.
    OfReady = ANY, &[StorageUnavailable, ShuttingDown];
}

fn responses(sets: &[&[ErrorCode]]) -> BTreeMap<String, RefOr<Response>> {
    let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in sets.iter().copied().flatten() {
        let status = codes.entry(code.http_status()).or_default();
        status.push(code.as_str());
    }
    let body = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("ErrorBody")))
        .build();
    codes
        .into_iter()
        .map(|(status, codes)| {
            let response = ResponseBuilder::new()
                .description(format!("Refused: `{}`.", codes.join("`, `")))
                .content("application/json", body.clone())
                .build();
            (status.to_string(), RefOr::T(response))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_described_where_it_can_be_given_and_once() {
        // Returned for a method that no endpoint describes.
        let undescribed = [MethodNotAllowed];
        for code in ErrorCode::ALL {
            let given = |sets: &&&[&[ErrorCode]]| {
                let times = sets.iter().copied().flatten().filter(|one| *one == code);
                let times = times.count();
                assert!(times < 2, "{code:?} twice");
                times == 1
            };
            let endpoints = ALL.iter().filter(given).count();
            assert_eq!(endpoints == 0, undescribed.contains(code), "{code:?}");
        }
    }
}
