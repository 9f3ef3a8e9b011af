//! Which submits are sent: fresh ones, the same again, another under the same key, the final of a
//! draft, and that again when its draft is gone.

use kinora_contract::{Task, TaskId, TaskState};

use crate::submit::Submit;
use crate::world::{PROJECTS, World};

impl World {
    pub(crate) async fn submit_keyed(&mut self, copies: usize) {
        let submit = self.new_submit(true, None);
        self.remember(&submit);
        self.submit(&submit, copies).await;
    }

    pub(crate) fn remember(&mut self, submit: &Submit) {
        if submit.key.is_some() {
            self.sent.push(submit.clone());
        }
    }

    pub(crate) async fn submit_again(&mut self) {
        let Some(submit) = self.rng.pick(&self.sent) else {
            return;
        };
        let copies = 1 + self.rng.below(3) as usize;
        self.submit(&submit, copies).await;
    }

    /// Accepted finals whose key is bound.
    pub(crate) fn finals(&self) -> impl Iterator<Item = &Submit> {
        let sent = self.sent.iter().filter(|submit| submit.draft.is_some());
        sent.filter(|submit| {
            let key = submit.key.clone().unwrap_or_default();
            let bound = (PROJECTS[submit.project].to_owned(), key);
            let book = self.book();
            let bound = book.keys.get(&bound);
            bound.is_some_and(|key| key.request == submit.number)
        })
    }

    /// An accepted final again, after its draft was deleted.
    pub(crate) async fn submit_late(&mut self) {
        let finals: Vec<Submit> = self.finals().cloned().collect();
        let Some(submit) = self.rng.pick(&finals) else {
            return;
        };
        if let Some(draft) = submit.draft.filter(|_| self.has_draft(&submit)) {
            self.delete(draft, submit.project).await;
        }
        self.submit(&submit, 1).await;
    }

    pub(crate) async fn submit_changed(&mut self) {
        let Some(earlier) = self.rng.pick(&self.sent) else {
            return;
        };
        let changed = Submit {
            project: earlier.project,
            key: earlier.key,
            ..self.new_submit(true, None)
        };
        self.submit(&changed, 1).await;
    }

    pub(crate) async fn submit_final(&mut self) {
        let any = self.rng.percent(25);
        let done = |task: &Task| any || matches!(task.state, TaskState::Completed(_));
        let drafts: Vec<(usize, TaskId)> = {
            let book = self.book();
            let tasks = book.tasks.values().map(|known| &known.task);
            tasks
                .filter(|task| task.spec.draft && done(task))
                .map(|task| (usize::from(task.project == PROJECTS[1]), task.id))
                .collect()
        };
        let Some(draft) = self.rng.pick(&drafts) else {
            return;
        };
        let keyed = self.rng.percent(75);
        let submit = self.new_submit(keyed, Some(draft));
        self.remember(&submit);
        self.submit(&submit, 1).await;
    }
}
