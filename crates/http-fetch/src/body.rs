//! Saves a response body to a new file: counted, paced, unpacked, and removed again unless it is complete.
//! Never overwrites a file, and inspects the bytes only for their coding.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use kinora_contract::{Clock, Stopwatch};
use kinora_system::pool::BlockingPool;
use tokio::time::timeout;

use crate::coding::{ContentCoding, ContentDecoder};

/// Buffer size for writes.
const WRITE_BYTES: usize = 128 * 1024;

/// The minimum rate of a body.
#[derive(Clone, Copy, Debug)]
pub struct MinimumPace {
    /// In each window of this length,
    pub window: Duration,
    /// at least this many bytes must arrive.
    pub bytes_min: u64,
}

/// Why no file was saved.
#[derive(Debug)]
pub enum SaveError {
    /// The body exceeds the limit, as declared or as sent.
    TooLarge,
    /// The body is slower than this pace.
    TooSlow(MinimumPace),
    /// The sender closed the connection early.
    Broken(hyper::Error),
    /// The body has a coding that is not undone, of this name if it is a usual one.
    Encoded(Option<&'static str>),
    /// The compressed body is damaged.
    Damaged(io::Error),
    /// The file already exists or cannot be written.
    Storage(io::Error),
}

/// The destination of a body, and its limits.
#[derive(Clone, Copy, Debug)]
pub struct SaveTarget<'a> {
    /// The new file.
    pub to: &'a Path,
    /// Maximum length of the body and of the file, in bytes.
    pub bytes_max: u64,
    /// The coding that the response names.
    pub coding: ContentCoding,
    /// Whether these first bytes are of a file of the wanted kind, whatever coding is named.
    pub is_plain: fn(&[u8]) -> bool,
    /// Minimum rate of the body.
    pub pace: MinimumPace,
    /// The threads that write to disk.
    pub disk: &'a BlockingPool,
    /// Measures the pace.
    pub clock: &'a Arc<dyn Clock>,
}

/// Writes `body` to a new file, passes the length of each piece to `on_bytes`, and returns the length
/// of the file in bytes. The file is not synced. Unless this returns `Ok`, no file remains, even
/// if the future is dropped.
///
/// # Errors
/// [`SaveError`].
pub async fn save(
    body: Incoming,
    saving: SaveTarget<'_>,
    on_bytes: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, SaveError> {
    if body.size_hint().lower() > saving.bytes_max {
        return Err(SaveError::TooLarge);
    }
    let partial = UnfinishedFile::create(saving.to, saving.disk).await;
    let mut partial = partial.map_err(SaveError::Storage)?;
    let bytes = copy(body, &mut partial, saving, on_bytes).await?;
    partial.keep();
    Ok(bytes)
}

async fn copy(
    mut body: Incoming,
    file: &mut UnfinishedFile,
    saving: SaveTarget<'_>,
    on_bytes: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, SaveError> {
    let SaveTarget {
        bytes_max,
        pace,
        clock,
        ..
    } = saving;
    let mut unpacking = BodyDecoder::of(&saving);
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
        unpacking.take(&data, file).await?;
        // The sender is not to blame for a busy disk.
        window_end += begun.elapsed();
        on_bytes(more);
        window_bytes = window_bytes.saturating_add(more);
        if window_bytes >= pace.bytes_min {
            window_bytes = 0;
            window_end = clock.steady() + pace.window;
        }
    }
    let bytes = unpacking.finish(file).await?;
    file.flush().await.map_err(SaveError::Storage)?;
    Ok(bytes)
}

/// How many bytes decide about the coding.
const HEAD_BYTES: usize = 512;
/// How many compressed bytes are unpacked at a time: to a megabyte at most.
const PACKED_BYTES: usize = 1_024;

/// Undoes the coding of a body on its way to the file.
struct BodyDecoder {
    coding: ContentCoding,
    is_plain: fn(&[u8]) -> bool,
    bytes_max: u64,
    /// The length of the file.
    bytes: u64,
    /// The first bytes, until they decide.
    head: Vec<u8>,
    decoder: Option<ContentDecoder>,
}

impl BodyDecoder {
    fn of(saving: &SaveTarget<'_>) -> Self {
        Self {
            coding: saving.coding,
            is_plain: saving.is_plain,
            bytes_max: saving.bytes_max,
            bytes: 0,
            head: Vec::new(),
            decoder: (saving.coding == ContentCoding::None).then_some(ContentDecoder::None),
        }
    }

    async fn take(&mut self, data: &[u8], file: &mut UnfinishedFile) -> Result<(), SaveError> {
        if self.decoder.is_some() {
            return self.unpack(data, file).await;
        }
        self.head.extend_from_slice(data);
        if self.head.len() < HEAD_BYTES {
            Ok(())
        } else {
            self.decide(file).await
        }
    }

    async fn decide(&mut self, file: &mut UnfinishedFile) -> Result<(), SaveError> {
        let head = std::mem::take(&mut self.head);
        let decoder = ContentDecoder::of(self.coding, &head, self.is_plain);
        self.decoder = Some(decoder.map_err(SaveError::Encoded)?);
        self.unpack(&head, file).await
    }

    async fn unpack(&mut self, data: &[u8], file: &mut UnfinishedFile) -> Result<(), SaveError> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        let mut unpacked = Vec::new();
        for piece in data.chunks(PACKED_BYTES) {
            unpacked.clear();
            let decoded = decoder.decode(piece, &mut unpacked);
            decoded.map_err(SaveError::Damaged)?;
            self.bytes = self.bytes.saturating_add(unpacked.len() as u64);
            if self.bytes > self.bytes_max {
                return Err(SaveError::TooLarge);
            }
            file.write(&unpacked).await.map_err(SaveError::Storage)?;
        }
        Ok(())
    }

    /// The length of the file.
    async fn finish(mut self, file: &mut UnfinishedFile) -> Result<u64, SaveError> {
        if self.decoder.is_none() {
            self.decide(file).await?;
        }
        let mut rest = Vec::new();
        if let Some(decoder) = self.decoder.take() {
            decoder.finish(&mut rest).map_err(SaveError::Damaged)?;
        }
        let bytes = self.bytes.saturating_add(rest.len() as u64);
        if bytes > self.bytes_max {
            return Err(SaveError::TooLarge);
        }
        file.write(&rest).await.map_err(SaveError::Storage)?;
        Ok(bytes)
    }
}

/// A file that is removed on drop unless it is kept.
struct UnfinishedFile {
    file: Arc<File>,
    /// Bytes not written yet.
    buffer: Vec<u8>,
    disk: BlockingPool,
    /// The file's path, until it is kept.
    path: Option<PathBuf>,
}

impl UnfinishedFile {
    /// The thread that opens the file returns it with its guard, so a caller that stops waiting
    /// drops both.
    async fn create(path: &Path, disk: &BlockingPool) -> io::Result<Self> {
        let (path, own) = (path.to_owned(), disk.clone());
        disk.run(move || {
            let file = File::create_new(&path)?;
            Ok(Self {
                file: Arc::new(file),
                buffer: Vec::new(),
                disk: own,
                path: Some(path),
            })
        })
        .await?
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            self.flush().await
        } else {
            Ok(())
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        let (file, mut buffer) = (self.file.clone(), std::mem::take(&mut self.buffer));
        self.buffer = self
            .disk
            .run(move || {
                let written = (&*file).write_all(&buffer);
                buffer.clear();
                written.map(|()| buffer)
            })
            .await??;
        Ok(())
    }

    fn keep(mut self) {
        self.path = None;
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Errors cannot be reported from here; the sweep of the folder finds leftovers.
            let _ = std::fs::remove_file(path);
        }
    }
}
