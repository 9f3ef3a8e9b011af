//! The running tasks that this process has claimed or renewed, with the versions of their rows: a claim, which must know
//! what its worker runs, reads versions instead of whole tasks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_contract::TaskId;
use kinora_contract::lifecycle::Record;

use super::rows::Version;
use crate::queue::Change;

/// Tasks that are kept; with more all are forgotten, and read when they are needed.
const KEPT_MAX: usize = 4_096;

/// Records by their ids.
#[derive(Debug, Default)]
pub(super) struct Runs(Mutex<HashMap<TaskId, (Version, Arc<Record>)>>);

impl Runs {
    /// Follows a commit of this process.
    pub(super) fn follow(&self, changes: &[Change], version: Option<Version>) {
        let mut kept = self.kept();
        for change in changes {
            match (&change.after, version) {
                (Some(after), Some(version)) if after.is_running() => {
                    if kept.len() >= KEPT_MAX {
                        kept.clear();
                    }
                    kept.insert(change.id, (version, after.clone()));
                }
                _ => drop(kept.remove(&change.id)),
            }
        }
    }

    /// The record of this version.
    pub(super) fn get(&self, id: TaskId, version: Version) -> Option<Arc<Record>> {
        let kept = self.kept();
        let (known, record) = kept.get(&id)?;
        (*known == version).then(|| record.clone())
    }

    /// Forgets all: another server may use the versions for other rows.
    pub(super) fn clear(&self) {
        self.kept().clear();
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<TaskId, (Version, Arc<Record>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::State;
    use kinora_contract::lifecycle::Held;

    use super::*;
    use crate::conformance::fixtures::{NOW, id, task};

    fn changed(number: u64, is_running: bool) -> Change {
        let mut task = task(number, "one").accepted(id(number), NOW);
        let mut lease = None;
        if is_running {
            task.state = State::Running;
            lease = Some(Held {
                token: 1,
                worker: "worker".to_owned(),
                until_ms: NOW,
                ends_ms: NOW,
            });
        }
        let mut record = Record::accepted(number, task);
        record.lease = lease;
        Change {
            id: id(number),
            before: None,
            after: Some(Arc::new(record)),
        }
    }

    #[test]
    fn a_record_is_known_in_its_version_while_it_runs() {
        let (runs, versions) = (Runs::default(), [7, 8].map(Version::of_transaction));
        runs.follow(&[changed(1, true)], Some(versions[0]));
        assert!(runs.get(id(1), versions[0]).is_some());
        assert!(runs.get(id(1), versions[1]).is_none());
        runs.follow(&[changed(1, false)], Some(versions[1]));
        assert!(runs.get(id(1), versions[1]).is_none());
        runs.follow(&[changed(1, true)], None);
        assert!(
            versions
                .iter()
                .all(|version| runs.get(id(1), *version).is_none())
        );
    }

    #[test]
    fn p08_a_bounded_number_is_known() {
        let (runs, version) = (Runs::default(), Version::of_transaction(7));
        for number in 0..3 * KEPT_MAX as u64 {
            runs.follow(&[changed(number, true)], Some(version));
            assert!(runs.kept().len() <= KEPT_MAX);
        }
    }
}
