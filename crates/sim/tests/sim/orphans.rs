//! The worker's own look for orphans beside its turn, and what it may remove: only
//! what no task names, by a judgement of the simulation's own.

use std::collections::BTreeSet;

use kinora_store::Gap;

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
        let gaps = chores.gaps().await.unwrap_or_default();
        let looked = kinora_worker::remove_orphans(&*chores, &*blobs, self.now_ms()).await;
        self.trace().result(&told(&looked));
        assert!(
            looked.is_ok() || self.may_fail(),
            "P11: no look without faults: {looked:?}"
        );
        // This store is the only one in its history, so that it knows every task; but one that a clock which
        // went back has put into the gap of an earlier opening looks like another history's once it is deleted. The
        // gap since the last opening may have been closed by a look before.
        let left = looked.unwrap_or_default().left;
        let is_earlier = |at_ms: u64| {
            let holds = |gap: &Gap| gap.after_ms < at_ms && at_ms < gap.before_ms;
            let mut ended = gaps.iter().filter(|gap| gap.before_ms < i64::MAX as u64);
            self.went_back && ended.any(holds)
        };
        let times = [left.oldest_ms, left.newest_ms];
        assert!(
            left.files == 0 || gaps.len() > 1 || times.into_iter().flatten().all(is_earlier),
            "P3: own files taken for another history's: {left:?}"
        );
        if left.files > 0 {
            // An operator's word.
            let now_ms = self.now_ms();
            let said = kinora_worker::look_for_orphans(&*chores, &*blobs, now_ms, true).await;
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
