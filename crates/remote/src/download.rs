//! A result into a new file: counted, paced, and gone again unless it is whole. It never overwrites
//! and never looks at the bytes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::time::{Instant, timeout_at};

use crate::error::Cause;

const WRITE_BYTES: usize = 256 * 1024;

/// How much must come in what time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) window: Duration,
    pub(crate) bytes_min: u64,
}

/// Why there is no file.
pub(crate) enum SaveError {
    /// More than allowed, declared or sent.
    TooLarge,
    /// The disk.
    Storage(io::Error),
    /// The upstream.
    Broken(Cause),
}

/// Writes `body` to the new file `to` and returns its length in bytes, at least 1.
pub(crate) async fn save(
    body: Incoming,
    to: &Path,
    bytes_max: u64,
    pace: Pace,
    on_bytes: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, SaveError> {
    if body.size_hint().lower() > bytes_max {
        return Err(SaveError::TooLarge);
    }
    let mut partial = Partial::create(to).await.map_err(SaveError::Storage)?;
    let bytes = copy(body, &mut partial.file, bytes_max, pace, on_bytes).await?;
    if bytes == 0 {
        return Err(SaveError::Broken(Cause::Empty));
    }
    partial.path = None;
    Ok(bytes)
}

async fn copy(
    mut body: Incoming,
    file: &mut BufWriter<tokio::fs::File>,
    bytes_max: u64,
    pace: Pace,
    on_bytes: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, SaveError> {
    let (mut bytes, mut window_bytes) = (0_u64, 0_u64);
    let mut window_end = Instant::now() + pace.window;
    loop {
        let Ok(frame) = timeout_at(window_end, body.frame()).await else {
            return Err(SaveError::Broken(Cause::Rate {
                bytes_min: pace.bytes_min,
                window: pace.window,
            }));
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| SaveError::Broken(Cause::Exchange(error.into())))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let more = data.len() as u64;
        bytes = bytes.saturating_add(more);
        if bytes > bytes_max {
            return Err(SaveError::TooLarge);
        }
        file.write_all(&data).await.map_err(SaveError::Storage)?;
        on_bytes(more);
        window_bytes = window_bytes.saturating_add(more);
        if window_bytes >= pace.bytes_min {
            window_bytes = 0;
            window_end = Instant::now() + pace.window;
        }
    }
    file.flush().await.map_err(SaveError::Storage)?;
    Ok(bytes)
}

/// A file that removes itself unless it is kept.
struct Partial {
    file: BufWriter<tokio::fs::File>,
    /// Where it lies, until it is kept.
    path: Option<PathBuf>,
}

impl Partial {
    /// Opened on a thread that hands over the guard with the file: whoever stops waiting for it
    /// drops both.
    async fn create(path: &Path) -> io::Result<Self> {
        let path = path.to_owned();
        let created = tokio::task::spawn_blocking(move || {
            let file = File::create_new(&path)?;
            Ok(Self {
                file: BufWriter::with_capacity(WRITE_BYTES, tokio::fs::File::from_std(file)),
                path: Some(path),
            })
        });
        created.await.map_err(io::Error::other)?
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nobody is left to tell; a leftover is found by the sweep of its folder.
            let _ = std::fs::remove_file(path);
        }
    }
}
