//! The states most recently sent to a client, so that a stream does not repeat one: the stream may
//! read a task after the task has changed, but before the notification of that change arrives.

use std::collections::VecDeque;

use crate::event_id::Told;

/// Number of remembered tasks. The notification arrives moments after such a read, so only a few
/// others can come in between.
const TASKS_MAX: usize = 64;

/// The last state sent for each of the most recent tasks.
#[derive(Debug, Default)]
pub(crate) struct RecentlyTold(VecDeque<Told>);

impl RecentlyTold {
    /// Starts with a state that the client already has.
    pub(crate) fn from_known(known: Option<Told>) -> Self {
        Self(known.into_iter().collect())
    }

    /// Records the state; returns whether it is new to the client. Nothing follows an end.
    pub(crate) fn is_news(&mut self, told: Told) -> bool {
        if let Some(place) = self.0.iter().position(|known| known.task() == told.task()) {
            let known = self.0[place];
            if known == told || known.has_ended() && !told.has_ended() {
                return false;
            }
            self.0.remove(place);
        } else if self.0.len() == TASKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(told);
        true
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::{Status, TaskId};
    use kinora_store::Glance;

    use super::*;

    fn told(task: u64, status: Status, progress: u8) -> Told {
        Told::from(Glance {
            id: TaskId::from_parts(task, [0; 10]),
            status,
            progress,
            created_at_ms: 0,
        })
    }

    #[test]
    fn a_state_is_news_once_and_nothing_follows_an_end() {
        let mut recent = RecentlyTold::from_known(Some(told(1, Status::Queued, 0)));
        assert!(!recent.is_news(told(1, Status::Queued, 0)));
        assert!(recent.is_news(told(2, Status::Queued, 0)));
        assert!(recent.is_news(told(1, Status::InProgress, 5)));
        // A run that was given back begins anew.
        assert!(recent.is_news(told(1, Status::Queued, 0)));
        assert!(recent.is_news(told(1, Status::Completed, 100)));
        assert!(!recent.is_news(told(1, Status::Completed, 100)));
        assert!(!recent.is_news(told(1, Status::InProgress, 5)));
    }

    #[test]
    fn few_tasks_are_remembered() {
        let mut recent = RecentlyTold::default();
        for task in 0..10 * TASKS_MAX as u64 {
            assert!(recent.is_news(told(task, Status::Queued, 0)));
            assert!(!recent.is_news(told(task, Status::Queued, 0)));
        }
        assert_eq!(recent.0.len(), TASKS_MAX);
    }
}
