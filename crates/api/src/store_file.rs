//! Stores a file that has arrived: judges it, then takes the three steps of a durable upload. It reads no
//! request.

use std::path::Path;

use kinora_blobs::BlobError;
use kinora_contract::limits::FILES_PER_PROJECT_MAX;
use kinora_contract::{ErrorCode, StoredFile, UploadRequest};
use kinora_store::{AddFileOutcome, FileBounds, NewFile, UploadedFile};

use crate::error::ApiError;
use crate::idempotency;
use crate::state::Api;
use crate::uploads::{MeasuredFile, ReceivedFile};

/// A stored file.
pub(crate) struct StoredUpload {
    pub(crate) file: UploadedFile,
    /// Whether an earlier identical request stored it.
    pub(crate) is_replay: bool,
}

/// Judges a file of `project`, sent as `param`, and stores it. Once this returns, it is on disk.
pub(crate) async fn store(
    api: &Api,
    project: &str,
    param: &str,
    received: &ReceivedFile,
    request: &UploadRequest,
    key: Option<String>,
) -> Result<StoredUpload, ApiError> {
    let path = received.staged.path();
    let MeasuredFile {
        judged,
        bytes,
        sha256,
    } = api.uploads.judge(path, param).await?;
    let fingerprint = request.fingerprint(&received.filename, &sha256);
    let new = NewFile {
        id: received.id,
        project: project.to_owned(),
        filename: received.filename.clone(),
        purpose: request.purpose.clone(),
        kind: judged.kind,
        media_type: judged.media_type.to_owned(),
        bytes,
        sha256,
        lifetime_ms: request.seconds * 1000,
        idempotency: key.map(|key| idempotency::bound(key, fingerprint)),
        bounds: FileBounds {
            files_max: FILES_PER_PROJECT_MAX,
            project_bytes_max: api.settings.project_bytes_max,
            bytes_max: api.settings.bytes_max,
        },
    };
    add(api, new, path).await
}

/// The row first, then the bytes, then the confirmation: whatever a crash leaves has a row, by which a
/// sweep finds it.
async fn add(api: &Api, new: NewFile, path: &Path) -> Result<StoredUpload, ApiError> {
    let (file, needs_bytes) = match api.files.add_file(new).await? {
        AddFileOutcome::Added { file, needs_bytes } => (file, needs_bytes),
        AddFileOutcome::Replayed(file) => {
            let is_replay = true;
            return Ok(StoredUpload { file, is_replay });
        }
        AddFileOutcome::KeyReused => return Err(idempotency::reused()),
        AddFileOutcome::TooMany => return Err(too_many()),
        AddFileOutcome::QuotaFull(quota) => return Err(quota.into()),
    };
    kinora_system::crash::point("api.file_added");
    if needs_bytes {
        match api.blobs.put_file(&stored_file(&file), path).await {
            Ok(()) | Err(BlobError::Exists(_)) => {}
            Err(error) => return Err(ApiError::storage(error)),
        }
    }
    kinora_system::crash::point("api.file_stored");
    let Some(file) = api.files.confirm_file(file.id).await? else {
        // This took longer than a sweep allows. If the removal fails, a search for orphans finds it.
        if needs_bytes && let Err(error) = api.blobs.delete(&file.blob_key).await {
            tracing::warn!(%error, key = file.blob_key, "bytes of a swept upload not removed");
        }
        return Err(ApiError::away("The upload took too long; send it again."));
    };
    tracing::info!(file = %file.id, bytes = file.bytes, "file uploaded");
    Ok(StoredUpload {
        file,
        is_replay: false,
    })
}

/// The bytes of `file`, as the blob store knows them.
pub(crate) fn stored_file(file: &UploadedFile) -> StoredFile {
    StoredFile {
        key: file.blob_key.clone(),
        bytes: file.bytes,
        sha256: file.sha256.clone(),
    }
}

fn too_many() -> ApiError {
    let message = format!(
        "This project has its maximum of {FILES_PER_PROJECT_MAX} uploaded files; delete some, or wait until some \
         expire."
    );
    ApiError::new(ErrorCode::StorageQuotaExceeded, message).final_answer()
}
