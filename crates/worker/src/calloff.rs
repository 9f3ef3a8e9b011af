//! Calls off what was begun elsewhere for tasks that ended without a result: nobody wants it, and
//! somebody may be paying. The run of a cancelled task does so at once; this is for tasks that had no
//! run just then, and for servers that did not hear.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kinora_contract::TaskId;
use kinora_store::{Abandoned, StoreError};

use crate::Worker;
use crate::lineup::Maker;

/// So many in one sweep, all at once: each takes two seconds at most, and a sweep has other work.
const AT_ONCE: usize = 16;
/// What nobody took back for so long is left alone: it has long ended.
const TRIED_FOR: Duration = Duration::from_hours(1);

/// What could not be called off yet.
#[derive(Debug, Default)]
pub(crate) struct CallOffs(HashMap<TaskId, Tried>);

#[derive(Clone, Copy, Debug)]
struct Tried {
    first: Instant,
    last: Instant,
}

/// What to do after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Try {
    Again,
    Last,
}

impl CallOffs {
    /// Attends to those of `abandoned` whose turn it is, the longest waiting first.
    pub(crate) async fn attend(
        &mut self,
        worker: &Worker,
        mut abandoned: Vec<Abandoned>,
    ) -> Result<(), StoreError> {
        self.0
            .retain(|task, _| abandoned.iter().any(|one| one.task == *task));
        abandoned.sort_by_key(|one| self.0.get(&one.task).map(|tried| tried.last));
        abandoned.truncate(AT_ONCE);
        if abandoned.is_empty() {
            return Ok(());
        }
        let calls = abandoned.iter().map(|one| call_off(worker, one));
        let over = join_all(calls).await;
        let mut settled = Vec::new();
        for (one, over) in abandoned.iter().zip(over) {
            if over || self.note_try(one.task) == Try::Last {
                settled.push(one.task);
            }
        }
        for task in &settled {
            self.0.remove(task);
        }
        if settled.is_empty() {
            return Ok(());
        }
        worker.tasks.forget_abandoned(&settled).await
    }

    /// Notes that this one was tried in vain, and says whether it is worth another try.
    fn note_try(&mut self, task: TaskId) -> Try {
        let now = Instant::now();
        let fresh = Tried {
            first: now,
            last: now,
        };
        let tried = self.0.entry(task).or_insert(fresh);
        tried.last = now;
        if tried.first.elapsed() <= TRIED_FOR {
            return Try::Again;
        }
        tracing::warn!(%task, "what was begun for it elsewhere could not be called off");
        Try::Last
    }
}

/// Whether nothing is left to be called off.
async fn call_off(worker: &Worker, abandoned: &Abandoned) -> bool {
    let Abandoned { task, model, kept } = abandoned;
    match worker.lineup.of(model).map(|served| &served.engine) {
        Some(Maker::Film(engine)) => match engine.call_off(kept).await {
            Ok(()) => {
                tracing::info!(%task, "what was begun for it elsewhere is called off");
                true
            }
            Err(error) => {
                tracing::debug!(%task, %error, "it could not be called off yet");
                false
            }
        },
        // Its engine was changed: this one begins nothing elsewhere.
        Some(Maker::Frames(_)) => true,
        // Another worker may serve it.
        None => false,
    }
}
