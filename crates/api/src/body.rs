//! Parses request bodies, JSON or form, into fields. Limits the size before reading, and refuses
//! compressed bodies and character sets other than UTF-8.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kinora_contract::ErrorCode;
use kinora_contract::limits::BODY_BYTES_MAX;
use kinora_contract::request::json_fields;
use serde_json::{Map, Value};

use crate::buffers::Full;
use crate::error::ApiError;
use crate::header_value::check_charset;
use crate::listen::is_too_slow;
use crate::multipart;

/// Reads the fields of a JSON or form request.
pub(crate) async fn fields(
    headers: &HeaderMap,
    body: Body,
) -> Result<Map<String, Value>, ApiError> {
    let media_type = media_type(headers)?;
    check_encoding(headers)?;
    match media_type {
        MediaType::Json => {
            let body = read(headers, body, ErrorCode::InvalidJson).await?;
            Ok(json_fields(&body)?)
        }
        MediaType::Form { boundary } => {
            let body = read(headers, body, ErrorCode::MalformedBody).await?;
            multipart::fields(body, boundary).await
        }
    }
}

enum MediaType {
    Json,
    Form { boundary: String },
}

fn media_type(headers: &HeaderMap) -> Result<MediaType, ApiError> {
    let text = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    // What nearly all send.
    if text == "application/json" {
        return Ok(MediaType::Json);
    }
    let essence = text.split(';').next().unwrap_or_default().trim();
    let media_type = match essence.to_ascii_lowercase().as_str() {
        "application/json" => MediaType::Json,
        "multipart/form-data" => MediaType::Form {
            boundary: multer::parse_boundary(text).map_err(|_| {
                let message = "The multipart body has no valid 'boundary'.";
                ApiError::of(ErrorCode::MalformedBody, CONTENT_TYPE, message)
            })?,
        },
        _ => {
            let message = "Send 'Content-Type: application/json' or 'multipart/form-data'.";
            let code = ErrorCode::UnsupportedMediaType;
            return Err(ApiError::of(code, CONTENT_TYPE, message));
        }
    };
    check_charset(text, CONTENT_TYPE)?;
    Ok(media_type)
}

const CONTENT_TYPE: &str = "Content-Type";

fn check_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let is_plain = encodings.all(|value| {
        let value = value.as_bytes().trim_ascii();
        value.is_empty() || value.eq_ignore_ascii_case(b"identity")
    });
    if is_plain {
        return Ok(());
    }
    let message = "The body is compressed; send it without 'Content-Encoding'.";
    let code = ErrorCode::UnsupportedEncoding;
    Err(ApiError::of(code, "Content-Encoding", message))
}

/// Reads the whole body; `incomplete` is the error code for a body that ends early.
async fn read(headers: &HeaderMap, body: Body, incomplete: ErrorCode) -> Result<Bytes, ApiError> {
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
            None => ApiError::new(incomplete, "The body is incomplete."),
        }),
    }
}

fn too_large() -> ApiError {
    let message = format!("The body is larger than {BODY_BYTES_MAX} bytes.");
    ApiError::new(ErrorCode::RequestTooLarge, message)
}
