//! What wakes the waiting parts of this process after a commit. Only hints: polling must be enough.

use kinora_contract::lifecycle::Hints;
use tokio::sync::watch;

use crate::changes::Followers;

/// Counters that advance, and those who follow changes of tasks.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// A task may be ready to claim or to fetch.
    pub(crate) work: watch::Sender<u64>,
    /// A lease was withdrawn.
    pub(crate) withdrawn: watch::Sender<u64>,
    /// A task has ended.
    pub(crate) ended: watch::Sender<u64>,
    pub(crate) followers: Followers,
}

impl Signals {
    /// Advances the counters that these hints concern.
    pub(crate) fn wake(&self, hints: Hints) {
        for (is_concerned, counter) in [
            (hints.work, &self.work),
            (hints.withdrawn, &self.withdrawn),
            (hints.ended, &self.ended),
        ] {
            if is_concerned {
                counter.send_modify(|count| *count = count.wrapping_add(1));
            }
        }
    }
}
