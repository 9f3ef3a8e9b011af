//! File to blob store: bytes before state. Keys carry the lease's token, so that no two attempts
//! share one; what an attempt published and could not finish is removed again.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use kinora_blobs::{BlobError, BlobStore};
use kinora_contract::{Artifact, StoredFile};
use kinora_media::Recording;
use kinora_store::Lease;

/// How often a full or absent blob store is asked again before the task fails.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Publishes the three files of a recording.
pub(crate) async fn publish(
    blobs: &dyn BlobStore,
    lease: &Lease,
    path: &Path,
    recording: Recording,
) -> Result<Artifact, BlobError> {
    let key = |name: &str| format!("videos/{}/{}/{name}", lease.task, lease.token);
    let thumbnail = put_bytes(
        blobs,
        &key("thumbnail.webp"),
        Bytes::from(recording.poster_webp),
    )
    .await?;
    let spritesheet = put_bytes(
        blobs,
        &key("spritesheet.jpg"),
        Bytes::from(recording.spritesheet_jpeg),
    )
    .await?;
    let video = put_file(blobs, &key("video.mp4"), path).await?;
    let info = recording.info;
    Ok(Artifact {
        video,
        thumbnail,
        spritesheet,
        duration_seconds: info.duration_seconds,
        fps: info.fps,
        frames: info.frames,
        width: info.width,
        height: info.height,
        has_audio: info.has_audio,
    })
}

/// Removes whatever an attempt may have published. What cannot be removed now is an orphan.
pub(crate) async fn withdraw(blobs: &dyn BlobStore, lease: &Lease) {
    for name in ["video.mp4", "thumbnail.webp", "spritesheet.jpg"] {
        let key = format!("videos/{}/{}/{name}", lease.task, lease.token);
        if let Err(error) = blobs.delete(&key).await {
            tracing::warn!(%error, %key, "an unpublished file was left behind");
        }
    }
}

async fn put_file(blobs: &dyn BlobStore, key: &str, path: &Path) -> Result<StoredFile, BlobError> {
    let mut pauses = Pauses::new();
    loop {
        match blobs.put_file(key, path).await {
            Err(BlobError::Unavailable(error)) if pauses.wait(&error).await => {}
            result => return result,
        }
    }
}

async fn put_bytes(
    blobs: &dyn BlobStore,
    key: &str,
    bytes: Bytes,
) -> Result<StoredFile, BlobError> {
    let mut pauses = Pauses::new();
    loop {
        match blobs.put_bytes(key, bytes.clone()).await {
            Err(BlobError::Unavailable(error)) if pauses.wait(&error).await => {}
            result => return result,
        }
    }
}

/// Doubling pauses between tries.
struct Pauses {
    left: u32,
    next: Duration,
}

impl Pauses {
    const fn new() -> Self {
        Self {
            left: TRIES - 1,
            next: FIRST_PAUSE,
        }
    }

    /// Waits, and says whether to try again.
    async fn wait(&mut self, error: &std::io::Error) -> bool {
        if self.left == 0 {
            return false;
        }
        tracing::warn!(%error, pause = ?self.next, "the result could not be stored; trying again");
        tokio::time::sleep(self.next).await;
        self.left -= 1;
        self.next *= 2;
        true
    }
}
