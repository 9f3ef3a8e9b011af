//! Parses a multipart body into fields. Every part is text; files are refused, since references are
//! given as URLs.

use axum::http::{HeaderMap, HeaderName, header};
use bytes::Bytes;
use kinora_contract::limits::FORM_PARTS_MAX;
use kinora_contract::{ErrorCode, Form};
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::header_value::{check_charset, parameters};

/// Maximum length quoted of a part's name, which may be nearly as long as the body.
const NAME_CHARS_SHOWN: usize = 64;

/// Reads the fields of a whole body with parts separated by `boundary`.
pub(crate) async fn fields(body: Bytes, boundary: String) -> Result<Map<String, Value>, ApiError> {
    let whole = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(body)]);
    let mut parts = multer::Multipart::new(whole, boundary);
    let mut form = Form::default();
    let mut count = 0;
    while let Some(part) = parts.next_field().await.map_err(|_| malformed())? {
        count += 1;
        if count > FORM_PARTS_MAX {
            let message = format!("The form has more than {FORM_PARTS_MAX} parts.");
            return Err(ApiError::new(ErrorCode::InvalidValue, message));
        }
        let name = part.name().ok_or_else(malformed)?.to_owned();
        let shown: String = name.chars().take(NAME_CHARS_SHOWN).collect();
        check_part(part.headers(), &shown)?;
        let bytes = part.bytes().await.map_err(|_| malformed())?;
        let text = String::from_utf8(bytes.into()).map_err(|_| {
            let message = format!("'{shown}' is not valid UTF-8.");
            ApiError::of(ErrorCode::InvalidValue, &shown, message)
        })?;
        form.push(&name, text)?;
    }
    Ok(form.into_fields())
}

/// Refuses a file, and text that is not plain UTF-8.
fn check_part(headers: &HeaderMap, name: &str) -> Result<(), ApiError> {
    let disposition = parameters(&text_of(headers, &header::CONTENT_DISPOSITION));
    // `filename*` is the same name in the encoding of RFC 8187.
    if disposition
        .iter()
        .any(|(name, _)| matches!(name.as_str(), "filename" | "filename*"))
    {
        let message = format!("'{name}' is a file; give reference material as a URL.");
        let code = ErrorCode::FileUploadUnsupported;
        return Err(ApiError::of(code, name, message));
    }
    check_charset(&text_of(headers, &header::CONTENT_TYPE), name)?;
    let transfer = text_of(headers, &TRANSFER_ENCODING);
    let plain = ["", "7bit", "8bit", "binary"];
    if plain.iter().any(|one| transfer.eq_ignore_ascii_case(one)) {
        return Ok(());
    }
    let message = format!("'{name}' has a transfer encoding; send its text as it is.");
    Err(ApiError::of(ErrorCode::UnsupportedEncoding, name, message))
}

/// A mail header, deprecated in forms (RFC 7578, 4.7).
const TRANSFER_ENCODING: HeaderName = HeaderName::from_static("content-transfer-encoding");

/// The value of a header, empty if absent. File names may contain non-ASCII bytes.
fn text_of(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    String::from_utf8_lossy(value).trim().to_owned()
}

fn malformed() -> ApiError {
    let message = "The multipart body is malformed or incomplete.";
    ApiError::new(ErrorCode::MalformedBody, message)
}

#[cfg(test)]
mod tests {
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
            let read = fields(body.into(), "b".to_owned()).await;
            let read = read.and_then(|sent| Ok(SubmitRequest::from_fields(sent)?));
            let answer = read.unwrap_err().into_response().into_body();
            let answer = answer.collect().await.unwrap().to_bytes();
            let answer = String::from_utf8(answer.to_vec()).unwrap();
            assert!(answer.contains(code), "{code}: {answer:.300}");
            assert!(answer.len() < 1_000, "{code}: {} bytes", answer.len());
        }
    }
}
