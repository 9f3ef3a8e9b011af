//! Sends a stored file, a result or an uploaded one: whole, in ranges, not again when known, or by a
//! redirect to the blob store. It decides nothing about who may read it.

use std::ops::Range;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kinora_blobs::{BlobError, ByteStream, DirectLink};
use kinora_contract::{ErrorCode, StoredFile};

use crate::conditional::{ByteRange, is_known, names, stretch};
use crate::error::ApiError;
use crate::responses::MEDIA_POLICY;
use crate::state::Api;

/// `Cache-Control` for stored files, which never change.
const CACHE_CONTROL: &str = "private, max-age=3600";

/// A stored file, and how to send it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileContent<'a> {
    pub(crate) file: &'a StoredFile,
    /// `Content-Type`.
    pub(crate) media_type: &'a str,
    /// `Content-Disposition`.
    pub(crate) disposition: &'a str,
    /// When it expires; a redirect is not valid for longer.
    pub(crate) expires_at_ms: u64,
}

/// Why a file was not sent.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The file is missing, or has this other length.
    Lost(Option<u64>),
    Refused(ApiError),
}

impl From<ApiError> for SendError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

/// The answer to a request for `content`.
pub(crate) async fn send(
    api: &Api,
    content: FileContent<'_>,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, SendError> {
    let file = content.file;
    let etag = format!("\"{}\"", file.sha256);
    if is_known(headers, &etag)? {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        insert_text(response.headers_mut(), header::ETAG, &etag);
        keepable(response.headers_mut());
        return Ok(response);
    }
    let range = headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok());
    // A client that holds an older file gets the whole new one.
    let stale = headers.contains_key(header::IF_RANGE) && !names(headers, &header::IF_RANGE, &etag);
    let (status, part) = match stretch(range.filter(|_| !stale), file.bytes) {
        ByteRange::Whole => (StatusCode::OK, 0..file.bytes),
        ByteRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        ByteRange::Unsatisfiable => return Ok(unsatisfiable(file.bytes)),
    };
    // Before the headers: once a length is announced, a missing file can only end the connection.
    check_present(api, file).await?;
    let body = if method == Method::HEAD {
        Body::empty()
    } else if let Some(response) = redirect(api, content, headers).await? {
        return Ok(response);
    } else {
        Body::from_stream(open(api, file, part.clone()).await?)
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let out = response.headers_mut();
    insert_text(out, header::CONTENT_TYPE, content.media_type);
    out.insert(
        header::CONTENT_LENGTH,
        HeaderValue::from(part.end - part.start),
    );
    out.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    keepable(out);
    insert_text(out, header::CONTENT_DISPOSITION, content.disposition);
    insert_text(out, header::ETAG, &etag);
    if status == StatusCode::PARTIAL_CONTENT {
        let text = format!("bytes {}-{}/{}", part.start, part.end - 1, file.bytes);
        insert_text(out, header::CONTENT_RANGE, &text);
    }
    Ok(response)
}

/// Refuses a file that is missing or has another length than it had.
async fn check_present(api: &Api, file: &StoredFile) -> Result<(), SendError> {
    let found = api.blobs.head(&file.key).await;
    let found = found.map_err(ApiError::storage)?;
    if found == Some(file.bytes) {
        Ok(())
    } else {
        Err(SendError::Lost(found))
    }
}

/// Opens `part` of a file.
async fn open(api: &Api, file: &StoredFile, part: Range<u64>) -> Result<ByteStream, SendError> {
    match api.blobs.read(&file.key, part).await {
        Ok(stream) => Ok(stream),
        Err(BlobError::NotFound(_)) => Err(SendError::Lost(None)),
        Err(error) => Err(ApiError::storage(error).into()),
    }
}

/// A stored file never changes, so clients may cache it; browsers may play it.
fn keepable(headers: &mut HeaderMap) {
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static(CACHE_CONTROL),
    );
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(MEDIA_POLICY),
    );
}

fn unsatisfiable(length: u64) -> Response {
    let message = format!("The range is outside the file, which has {length} bytes.");
    let error = ApiError::for_param(ErrorCode::RangeNotSatisfiable, "Range", message);
    let mut response = error.into_response();
    insert_text(
        response.headers_mut(),
        header::CONTENT_RANGE,
        &format!("bytes */{length}"),
    );
    response
}

fn insert_text(headers: &mut HeaderMap, name: header::HeaderName, text: &str) {
    // Ids, media types, hexadecimal digits and numbers are always valid header text.
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// Lifetime of the store's URL; shorter if the file expires earlier.
const TTL_SECONDS_MAX: u64 = 300;
/// The store uses other entity tags than we do: with ours, these conditions would fail or return
/// the whole file.
const CONDITIONS: [HeaderName; 3] = [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_RANGE];

/// The redirect to the file in the store; `None` if the service must send the file itself.
async fn redirect(
    api: &Api,
    content: FileContent<'_>,
    headers: &HeaderMap,
) -> Result<Option<Response>, ApiError> {
    let has_condition = CONDITIONS.iter().any(|name| headers.contains_key(name));
    if !api.settings.redirects || has_condition {
        return Ok(None);
    }
    let left = content.expires_at_ms.saturating_sub(api.clock.now_ms()) / 1000;
    let link = DirectLink {
        ttl: Duration::from_secs(left.clamp(1, TTL_SECONDS_MAX)),
        media_type: content.media_type,
        disposition: content.disposition,
        cache_control: CACHE_CONTROL,
    };
    let signed = api.blobs.direct_url(&content.file.key, &link).await;
    let Some(url) = signed.map_err(ApiError::storage)? else {
        return Ok(None);
    };
    let mut location = HeaderValue::from_str(url.as_str()).map_err(ApiError::internal)?;
    // Whoever has the URL has the file: it must not get into logs of headers.
    location.set_sensitive(true);
    let no_store = HeaderValue::from_static("private, no-store");
    let fields = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, no_store),
    ];
    Ok(Some(
        (StatusCode::TEMPORARY_REDIRECT, fields).into_response(),
    ))
}
