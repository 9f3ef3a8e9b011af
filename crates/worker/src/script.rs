//! Finds the earlier video that a task starts from, and the specs that it was made from. Reads only
//! the store.

use std::sync::Arc;

use kinora_contract::{State, Task, TaskId, VideoSpec};
use kinora_engine::{Description, SCRIPT_LINKS_MAX};
use kinora_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::retry::retry_unavailable;
use crate::worker::Worker;

/// The starting point of a task.
pub(crate) enum Start {
    /// Nothing earlier.
    Fresh,
    /// A video that was deleted or has expired.
    Gone,
    Source(Source),
}

/// An earlier video, as stored.
pub(crate) struct Source {
    /// The key of its MP4.
    pub(crate) key: String,
    /// See [`kinora_engine::Materials::script`].
    pub(crate) script: Vec<Arc<VideoSpec>>,
}

/// The stored video that an edit starts from, or the draft's video if `engine` makes the final from
/// it.
pub(crate) async fn start(
    worker: &Worker,
    task: &Task,
    engine: &Description,
) -> Result<Start, StoreError> {
    let edited = task.spec.edit.as_ref().map(|edit| edit.task_id);
    let draft = task.spec.final_of.filter(|_| engine.final_from_video);
    let Some(id) = edited.or(draft) else {
        return Ok(Start::Fresh);
    };
    let Some(source) = look_up(worker, &task.project, id).await? else {
        return Ok(Start::Gone);
    };
    let State::Completed(artifact) = &source.state else {
        return Ok(Start::Gone);
    };
    let key = artifact.video.key.clone();
    let script = script(worker, source, &engine.full_name()).await?;
    Ok(Start::Source(Source { key, script }))
}

async fn look_up(
    worker: &Worker,
    project: &str,
    id: TaskId,
) -> Result<Option<Arc<Task>>, StoreError> {
    let never = &CancellationToken::new();
    let found = retry_unavailable(never, || worker.work.task(id)).await?;
    Ok(found.filter(|task| task.project == project))
}

/// The specs that led to the video of `last`, oldest first. Empty if one is unknown or has expired, was rendered
/// by another engine than `engine` (its full name), or there are too many.
async fn script(
    worker: &Worker,
    last: Arc<Task>,
    engine: &str,
) -> Result<Vec<Arc<VideoSpec>>, StoreError> {
    let mut links = Vec::new();
    let mut link = Some(last);
    while let Some(task) = link {
        // An expired task has lost its words.
        let is_whole = matches!(task.state, State::Completed(_));
        let is_own = task.engine.as_deref() == Some(engine);
        if !is_whole || !is_own || links.len() == SCRIPT_LINKS_MAX {
            return Ok(Vec::new());
        }
        let before = task.spec.edit.as_ref().map(|edit| edit.task_id);
        // Engines see no URLs of other tasks.
        let mut spec = task.spec.clone();
        spec.inputs.clear_urls();
        links.push(Arc::new(spec));
        let Some(id) = before else {
            links.reverse();
            return Ok(links);
        };
        link = look_up(worker, &task.project, id).await?;
    }
    Ok(Vec::new())
}
