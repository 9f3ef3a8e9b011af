//! `DELETE /v1/videos/{id}`: deletes a task and its files, and stops it first if it is unfinished.

use axum::extract::State;
use kinora_contract::VideoDeleted;
use kinora_store::{Chore, ChoreWork, DeleteOutcome};

use crate::error::ApiError;
use crate::extract::{PathId, WriteKey};
use crate::refusals::OfDelete;
use crate::responses::JsonResponse;
use crate::state::{Api, SharedApi};

/// Delete a video task.
///
/// Deletes the task and its files before the answer arrives. Work on an unfinished task stops.
#[utoipa::path(
    delete,
    path = "/v1/videos/{id}",
    tag = "videos",
    params(("id" = String, Path, description = "Task identifier.")),
    responses((status = 200, description = "The task was deleted.", body = VideoDeleted), OfDelete),
    security(("bearer" = []))
)]
pub(crate) async fn delete(
    State(api): State<SharedApi>,
    WriteKey(key): WriteKey,
    PathId(id): PathId,
) -> Result<JsonResponse<VideoDeleted>, ApiError> {
    let DeleteOutcome::Deleted { files } = api.tasks.delete(&key.key.project, id).await? else {
        return Err(ApiError::video_not_found());
    };
    tracing::info!(task = %id, files = files.len(), "task deleted");
    remove_files(&api, files).await;
    Ok(JsonResponse(VideoDeleted {
        id: id.to_string(),
        object: "video.deleted",
        deleted: true,
    }))
}

/// Removes the files, as chores leased to this request. A worker retries the ones that fail.
async fn remove_files(api: &Api, files: Vec<Chore>) {
    let mut done = Vec::with_capacity(files.len());
    for chore in files {
        let ChoreWork::RemoveFile(key) = &chore.work else {
            continue;
        };
        let removed = api.blobs.delete(key).await;
        if let Err(error) = &removed {
            tracing::warn!(%error, %key, "file of a deleted task not removed yet");
        }
        // A pause of 0: a worker may try again at once, since this request does not.
        done.push(match removed {
            Ok(()) => chore.done(),
            Err(_) => chore.again(0),
        });
    }
    if !done.is_empty()
        && let Err(error) = api.tasks.complete_deletion(done).await
    {
        tracing::warn!(%error, "file removal not recorded; removal will be repeated");
    }
}
