//! How many of a worker's slots one project may have.

/// A worker's slots, and the bound that its operator has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Share {
    pub(in super::super) slots: usize,
    /// 0: as [`crate::ClaimRequest::project_slots_max`] says.
    pub(in super::super) project_max: usize,
}

impl Share {
    /// Running tasks of one project at most.
    pub(in super::super) fn max(self, others_wait: bool) -> usize {
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
        }
    }
}
