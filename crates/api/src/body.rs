//! Body bytes to fields, from JSON or from a form alike. Bounded before it is read; file parts are
//! refused, since references are given as URLs.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kinora_contract::limits::{BODY_BYTES_MAX, FORM_PARTS_MAX};
use kinora_contract::{ErrorCode, Form, json};
use serde_json::{Map, Value};

use crate::buffers::Full;
use crate::error::ApiError;
use crate::listen::is_too_slow;

/// Reads the fields of a request of either form.
pub(crate) async fn fields(
    headers: &HeaderMap,
    body: Body,
) -> Result<Map<String, Value>, ApiError> {
    match media_type(headers) {
        MediaType::Json => Ok(json::object(&read(headers, body).await?)?),
        MediaType::Form { boundary } => form(read(headers, body).await?, boundary).await,
        MediaType::Other => Err(ApiError::of(
            ErrorCode::UnsupportedMediaType,
            "Content-Type",
            "Send 'Content-Type: application/json' or 'multipart/form-data'.",
        )),
    }
}

enum MediaType {
    Json,
    Form { boundary: String },
    Other,
}

fn media_type(headers: &HeaderMap) -> MediaType {
    let text = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let Some(text) = text else {
        return MediaType::Other;
    };
    let essence = text
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => MediaType::Json,
        "multipart/form-data" => match multer::parse_boundary(text) {
            Ok(boundary) => MediaType::Form { boundary },
            Err(_) => MediaType::Other,
        },
        _ => MediaType::Other,
    }
}

async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    let declared = declared.and_then(|text| text.parse::<u64>().ok());
    if declared.is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64) {
        return Err(too_large());
    }
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) if is_too_slow(&*error) => Err(ApiError::too_slow()),
        Err(error) => Err(match Full::within(&*error) {
            Some(full) => full.into(),
            None => ApiError::new(
                ErrorCode::InvalidJson,
                "The body ended before it was whole.",
            ),
        }),
    }
}

fn too_large() -> ApiError {
    let message = format!("The body is larger than {BODY_BYTES_MAX} bytes.");
    ApiError::new(ErrorCode::RequestTooLarge, message)
}

async fn form(body: Bytes, boundary: String) -> Result<Map<String, Value>, ApiError> {
    let whole = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(body)]);
    let mut parts = multer::Multipart::new(whole, boundary);
    let mut form = Form::default();
    let mut count = 0;
    while let Some(part) = parts.next_field().await.map_err(|_| unreadable())? {
        count += 1;
        if count > FORM_PARTS_MAX {
            let message = format!("The form has more than {FORM_PARTS_MAX} parts.");
            return Err(ApiError::new(ErrorCode::InvalidValue, message));
        }
        let name = part.name().ok_or_else(unreadable)?.to_owned();
        if part.file_name().is_some() {
            let message = format!("'{name}' is a file; give reference material as a URL.");
            return Err(ApiError::of(
                ErrorCode::FileUploadUnsupported,
                &name,
                message,
            ));
        }
        let bytes = part.bytes().await.map_err(|_| unreadable())?;
        let text = String::from_utf8(bytes.into()).map_err(|_| {
            ApiError::of(
                ErrorCode::InvalidValue,
                &name,
                format!("'{name}' is not valid UTF-8."),
            )
        })?;
        form.push(&name, text)?;
    }
    Ok(form.into_fields())
}

fn unreadable() -> ApiError {
    ApiError::new(
        ErrorCode::InvalidJson,
        "The multipart body is malformed or incomplete.",
    )
}
