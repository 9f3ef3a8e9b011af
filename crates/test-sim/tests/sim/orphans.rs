//! The worker's own look for orphans beside its turn, and what it may remove: only
//! what no task names, by a judgement of the simulation's own.

use std::collections::BTreeSet;

use kinora_store::task_of_file;

use crate::seen::told;
use crate::world::{HOUR_MS, World};

impl World {
    /// One look for orphans, as a worker takes at its start and every hour.
    pub(crate) async fn look_for_orphans(&mut self) {
        let (chores, blobs) = (
            self.service().seen.chores.clone(),
            self.service().blobs.clone(),
        );
        let before = self.files();
        let removable = before.iter().filter(|key| self.may_be_removed(key)).count();
        let checked = kinora_worker::remove_orphans(&*chores, &*blobs, self.now_ms()).await;
        self.trace().result(&told(&checked));
        assert!(
            checked.is_ok() || self.may_fail(),
            "P11: no look without faults: {checked:?}"
        );
        let checked = checked.unwrap_or_default();
        assert!(
            checked.removed <= removable as u64,
            "P3: files of unknown tasks were removed: {checked:?}, {removable}"
        );
        if checked.unknown.files > 0 {
            // An operator's word: a run stored them after their task was deleted.
            let now_ms = self.now_ms();
            let said = kinora_worker::find_orphans(&*chores, &*blobs, now_ms, true).await;
            assert!(said.is_ok() || self.may_fail(), "P11: {said:?}");
        }
        let after = self.files();
        for key in before.difference(&after) {
            assert!(
                !self.book().is_wanted(key),
                "P4: {key} was taken for an orphan"
            );
            self.orphans += 1;
            self.book().saw("orphan removed".to_owned());
        }
    }

    /// Whether no known task needs this file, and the store knows its task.
    fn may_be_removed(&self, key: &str) -> bool {
        let is_gone = task_of_file(key).is_some_and(|task| self.book().gone.contains_key(&task));
        !is_gone && !self.book().is_wanted(key)
    }

    /// Lets the youngest file grow as old as an orphan must be, also one of a clock that went back.
    pub(crate) fn outlive_youth(&mut self) {
        let put = self
            .service()
            .ledger
            .held()
            .values()
            .map(|held| held.put_at_ms)
            .max();
        let youngest_ms = put.unwrap_or(0).max(self.now_ms());
        self.clock.set(youngest_ms + HOUR_MS + 1);
    }

    /// Keys of all files but the marks of stores.
    pub(crate) fn files(&self) -> BTreeSet<String> {
        let ledger = self.service().ledger.held();
        let keys = ledger.keys().filter(|key| !key.starts_with("stores/"));
        keys.cloned().collect()
    }
}
