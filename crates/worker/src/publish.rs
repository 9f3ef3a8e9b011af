//! File to blob store: bytes before state. Keys carry the lease's token, so that no two attempts
//! share one; what an attempt published and could not finish is removed again.

use std::io::ErrorKind;

use bytes::Bytes;
use kinora_blobs::{BlobError, BlobStore};
use kinora_contract::Artifact;
use kinora_store::Lease;
use tokio_util::sync::CancellationToken;

use crate::record::Recorded;
use crate::tenacious::tenacious;

/// Publishes the three files of a recording. After `stopped` no further one is begun, but the
/// one under way is waited for: what comes later may rely on nothing being written any more.
pub(crate) async fn publish(
    blobs: &dyn BlobStore,
    lease: &Lease,
    recorded: Recorded,
    stopped: &CancellationToken,
) -> Result<Artifact, BlobError> {
    let Recorded { recording, staged } = recorded;
    kinora_crash::point("worker.recorded");
    let poster = Bytes::from(recording.poster_webp);
    let sheet = Bytes::from(recording.spritesheet_jpeg);
    let [video_key, thumbnail_key, spritesheet_key] = lease.file_keys();
    let thumbnail = tenacious(stopped, || blobs.put_bytes(&thumbnail_key, poster.clone())).await?;
    go_on_unless(stopped)?;
    let spritesheet =
        tenacious(stopped, || blobs.put_bytes(&spritesheet_key, sheet.clone())).await?;
    go_on_unless(stopped)?;
    let video = tenacious(stopped, || blobs.put_file(&video_key, staged.path())).await?;
    kinora_crash::point("worker.published");
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

fn go_on_unless(stopped: &CancellationToken) -> Result<(), BlobError> {
    match stopped.is_cancelled() {
        true => Err(BlobError::Unavailable(ErrorKind::Interrupted.into())),
        false => Ok(()),
    }
}

/// Removes whatever an attempt may have published. The store has noted the same files as garbage
/// when it ended the lease, but may have swept before the last of them was put.
pub(crate) async fn withdraw(blobs: &dyn BlobStore, lease: &Lease) {
    for key in lease.file_keys() {
        if let Err(error) = blobs.delete(&key).await {
            tracing::warn!(%error, %key, "an unpublished file was left behind");
        }
    }
}
