//! A response body into a new file: counted, paced, and gone again unless it is whole. It
//! never overwrites and never looks at the bytes, nor at who sends them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use kinora_contract::{Clock, Stopwatch};
use kinora_pool::Pool;
use tokio::time::timeout;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 128 * 1024;

/// How much must come in what time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// In this time,
    pub window: Duration,
    /// so many bytes.
    pub bytes_min: u64,
}

/// Why there is no file.
#[derive(Debug)]
pub enum SaveError {
    /// More than allowed, declared or sent.
    TooLarge,
    /// Less than its pace.
    TooSlow(Pace),
    /// The sender ended early.
    Broken(hyper::Error),
    /// The file is there already or cannot be written.
    Storage(io::Error),
}

/// Where a body goes, and what it must keep to.
#[derive(Clone, Copy, Debug)]
pub struct Saving<'a> {
    /// The new file.
    pub to: &'a Path,
    /// The longest body, in bytes.
    pub bytes_max: u64,
    /// The slowest body.
    pub pace: Pace,
    /// The threads that write.
    pub disk: &'a Pool,
    /// Measures the pace.
    pub clock: &'a Arc<dyn Clock>,
}

/// Writes `body` to a new file, tells `on_bytes` of each piece's length, and returns the whole
/// length in bytes. The file is not synced. Unless this returns `Ok`, no file stays behind, also
/// when the future is dropped.
///
/// # Errors
/// [`SaveError`].
pub async fn save(
    body: Incoming,
    saving: Saving<'_>,
    on_bytes: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, SaveError> {
    if body.size_hint().lower() > saving.bytes_max {
        return Err(SaveError::TooLarge);
    }
    let partial = Partial::create(saving.to, saving.disk).await;
    let mut partial = partial.map_err(SaveError::Storage)?;
    let bytes = copy(body, &mut partial, saving, on_bytes).await?;
    partial.keep();
    Ok(bytes)
}

async fn copy(
    mut body: Incoming,
    file: &mut Partial,
    saving: Saving<'_>,
    on_bytes: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, SaveError> {
    let Saving {
        bytes_max,
        pace,
        clock,
        ..
    } = saving;
    let (mut bytes, mut window_bytes) = (0_u64, 0_u64);
    let mut window_end = clock.steady() + pace.window;
    loop {
        let left = window_end.saturating_sub(clock.steady());
        let Ok(frame) = timeout(left, body.frame()).await else {
            return Err(SaveError::TooSlow(pace));
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(SaveError::Broken)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let more = data.len() as u64;
        bytes = bytes.saturating_add(more);
        if bytes > bytes_max {
            return Err(SaveError::TooLarge);
        }
        let begun = Stopwatch::start(clock);
        file.write(&data).await.map_err(SaveError::Storage)?;
        // A busy disk is no fault of the sender.
        window_end += begun.elapsed();
        on_bytes(more);
        window_bytes = window_bytes.saturating_add(more);
        if window_bytes >= pace.bytes_min {
            window_bytes = 0;
            window_end = clock.steady() + pace.window;
        }
    }
    file.flush().await.map_err(SaveError::Storage)?;
    Ok(bytes)
}

/// A file that removes itself unless it is kept.
struct Partial {
    file: Arc<File>,
    /// What is not written yet.
    buffer: Vec<u8>,
    disk: Pool,
    /// Where it lies, until it is kept.
    path: Option<PathBuf>,
}

impl Partial {
    /// Opened on a thread that hands over the guard with the file: whoever stops waiting for it
    /// drops both.
    async fn create(path: &Path, disk: &Pool) -> io::Result<Self> {
        let (path, own) = (path.to_owned(), disk.clone());
        let create = move || {
            let file = File::create_new(&path)?;
            Ok(Self {
                file: Arc::new(file),
                buffer: Vec::new(),
                disk: own,
                path: Some(path),
            })
        };
        disk.run(create).await?
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        match self.buffer.len() >= WRITE_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        let (file, mut buffer) = (self.file.clone(), std::mem::take(&mut self.buffer));
        let write = move || {
            let written = (&*file).write_all(&buffer);
            buffer.clear();
            written.map(|()| buffer)
        };
        self.buffer = self.disk.run(write).await??;
        Ok(())
    }

    fn keep(mut self) {
        self.path = None;
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
