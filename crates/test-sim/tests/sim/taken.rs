//! Which chores are leased, as far as their takers know, and that none is handed to two at the same time.

use std::collections::BTreeMap;

use kinora_store::{Chore, ChoreWork};

/// A time further ahead than this comes from a clock that was wrong: the lease counts as over.
const AHEAD_MS_MAX: u64 = 2 * 60 * 60 * 1000;

/// What is known of a chore's lease.
#[derive(Clone, Copy, Debug)]
struct Taken {
    token: u64,
    /// By the store's wall clock: chores outlive processes.
    until_ms: u64,
    /// A settlement whose answer was lost may have ended it, or it had run out when a chore was taken by nobody knows
    /// whom.
    is_doubtful: bool,
}

/// Leased chores, by what each is about.
#[derive(Debug, Default)]
pub(crate) struct TakenChores(BTreeMap<String, Taken>);

impl TakenChores {
    /// Enters a chore that was handed out, and says whether an earlier lease of it had run out.
    pub(crate) fn enter(&mut self, chore: &Chore, now_ms: u64, lease_ms: u64) -> bool {
        let until_ms = now_ms + lease_ms;
        let entry = Taken {
            token: chore.token,
            until_ms,
            is_doubtful: false,
        };
        let Some(earlier) = self.0.insert(name_of(chore), entry) else {
            return false;
        };
        assert!(
            earlier.is_doubtful || is_over(earlier, now_ms),
            "P3: a chore was handed to two at the same time: {chore:?}, {earlier:?}"
        );
        assert!(
            earlier.token < chore.token || is_over(earlier, now_ms),
            "P3: the token of a chore was given out again: {chore:?}, {earlier:?}"
        );
        !earlier.is_doubtful
    }

    /// Chores may have been handed out whose names were lost on their way: any that could be had.
    pub(crate) fn lose(&mut self, now_ms: u64) {
        for taken in self.0.values_mut() {
            taken.is_doubtful |= is_over(*taken, now_ms);
        }
    }

    /// Notes that the lease of a chore was given up, and says whether it was the current one.
    pub(crate) fn settle(&mut self, chore: &Chore, told: bool) -> bool {
        let Some(taken) = self.0.get_mut(&name_of(chore)) else {
            return false;
        };
        let is_current = taken.token == chore.token;
        if is_current {
            taken.is_doubtful = true;
            if told {
                self.0.remove(&name_of(chore));
            }
        }
        is_current
    }

    /// The process that had them is gone. Without room to write their leases may stand until they end by themselves.
    pub(crate) fn end_all(&mut self) {
        self.0.clear();
    }
}

fn is_over(taken: Taken, now_ms: u64) -> bool {
    taken.until_ms <= now_ms || taken.until_ms > now_ms + AHEAD_MS_MAX
}

/// What a chore is about.
pub(crate) fn name_of(chore: &Chore) -> String {
    match &chore.work {
        ChoreWork::RemoveFile(key) => key.clone(),
        ChoreWork::CallOff(call_off) => format!("call off {}", call_off.task),
        ChoreWork::LookForOrphans => "look for orphans".to_owned(),
    }
}
