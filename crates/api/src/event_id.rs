//! The id of an event, and the states that a client has already received. An id encodes everything
//! the client has once it has read the event, so any process can continue a stream and none keeps a
//! log. Clients send it back unchanged.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use kinora_contract::{Status, TaskId, UnixMs};
use kinora_store::TaskGlance;

/// Follows the time in an id that belongs to a partial initial snapshot.
const PARTIAL: &str = "p";

/// The id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    /// The client has received every end before this time of the store's clock.
    pub(crate) since_ms: UnixMs,
    /// Whether some tasks that were unfinished when the stream began have not been sent yet.
    pub(crate) is_partial: bool,
    /// The state of the event's task.
    pub(crate) state: ReportedState,
}

/// The last state of a task that the client received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportedState {
    pub(crate) task: TaskId,
    status: Status,
    progress: u8,
}

impl ReportedState {
    /// Whether the task has ended.
    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed)
    }
}

impl From<TaskGlance> for ReportedState {
    fn from(glance: TaskGlance) -> Self {
        Self {
            task: glance.id,
            status: glance.status,
            progress: glance.progress,
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReportedState {
            task,
            status,
            progress,
        } = self.state;
        let partial = if self.is_partial { PARTIAL } else { "" };
        let (since_ms, status) = (self.since_ms, status.as_str());
        write!(f, "{since_ms}{partial}-{task}-{status}-{progress}")
    }
}

impl EventId {
    /// The id that this text is, if it is one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let since = parts.next()?;
        let since_ms = since.strip_suffix(PARTIAL);
        let id = Self {
            since_ms: number(since_ms.unwrap_or(since))?,
            is_partial: since_ms.is_some(),
            state: ReportedState {
                task: parts.next()?.parse().ok()?,
                status: status(parts.next()?)?,
                progress: number(parts.next()?)?,
            },
        };
        parts.next().is_none().then_some(id)
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    // `parse` would also accept a sign.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

fn status(text: &str) -> Option<Status> {
    let all = [
        Status::Queued,
        Status::InProgress,
        Status::Completed,
        Status::Failed,
    ];
    all.into_iter().find(|status| status.as_str() == text)
}

/// Number of remembered tasks. The notification arrives moments after such a read, so only a few
/// others can come in between.
const TASKS_MAX: usize = 64;

/// The last state sent for each of the most recent tasks.
#[derive(Debug, Default)]
pub(crate) struct RecentReports(VecDeque<ReportedState>);

impl RecentReports {
    /// Starts with a state that the client already has.
    pub(crate) fn from_known(known: Option<ReportedState>) -> Self {
        Self(known.into_iter().collect())
    }

    /// Records the state; returns whether it is new to the client. Nothing follows an end.
    pub(crate) fn record_if_new(&mut self, told: ReportedState) -> bool {
        if let Some(place) = self.0.iter().position(|known| known.task == told.task) {
            let known = self.0[place];
            // A read that began before the end may arrive after it; showing it would bring a
            // finished task back to life in the client.
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
    use super::*;

    #[test]
    fn an_id_is_read_back_and_nothing_else_is() {
        let mut id = EventId {
            since_ms: 1_760_000_000_000,
            is_partial: true,
            state: ReportedState {
                task: TaskId::from_parts(1_760_000_000_000, [9; 10]),
                status: Status::InProgress,
                progress: 40,
            },
        };
        assert_eq!(EventId::parse(&id.to_string()), Some(id));
        id.is_partial = false;
        let text = id.to_string();
        assert_eq!(EventId::parse(&text), Some(id));
        for text in [
            "",
            "1",
            "-",
            &format!("p{text}"),
            &text.replacen('-', "pp-", 1),
            &format!("{text}-1"),
            &format!("+{text}"),
            &text.replace("in_progress", "running"),
            &text.replace("-40", "-400"),
            &format!("99999999999999999999{text}"),
        ] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
    }
}

#[cfg(test)]
mod recently_told_tests {
    use kinora_contract::{Status, TaskId};
    use kinora_store::TaskGlance;

    use super::*;

    fn told(task: u64, status: Status, progress: u8) -> ReportedState {
        ReportedState::from(TaskGlance {
            id: TaskId::from_parts(task, [0; 10]),
            status,
            progress,
            created_at_ms: 0,
        })
    }

    #[test]
    fn a_state_is_news_once_and_nothing_follows_an_end() {
        let mut recent = RecentReports::from_known(Some(told(1, Status::Queued, 0)));
        assert!(!recent.record_if_new(told(1, Status::Queued, 0)));
        assert!(recent.record_if_new(told(2, Status::Queued, 0)));
        assert!(recent.record_if_new(told(1, Status::InProgress, 5)));
        // A run that was given back begins anew.
        assert!(recent.record_if_new(told(1, Status::Queued, 0)));
        assert!(recent.record_if_new(told(1, Status::Completed, 100)));
        assert!(!recent.record_if_new(told(1, Status::Completed, 100)));
        assert!(!recent.record_if_new(told(1, Status::InProgress, 5)));
    }

    #[test]
    fn few_tasks_are_remembered() {
        let mut recent = RecentReports::default();
        for task in 0..10 * TASKS_MAX as u64 {
            assert!(recent.record_if_new(told(task, Status::Queued, 0)));
            assert!(!recent.record_if_new(told(task, Status::Queued, 0)));
        }
        assert_eq!(recent.0.len(), TASKS_MAX);
    }
}
