//! The fourth step of a run: copies files to the result store, before the task's state names them.
//! Keys contain the lease's token, so no two attempts share one. An attempt that publishes files
//! and cannot finish removes them.

use std::io::ErrorKind;

use bytes::Bytes;
use kinora_blobs::{BlobError, BlobStore, measure_bytes};
use kinora_contract::{Artifact, StoredFile};
use kinora_store::Lease;
use tokio_util::sync::CancellationToken;

use crate::error::{RecordError, RunEnd};
use crate::policy_check::ApprovedRecording;
use crate::record::RecordedVideo;
use crate::retry::retry_unavailable;
use crate::slots::SlotHold;
use crate::task_run::TaskRun;

impl TaskRun<'_> {
    /// Publishes while the lease is held. Returns a reason to stop only after all writes have ended,
    /// so that a withdrawal leaves nothing behind.
    pub(crate) async fn publish(
        &self,
        cleared: ApprovedRecording,
        slot: &mut SlotHold,
    ) -> Result<Artifact, RunEnd> {
        let stopped = CancellationToken::new();
        let publishing = put_files(&*self.worker.blobs, &self.claim.lease, cleared, &stopped);
        tokio::pin!(publishing);
        tokio::select! {
            biased;
            published = &mut publishing => Ok(published.map_err(RecordError::Publish)?),
            stop = self.until_stop(None) => {
                // Dropping the write instead would not end it: a blocking write runs on, and could
                // create a file after the withdrawal that has removed all of them.
                stopped.cancel();
                slot.release_early();
                let _ = publishing.await;
                Err(stop.into())
            }
        }
    }

    /// Removes all files that the run may have published. The store recorded the same files as
    /// garbage when it ended the lease, but its sweep may have run before the last file was stored.
    pub(crate) async fn withdraw(&self) {
        for key in self.claim.lease.file_keys() {
            if let Err(error) = self.worker.blobs.delete(&key).await {
                tracing::warn!(%error, %key, "unpublished file not removed");
            }
        }
    }
}

/// Publishes the files of a recording. After `stopped` it begins no further file, but waits for the
/// one in progress: the next step may rely on no more writes.
async fn put_files(
    blobs: &dyn BlobStore,
    lease: &Lease,
    cleared: ApprovedRecording,
    stopped: &CancellationToken,
) -> Result<Artifact, BlobError> {
    let RecordedVideo {
        recording,
        staged,
        written,
    } = cleared.into_recorded();
    kinora_system::crash::point("worker.recorded");
    let [
        video_key,
        thumbnail_key,
        spritesheet_key,
        first_key,
        last_key,
    ] = lease.file_keys();
    let thumbnail = put_bytes(blobs, &thumbnail_key, recording.poster_webp, stopped).await?;
    let sheet = recording.spritesheet_jpeg;
    let spritesheet = put_bytes(blobs, &spritesheet_key, sheet, stopped).await?;
    let first_frame = put_frame(blobs, &first_key, recording.first_frame_jpeg, stopped).await?;
    let last_frame = put_frame(blobs, &last_key, recording.last_frame_jpeg, stopped).await?;
    let video = StoredFile {
        key: video_key,
        bytes: written.bytes,
        sha256: written.sha256,
    };
    let put = retry_unavailable(stopped, || blobs.put_file(&video, staged.path())).await;
    resolve(blobs, &video, put).await?;
    kinora_system::crash::point("worker.published");
    let info = recording.info;
    Ok(Artifact {
        video,
        thumbnail,
        spritesheet,
        first_frame,
        last_frame,
        duration_seconds: info.duration_seconds,
        fps: info.fps,
        frames: info.frames,
        width: info.width,
        height: info.height,
        has_audio: info.has_audio,
    })
}

/// Publishes a still; fails if the run was stopped meanwhile.
async fn put_bytes(
    blobs: &dyn BlobStore,
    key: &str,
    bytes: Vec<u8>,
    stopped: &CancellationToken,
) -> Result<StoredFile, BlobError> {
    let bytes = Bytes::from(bytes);
    let file = measure_bytes(key, &bytes);
    let put = retry_unavailable(stopped, || blobs.put_bytes(key, bytes.clone())).await;
    resolve(blobs, &file, put.map(drop)).await?;
    go_on_unless(stopped)?;
    Ok(file)
}

/// As [`put_bytes`], for a frame that the recording may lack.
async fn put_frame(
    blobs: &dyn BlobStore,
    key: &str,
    jpeg: Option<Vec<u8>>,
    stopped: &CancellationToken,
) -> Result<Option<StoredFile>, BlobError> {
    match jpeg {
        Some(jpeg) => put_bytes(blobs, key, jpeg, stopped).await.map(Some),
        None => Ok(None),
    }
}

/// Resolves a put whose answers were all lost: the blob may exist.
async fn resolve(
    blobs: &dyn BlobStore,
    file: &StoredFile,
    put: Result<(), BlobError>,
) -> Result<(), BlobError> {
    match put {
        // A put whose answer was lost may have stored the file. The key belongs to this attempt
        // alone, so a file of the right length and hash under it is this one.
        Err(error @ BlobError::Unavailable(_)) => match blobs.holds(file).await {
            Ok(true) => Ok(()),
            _ => Err(error),
        },
        put => put,
    }
}

fn go_on_unless(stopped: &CancellationToken) -> Result<(), BlobError> {
    if stopped.is_cancelled() {
        return Err(BlobError::Unavailable(ErrorKind::Interrupted.into()));
    }
    Ok(())
}
