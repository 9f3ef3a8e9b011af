//! `DELETE /v1/videos/{id}`: task and files go; an unfinished task is stopped first.

use axum::extract::State;
use kinora_contract::VideoDeleted;
use kinora_store::Deletion;

use crate::auth::Writer;
use crate::error::ApiError;
use crate::openapi::refusals::OfDelete;
use crate::state::{Api, SharedApi};
use crate::wire::{Answer, PathId};

/// Delete a video task.
///
/// Task and files are gone when the answer arrives. Work on an unfinished task stops.
#[utoipa::path(
    delete,
    path = "/v1/videos/{id}",
    tag = "videos",
    params(("id" = String, Path, description = "Task identifier.")),
    responses((status = 200, description = "The task is gone.", body = VideoDeleted), OfDelete),
    security(("bearer" = []))
)]
pub(crate) async fn delete(
    State(api): State<SharedApi>,
    Writer(key): Writer,
    PathId(id): PathId,
) -> Result<Answer<VideoDeleted>, ApiError> {
    let Deletion::Deleted { files } = api.tasks.delete(&key.key.project, id).await? else {
        return Err(ApiError::video_not_found());
    };
    tracing::info!(task = %id, files = files.len(), "task deleted");
    remove_files(&api, files).await;
    Ok(Answer(VideoDeleted {
        id: id.to_string(),
        object: "video.deleted",
        deleted: true,
    }))
}

/// Removes what can be removed now. The store remembers the rest, and a sweep tries again.
async fn remove_files(api: &Api, files: Vec<String>) {
    let mut gone = Vec::with_capacity(files.len());
    for key in files {
        match api.blobs.delete(&key).await {
            Ok(()) => gone.push(key),
            Err(error) => tracing::warn!(%error, %key, "a deleted file could not be removed yet"),
        }
    }
    if !gone.is_empty()
        && let Err(error) = api.tasks.forget_files(&gone).await
    {
        tracing::warn!(%error, "removed files could not be crossed out yet");
    }
}
