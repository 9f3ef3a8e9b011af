//! Parses request bodies, JSON or multipart form, into fields. Limits the size before reading, and
//! refuses files, compressed bodies and character sets other than UTF-8.

use std::error::Error;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kinora_contract::limits::{BODY_BYTES_MAX, FORM_PARTS_MAX};
use kinora_contract::request::json_fields;
use kinora_contract::{ErrorCode, FormFields};
use serde_json::{Map, Value};

use crate::error::{ApiError, shown};
use crate::listen::is_too_slow;
use crate::memory::LimitReached;

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
            form_fields(body, boundary).await
        }
    }
}

/// Reads the body of an endpoint that takes JSON alone.
pub(crate) async fn json(headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    let MediaType::Json = media_type(headers)? else {
        let message = "Send 'Content-Type: application/json'.";
        let code = ErrorCode::UnsupportedMediaType;
        return Err(ApiError::for_param(code, CONTENT_TYPE, message));
    };
    check_encoding(headers)?;
    read(headers, body, ErrorCode::InvalidJson).await
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
                ApiError::for_param(ErrorCode::MalformedBody, CONTENT_TYPE, message)
            })?,
        },
        _ => {
            let message = "Send 'Content-Type: application/json' or 'multipart/form-data'.";
            let code = ErrorCode::UnsupportedMediaType;
            return Err(ApiError::for_param(code, CONTENT_TYPE, message));
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
    Err(ApiError::for_param(code, "Content-Encoding", message))
}

/// The boundary of the form that a request with these headers sends; `None` for another media type.
pub(crate) fn form_boundary(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    check_encoding(headers)?;
    Ok(match media_type(headers)? {
        MediaType::Form { boundary } => Some(boundary),
        MediaType::Json => None,
    })
}

/// Reads the whole body; `incomplete` is the error code for a body that ends early.
async fn read(headers: &HeaderMap, body: Body, incomplete: ErrorCode) -> Result<Bytes, ApiError> {
    // Refused before the first byte is read, if the client says how much it is going to send; the
    // limit below holds in any case.
    if declared_length(headers).is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64) {
        return Err(too_large());
    }
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(transfer_error(&*error)
            .unwrap_or_else(|| ApiError::new(incomplete, "The body is incomplete."))),
    }
}

/// The length of the body that the client announces, if it does.
pub(crate) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    let declared = headers.get(header::CONTENT_LENGTH)?;
    declared.to_str().ok()?.parse().ok()
}

/// The refusal of a body that did not arrive for a reason of this service: it took too long, or there
/// was no memory for it.
pub(crate) fn transfer_error(error: &(dyn Error + 'static)) -> Option<ApiError> {
    if is_too_slow(error) {
        return Some(ApiError::too_slow());
    }
    LimitReached::within(error).map(ApiError::from)
}

pub(crate) fn too_large() -> ApiError {
    let message = format!("The body is larger than {BODY_BYTES_MAX} bytes.");
    ApiError::new(ErrorCode::RequestTooLarge, message)
}

/// Reads the fields of a whole body with parts separated by `boundary`.
async fn form_fields(body: Bytes, boundary: String) -> Result<Map<String, Value>, ApiError> {
    let whole = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(body)]);
    let mut parts = multer::Multipart::new(whole, boundary);
    let mut form = FormFields::default();
    let mut count = 0;
    while let Some(part) = parts.next_field().await.map_err(|_| malformed())? {
        count_part(&mut count)?;
        let name = part.name().ok_or_else(malformed)?.to_owned();
        let shown = shown(&name);
        check_part(part.headers(), &shown)?;
        let bytes = part.bytes().await.map_err(|_| malformed())?;
        form.push(&name, utf8(bytes.into(), &shown)?)?;
    }
    Ok(form.into_fields())
}

/// Counts another part of a form.
pub(crate) fn count_part(count: &mut usize) -> Result<(), ApiError> {
    *count += 1;
    if *count > FORM_PARTS_MAX {
        let message = format!("The form has more than {FORM_PARTS_MAX} parts.");
        return Err(ApiError::new(ErrorCode::InvalidValue, message));
    }
    Ok(())
}

/// The text of the part `name`.
pub(crate) fn utf8(bytes: Vec<u8>, name: &str) -> Result<String, ApiError> {
    String::from_utf8(bytes).map_err(|_| {
        let message = format!("'{name}' is not valid UTF-8.");
        ApiError::for_param(ErrorCode::InvalidValue, name, message)
    })
}

/// Whether a part is a file.
pub(crate) fn is_file(headers: &HeaderMap) -> bool {
    let disposition = parameters(&header_text(headers, &header::CONTENT_DISPOSITION));
    // `filename*` is the same name in the encoding of RFC 8187.
    disposition
        .iter()
        .any(|(name, _)| matches!(name.as_str(), "filename" | "filename*"))
}

/// Refuses a file, and text that is not plain UTF-8.
pub(crate) fn check_part(headers: &HeaderMap, name: &str) -> Result<(), ApiError> {
    if is_file(headers) {
        let message = format!("'{name}' is a file; upload it to /v1/files, then pass its `url`.");
        let code = ErrorCode::FileUploadUnsupported;
        return Err(ApiError::for_param(code, name, message));
    }
    check_charset(&header_text(headers, &header::CONTENT_TYPE), name)?;
    let transfer = header_text(headers, &TRANSFER_ENCODING);
    let plain = ["", "7bit", "8bit", "binary"];
    if plain.iter().any(|one| transfer.eq_ignore_ascii_case(one)) {
        return Ok(());
    }
    let message = format!("'{name}' has a transfer encoding; send its text as it is.");
    let code = ErrorCode::UnsupportedEncoding;
    Err(ApiError::for_param(code, name, message))
}

/// A mail header, deprecated in forms (RFC 7578, 4.7).
const TRANSFER_ENCODING: HeaderName = HeaderName::from_static("content-transfer-encoding");

/// The value of a header, empty if absent. File names may contain non-ASCII bytes.
fn header_text(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    String::from_utf8_lossy(value).trim().to_owned()
}

pub(crate) fn malformed() -> ApiError {
    let message = "The multipart body is malformed or incomplete.";
    ApiError::new(ErrorCode::MalformedBody, message)
}

/// Name (in lower case) and value (unquoted) of each parameter, in the order sent.
fn parameters(value: &str) -> Vec<(String, String)> {
    let pieces = split(value).into_iter().skip(1);
    pieces
        .filter_map(|piece| {
            let (name, value) = piece.split_once('=')?;
            Some((name.trim().to_ascii_lowercase(), unquoted(value.trim())))
        })
        .collect()
}

/// Splits at semicolons outside quotes.
fn split(value: &str) -> Vec<&str> {
    let (mut quoted, mut escaped, mut start) = (false, false, 0);
    let mut pieces = Vec::new();
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b';' if !quoted => {
                pieces.push(&value[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&value[start..]);
    pieces
}

fn unquoted(value: &str) -> String {
    let inner = value
        .strip_prefix('"')
        .and_then(|open| open.strip_suffix('"'));
    let Some(inner) = inner else {
        return value.to_owned();
    };
    let mut text = String::with_capacity(inner.len());
    let mut escaped = false;
    for char in inner.chars() {
        escaped = char == '\\' && !escaped;
        if !escaped {
            text.push(char);
        }
    }
    text
}

/// Refuses character sets other than UTF-8 and its subset ASCII; the error names `param`.
fn check_charset(content_type: &str, param: &str) -> Result<(), ApiError> {
    let known = ["utf-8", "utf8", "us-ascii", "ascii"];
    let all = parameters(content_type);
    let mut charsets = all.iter().filter(|(name, _)| name == "charset");
    if charsets.all(|(_, charset)| known.iter().any(|one| charset.eq_ignore_ascii_case(one))) {
        return Ok(());
    }
    let message = "The character set is not supported; send UTF-8.";
    let code = ErrorCode::UnsupportedEncoding;
    Err(ApiError::for_param(code, param, message))
}

#[cfg(test)]
mod multipart_tests {
    use axum::response::IntoResponse;
    use http_body_util::BodyExt;
    use kinora_contract::SubmitRequest;

    use super::*;

    #[tokio::test]
    async fn p15_a_refusal_quotes_only_the_beginning_of_a_long_name() {
        let name = "n".repeat(100_000);
        for (headers, text, code) in [
            ("; filename=\"a\"", &b"x"[..], "file_upload_unsupported"),
            (
                "\r\ncontent-type: text/plain; charset=utf-16",
                b"x",
                "unsupported_encoding",
            ),
            ("", b"\xff", "invalid_value"),
            ("", b"x", "unknown_parameter"),
        ] {
            let head = "--b\r\ncontent-disposition: form-data";
            let head = format!("{head}; name=\"{name}\"{headers}");
            let body = [head.as_bytes(), b"\r\n\r\n", text, b"\r\n--b--\r\n"].concat();
            let read = form_fields(body.into(), "b".to_owned()).await;
            let read = read.and_then(|sent| Ok(SubmitRequest::from_fields(sent)?));
            let answer = read.unwrap_err().into_response().into_body();
            let answer = answer.collect().await.unwrap().to_bytes();
            let answer = String::from_utf8(answer.to_vec()).unwrap();
            assert!(answer.contains(code), "{code}: {answer:.300}");
            assert!(answer.len() < 1_000, "{code}: {} bytes", answer.len());
        }
    }
}

#[cfg(test)]
mod header_value_tests {
    use super::*;

    #[test]
    fn quotes_hide_semicolons_and_names_have_no_case() {
        let pairs = |value| {
            let read = parameters(value).into_iter();
            read.map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
        };
        assert!(pairs("application/json").is_empty());
        assert_eq!(pairs("a/b; Charset=UTF-8"), ["charset=UTF-8"]);
        let named = r#"form-data; name="a; filename=b"; FileName*=UTF-8''c.png"#;
        assert_eq!(
            pairs(named),
            ["name=a; filename=b", "filename*=UTF-8''c.png"]
        );
        assert_eq!(pairs(r#"x; name="a\"; b\\""#), [r#"name=a"; b\"#]);
        assert_eq!(pairs("x;;=; name"), ["="]);
        assert_eq!(pairs("x; é=\"ü"), ["é=\"ü"]);
    }
}
