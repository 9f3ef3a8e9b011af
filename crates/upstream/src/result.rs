//! Saves a result: a body of unknown length becomes a new file, counted and paced. Its bytes are not
//! inspected.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::Response;
use hyper::body::Incoming;
use kinora_contract::Clock;
use kinora_fetch::{Coding, Pace, SaveError, Saving, save};
use kinora_http::read_body;

use crate::cause::Cause;
use crate::http::Reply;

/// Maximum bytes read of a refusal in place of a result.
const REFUSAL_BYTES_MAX: usize = 4096;

/// Where and within which bounds a result is saved.
#[derive(Clone, Copy)]
pub struct Saved<'a> {
    /// The new file, which is not synced.
    pub to: &'a Path,
    /// Its maximum size.
    pub bytes_max: u64,
    /// Maximum time for the body of a refusal.
    pub answer_timeout: Duration,
    /// At least `rate_bytes_min` must arrive in each window of this length.
    pub rate_window: Duration,
    /// See `rate_window`; the last window may have fewer.
    pub rate_bytes_min: u64,
    /// Writes the file.
    pub disk: &'a kinora_pool::Pool,
    /// Measures the pace.
    pub clock: &'a Arc<dyn Clock>,
}

/// Why no result was saved.
#[derive(Debug)]
pub enum ResultError {
    /// Another status than 200.
    Refused(Reply),
    /// The body cannot be used, or broke off.
    Broken(Cause),
    /// More than the maximum, declared or sent.
    TooLarge,
    /// The file could not be written.
    Storage(io::Error),
}

/// Saves the body of `response` to a new file and returns its length in bytes; reports the length of
/// each piece to `on_bytes`. Unless this returns `Ok` there is no such file, even if the future is
/// dropped.
///
/// # Errors
/// [`ResultError`].
pub async fn save_result(
    response: Response<Incoming>,
    saved: Saved<'_>,
    on_bytes: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, ResultError> {
    let (head, body) = response.into_parts();
    if head.status.as_u16() != 200 {
        let read = read_body(body, REFUSAL_BYTES_MAX);
        let read = tokio::time::timeout(saved.answer_timeout, read).await;
        let body = read.ok().and_then(Result::ok);
        return Err(ResultError::Refused(Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.unwrap_or_default(),
        }));
    }
    let (window, bytes_min) = (saved.rate_window, saved.rate_bytes_min);
    let saving = Saving {
        to: saved.to,
        bytes_max: saved.bytes_max,
        coding: Coding::of(&head.headers),
        is_plain: |head| head.get(4..8) == Some(b"ftyp"),
        pace: Pace { window, bytes_min },
        disk: saved.disk,
        clock: saved.clock,
    };
    match save(body, saving, on_bytes).await {
        Ok(0) => {
            let removed = tokio::fs::remove_file(saved.to).await;
            removed.map_err(ResultError::Storage)?;
            Err(ResultError::Broken(Cause::Empty))
        }
        Ok(bytes) => Ok(bytes),
        Err(SaveError::TooLarge) => Err(ResultError::TooLarge),
        Err(SaveError::Encoded(name)) => Err(ResultError::Broken(Cause::Encoding(name))),
        Err(SaveError::Damaged(error)) => Err(ResultError::Broken(Cause::Damaged(error))),
        Err(SaveError::Storage(error)) => Err(ResultError::Storage(error)),
        Err(SaveError::Broken(error)) => Err(ResultError::Broken(Cause::Exchange(error.into()))),
        Err(SaveError::TooSlow(pace)) => Err(ResultError::Broken(Cause::Rate {
            bytes_min: pace.bytes_min,
            window: pace.window,
        })),
    }
}
