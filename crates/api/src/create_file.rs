//! `POST /v1/files`: receives a file, judges it as a reference, stores it and responds with it once it is
//! on disk.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::Response;
use kinora_contract::limits::{BODY_BYTES_MAX, REFERENCE_IMAGE_BYTES_MAX};
use kinora_contract::{ErrorCode, FileObject, UploadFields, UploadRequest};
use utoipa::ToSchema;

use crate::error::{ApiError, shown};
use crate::extract::WriteKey;
use crate::form_stream::{FormPart, FormStream};
use crate::refusals::OfCreateFile;
use crate::responses::json_response;
use crate::state::SharedApi;
use crate::store_file;
use crate::uploads::{ReceivedFile, too_large};
use crate::{body, idempotency};

/// The name of the file's part.
const FILE: &str = "file";

/// The form of an upload, for the document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the form, which is read as it arrives")]
pub(crate) struct CreateFile {
    /// A picture (JPEG, PNG, WebP, GIF) or a sound (WAV, MP3, M4A, FLAC, Ogg, WebM).
    #[schema(format = "binary")]
    file: String,
    /// Any text of up to 64 characters, returned unchanged. Default `user_data`.
    purpose: Option<String>,
    /// Always `created_at`; goes with the next field.
    #[schema(rename = "expires_after[anchor]")]
    expires_after_anchor: Option<String>,
    /// Lifetime in seconds, 3,600 to 2,592,000. Default: 24 hours.
    #[schema(rename = "expires_after[seconds]")]
    expires_after_seconds: Option<u64>,
}

/// Upload a file.
///
/// The file becomes a reference of tasks: pass its `url` in any field that takes one. The service
/// checks it as it checks references, and refuses it at once.
#[utoipa::path(
    post,
    path = "/v1/files",
    tag = "files",
    operation_id = "create_file",
    params(
        ("Idempotency-Key" = Option<String>, Header,
         description = "As on a submit: the same key and request give the same file while it exists.")
    ),
    request_body(content((CreateFile = "multipart/form-data"))),
    responses((status = 200, description = "The stored file.", body = FileObject), OfCreateFile),
    security(("bearer" = []))
)]
pub(crate) async fn create(
    State(api): State<SharedApi>,
    WriteKey(key): WriteKey,
    extensions: Extensions,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let idempotency = idempotency::key(&headers)?;
    let Some(boundary) = body::form_boundary(&headers)? else {
        let message = "Send the file as 'Content-Type: multipart/form-data'.";
        let code = ErrorCode::UnsupportedMediaType;
        return Err(ApiError::for_param(code, "Content-Type", message));
    };
    // Refused before the first byte is read, if the client says how much it is going to send.
    let bytes_max = REFERENCE_IMAGE_BYTES_MAX + BODY_BYTES_MAX as u64;
    if body::declared_length(&headers).is_some_and(|bytes| bytes > bytes_max) {
        return Err(too_large(FILE, REFERENCE_IMAGE_BYTES_MAX));
    }
    // It has the turn until the file is stored.
    let mut form = FormStream::new(&api, &key.key, boundary, body, &extensions);
    let (file, request) = receive(&mut form).await?;
    let project = &key.key.project;
    let stored = store_file::store(&api, project, FILE, &file, &request, idempotency).await?;
    kinora_system::crash::point("api.before_file_answer");
    let response = json_response(StatusCode::OK, &api.file_object(&stored.file));
    Ok(if stored.is_replay {
        idempotency::replayed(response)
    } else {
        response
    })
}

async fn receive(form: &mut FormStream<'_>) -> Result<(ReceivedFile, UploadRequest), ApiError> {
    let (mut file, mut fields) = (None, UploadFields::default());
    let check_file = |name: &str| {
        if name == FILE {
            return Ok(());
        }
        let shown = shown(name);
        let message = format!("'{shown}' is a file; an upload takes one, as '{FILE}'.");
        let code = ErrorCode::UnknownParameter;
        Err(ApiError::for_param(code, &shown, message))
    };
    while let Some(part) = form.next(check_file).await? {
        match part {
            FormPart::File { file: sent, .. } if file.is_none() => file = Some(sent),
            FormPart::File { .. } => {
                let message = format!("'{FILE}' was sent more than once.");
                return Err(ApiError::for_param(ErrorCode::InvalidValue, FILE, message));
            }
            // What clients send that do not know that it is a file.
            FormPart::Text { name, .. } if name == FILE => {
                let message = format!("'{FILE}' must be a file: a part with a 'filename'.");
                return Err(ApiError::for_param(ErrorCode::InvalidType, FILE, message));
            }
            FormPart::Text { name, text } => fields.push(&name, text)?,
        }
    }
    let file = file.ok_or_else(|| {
        let message = format!("Missing required parameter: '{FILE}'.");
        ApiError::for_param(ErrorCode::MissingRequiredParameter, FILE, message)
    })?;
    Ok((file, fields.into_request()?))
}
