//! How many of a worker's slots one project may have.

use crate::ClaimRequest;

/// A worker's slots, and the limit set by its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) slots: usize,
    /// 0 has the meaning in [`crate::ClaimRequest::project_slots_max`].
    pub(crate) project_max: usize,
}

impl Share {
    /// The share in a worker's request.
    pub(crate) fn of(request: &ClaimRequest) -> Self {
        Self {
            slots: request.slots,
            project_max: request.project_slots_max,
        }
    }

    /// Whether a project with this many running tasks may have another one.
    pub(crate) fn allows(self, running: u64, others_wait: impl FnOnce() -> bool) -> bool {
        let running = usize::try_from(running).unwrap_or(usize::MAX);
        running < self.max(true) || running < self.max(others_wait())
    }

    /// Maximum number of running tasks of one project.
    fn max(self, others_wait: bool) -> usize {
        match (self.project_max, others_wait) {
            (0, false) => usize::MAX,
            (0, true) => self.slots.saturating_sub(1).max(1),
            (set, _) => set,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slot_is_left_where_others_wait() {
        let share = |slots, project_max| Share { slots, project_max };
        for (slots, alone, beside) in [(1, usize::MAX, 1), (2, usize::MAX, 1), (8, usize::MAX, 7)] {
            assert_eq!(share(slots, 0).max(false), alone);
            assert_eq!(share(slots, 0).max(true), beside);
            assert_eq!(share(slots, 3).max(false), 3);
            assert_eq!(share(slots, 3).max(true), 3);
            for others_wait in [false, true] {
                let max = share(slots, 0).max(others_wait) as u64;
                assert!(share(slots, 0).allows(max - 1, || others_wait));
                assert!(!share(slots, 0).allows(max, || others_wait));
            }
        }
    }
}
