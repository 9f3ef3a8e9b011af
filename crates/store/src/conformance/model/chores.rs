//! What the model's tasks leave to be done: files of attempts and tasks that are over, and upstream jobs.

use std::collections::BTreeSet;

use kinora_contract::Phase;
use kinora_contract::lifecycle::{CallOff, Lease, reference_keys_of};

use super::super::Site;
use super::super::bench::{Bench as _, any_call_off, call_off, keys};
use super::super::fixtures::{MODELS, files, id, with_images};
use super::Model;
use crate::{Chore, ChoreKind, Deletion};

impl Model {
    /// The task's run is over, without a result.
    pub(super) fn drop_run(&mut self, number: u64) {
        let token = self.tasks.get(&number).and_then(|known| known.token);
        if let Some(token) = token {
            let task = id(number);
            self.files.extend(Lease { task, token }.file_keys());
        }
    }

    /// Nobody needs the task's references any more.
    pub(super) fn drop_references(&mut self, number: u64) {
        if let Some(known) = self.tasks.get(&number) {
            let spec = with_images(number, known.project, known.images).spec;
            self.files.extend(reference_keys_of(id(number), &spec));
        }
    }

    /// The unfinished task ends without a result, or goes.
    pub(super) fn drop_unfinished(&mut self, number: u64) {
        self.drop_run(number);
        self.drop_references(number);
        let known = self.tasks.get_mut(&number);
        let known = known.and_then(|known| Some((known.model, known.ticket.take()?)));
        if let Some((model, ticket)) = known {
            let call_off = CallOff {
                task: id(number),
                model: MODELS[model].to_owned(),
                ticket,
            };
            self.call_offs.insert(number, call_off);
        }
    }

    /// The files of a completed task's result.
    pub(super) fn result(&self, number: u64) -> Vec<String> {
        let token = self.tasks.get(&number).and_then(|known| known.result);
        token.map_or_else(Vec::new, |token| files(&format!("token-{token}")))
    }

    /// The caller of a deletion removes the files that it is handed.
    pub(super) async fn delete(&mut self, stores: &Site, number: u64, project: &str) {
        let deleted = stores.tasks.delete(project, id(number)).await.unwrap();
        let known = self.tasks.get(&number);
        let Some(known) = known.filter(|known| known.project == project) else {
            assert_eq!(deleted, Deletion::NotFound);
            return;
        };
        let Deletion::Deleted { files } = deleted else {
            panic!("it is there")
        };
        assert_eq!(keys(&files), self.result(number));
        if !known.phase.is_terminal() {
            self.drop_unfinished(number);
        }
        self.tasks.remove(&number);
        let done = files.into_iter().map(Chore::done).collect();
        stores.tasks.settle_deleted(done).await.unwrap();
    }

    /// Does all that is to be done, and forgets it.
    pub(super) async fn do_chores(&mut self, stores: &Site) {
        let mut removed = Vec::new();
        loop {
            let some = stores.take_chores(ChoreKind::RemoveFile).await;
            if some.is_empty() {
                break;
            }
            removed.extend(keys(&some));
            let done = some.into_iter().map(Chore::done).collect();
            stores.chores.settle_chores(done).await.unwrap();
        }
        let wanted = std::mem::take(&mut self.files);
        assert_eq!(removed.len(), wanted.len());
        assert_eq!(removed.into_iter().collect::<BTreeSet<_>>(), wanted);

        let jobs = stores.take_chores(any_call_off()).await;
        let mut called_off: Vec<CallOff> = jobs.iter().map(call_off).collect();
        called_off.sort_by_key(|one| one.task);
        let wanted = std::mem::take(&mut self.call_offs);
        assert_eq!(called_off, wanted.into_values().collect::<Vec<_>>());
        let done = jobs.into_iter().map(Chore::done).collect();
        stores.chores.settle_chores(done).await.unwrap();
    }

    /// The results of tasks in `expired` go.
    pub(super) fn drop_results(&mut self, expired: &[u64]) {
        for number in expired {
            let files = self.result(*number);
            self.files.extend(files);
            if let Some(known) = self.tasks.get_mut(number) {
                assert_eq!(known.phase, Phase::Expired);
                known.result = None;
            }
        }
    }
}
