//! The wait of a long poll: until the task changes, or until the client's time limit.

use std::sync::Arc;
use std::time::Duration;

use kinora_contract::{Task, TaskId};
use kinora_store::{Glance, NewKey};
use tokio::time::timeout;

use crate::auth::unauthorized;
use crate::error::ApiError;
use crate::state::Api;
use crate::watch::{Subject, Waiter};

/// The task after its next change, or in its state after `wait`; and whether there was room to
/// wait.
pub(crate) async fn changed(
    api: &Api,
    key: &NewKey,
    id: TaskId,
    wait: Duration,
) -> Result<(Arc<Task>, bool), ApiError> {
    // Without room the answer comes at once: the client will ask again.
    let Ok(_permit) = api.watch.waits.take(&key.id) else {
        return Ok((api.own_task(&key.project, id).await?, false));
    };
    // Join before reading the task, so that no change is missed in between.
    let subject = Subject::Task(id, key.project.as_str().into());
    let waiter = api.watch.join(subject, &api.tasks, &api.stopping);
    let task = api.own_task(&key.project, id).await?;
    let before = Glance::of(&task);
    if before.is_none_or(|before| before.has_ended()) {
        return Ok((task, true));
    }
    let hold = api.watch.keys.hold(key.sha256, &api.keys, &api.clock);
    let change = async {
        tokio::select! {
            biased;
            () = hold.ended() => Err(unauthorized()),
            changed = next_change(api, (&key.project, id), &waiter, before) => changed,
        }
    };
    let task = match timeout(wait, change).await {
        Ok(changed) => changed?,
        Err(_) => api.own_task(&key.project, id).await?,
    };
    Ok((task, true))
}

/// Returns the task once its state differs from `before`, or the service stops.
async fn next_change(
    api: &Api,
    (project, id): (&str, TaskId),
    waiter: &Waiter,
    before: Option<Glance>,
) -> Result<Arc<Task>, ApiError> {
    let mailbox = waiter.mailbox();
    loop {
        mailbox.moved().await;
        let Some(letter) = mailbox.take() else {
            return api.own_task(project, id).await;
        };
        let task = match letter.task {
            Some(task) => task,
            None => api.own_task(project, id).await?,
        };
        if Glance::of(&task) != before {
            return Ok(task);
        }
    }
}
