//! Finds the earlier video that a task starts from, and the specs that it was made from. Reads only
//! the store.

use std::sync::Arc;

use kinora_contract::{Inputs, State, Task, TaskId, VideoSpec};
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

/// The specs that led to the video of `last`, oldest first. Empty if one is unknown, was rendered
/// by another engine than `engine` (its full name), or there are too many.
async fn script(
    worker: &Worker,
    last: Arc<Task>,
    engine: &str,
) -> Result<Vec<Arc<VideoSpec>>, StoreError> {
    let mut links = Vec::new();
    let mut link = Some(last);
    while let Some(task) = link {
        if task.engine.as_deref() != Some(engine) || links.len() == SCRIPT_LINKS_MAX {
            return Ok(Vec::new());
        }
        let before = task.spec.edit.as_ref().map(|edit| edit.task_id);
        links.push(Arc::new(without_urls(task.spec.clone())));
        let Some(id) = before else {
            links.reverse();
            return Ok(links);
        };
        link = look_up(worker, &task.project, id).await?;
    }
    Ok(Vec::new())
}

/// The spec with placeholders for its references: engines see no URLs of other tasks.
fn without_urls(mut spec: VideoSpec) -> VideoSpec {
    match &mut spec.inputs {
        Inputs::Text => {}
        Inputs::Frames { first, last } => {
            first.clear();
            *last = last.take().map(|_| String::new());
        }
        Inputs::References { images, audios } => {
            images.iter_mut().chain(audios).for_each(String::clear);
        }
    }
    spec
}
