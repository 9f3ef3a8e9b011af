//! Translates errors of S3. The texts of the library and of the server are never passed on: they
//! contain URLs, and may contain parts of requests.

use std::error::Error;
use std::io::{self, ErrorKind};

use object_store::client::HttpError;

use crate::BlobError;

/// Maximum length of a displayed error code, in bytes.
const CODE_BYTES_MAX: usize = 64;

/// The error of a call about `key`. If the bucket is missing, nothing is known about the key.
pub(super) fn failure(key: &str, error: &object_store::Error) -> BlobError {
    // S3 answers 404 for a missing bucket as well. Taken for a missing key, a misconfigured
    // bucket would look like an empty store.
    let is_absent = matches!(error, object_store::Error::NotFound { .. });
    if is_absent && code(error).as_deref() != Some("NoSuchBucket") {
        return BlobError::NotFound(key.to_owned());
    }
    BlobError::Unavailable(unavailable(error))
}

/// The error of a call that does not depend on a key's content.
pub(super) fn unavailable(error: &object_store::Error) -> io::Error {
    if let Some(io) = transport(error) {
        return io::Error::new(io.kind(), format!("S3: {io}"));
    }
    let status = status(error);
    let told = [status.map(|status| status.to_string()), code(error)];
    let told: Vec<String> = told.into_iter().flatten().collect();
    if told.is_empty() {
        return io::Error::other(
            "S3: the request failed; check the credentials, the region and the clock",
        );
    }
    io::Error::other(format!("S3 answered {}", told.join(" ")))
}

/// The error of our client, if there was no complete answer.
fn transport(error: &object_store::Error) -> Option<&io::Error> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    // The error of our own HTTP client is somewhere in the chain of causes, at a depth that
    // differs by call.
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return http.source()?.downcast_ref();
        }
        cause = error.source();
    }
    None
}

/// The `Code` of S3's error document: `AccessDenied`, `SlowDown`.
pub(super) fn code(error: &object_store::Error) -> Option<String> {
    let text = error.to_string();
    // The library keeps the server's XML only inside its message.
    let (code, _) = text.split_once("<Code>")?.1.split_once("</Code>")?;
    let is_code = code.len() <= CODE_BYTES_MAX && code.bytes().all(|c| c.is_ascii_alphanumeric());
    is_code.then(|| code.to_owned())
}

/// The HTTP status of an answer.
pub(super) fn status(error: &object_store::Error) -> Option<u16> {
    // The library exposes its error of a refused request only as text.
    let text = error.to_string();
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// The store is open for reading only.
pub(super) fn read_only() -> BlobError {
    io::Error::new(
        ErrorKind::PermissionDenied,
        "the blob store is open for reading only",
    )
    .into()
}
