//! The files of a request, read once and uploaded to the chosen server.

use std::collections::BTreeMap;

use bytes::Bytes;
use kinora_engine::{FilmJob, ReferenceFile};
use kinora_upstream::{file_ending, is_media_type};

use crate::bindings::Role;
use crate::card::roles;
use crate::error::ComfyError;

/// A file to upload.
pub(crate) struct Upload {
    pub(crate) role: Role,
    /// Its name at the server, in the folder of its task.
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
}

/// Reads the files of `job`.
pub(crate) async fn read(job: &FilmJob<'_>, bytes_max: u64) -> Result<Vec<Upload>, ComfyError> {
    let roles = roles(job.spec);
    if roles.len() != job.references.len() {
        return Err(ComfyError::Unsupported("references without their files"));
    }
    let source = job.source.map(|file| (Role::SourceVideo, file));
    let mut counts: BTreeMap<Role, u32> = BTreeMap::new();
    let mut uploads = Vec::new();
    for (role, file) in roles.into_iter().zip(job.references).chain(source) {
        let count = counts.entry(role).or_default();
        *count += 1;
        uploads.push(Upload {
            role,
            name: format!("{}-{count}.{}", role.name(), file_ending(&file.media_type)),
            media_type: if is_media_type(&file.media_type) {
                file.media_type.clone()
            } else {
                "application/octet-stream".to_owned()
            },
            bytes: bytes_of(file, bytes_max).await?,
        });
    }
    Ok(uploads)
}

async fn bytes_of(file: &ReferenceFile, bytes_max: u64) -> Result<Bytes, ComfyError> {
    let metadata = tokio::fs::metadata(&file.path).await;
    if metadata.map_err(ComfyError::Storage)?.len() > bytes_max {
        return Err(ComfyError::FileTooLarge(bytes_max));
    }
    let bytes = tokio::fs::read(&file.path).await;
    Ok(bytes.map_err(ComfyError::Storage)?.into())
}
