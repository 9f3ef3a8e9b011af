//! Notices that wait to be sent to the other processes, merged: the hints of this process's commits, the
//! ended tasks that they changed, and the tasks that clients now see differently. Sending them is the
//! listener's task.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kinora_contract::TaskId;
use kinora_contract::lifecycle::WakeHints;
use tokio::sync::Notify;

/// Maximum number of ended tasks named; beyond it a notice only says that there are many.
const NAMED_MAX: usize = 150;
/// Maximum number of tasks with news named; beyond it a notice only says that there are many.
const NEWS_MAX: usize = 1_000;
/// Maximum number of tasks in one notice, which has room for 8,000 bytes.
const NAMED_BY_ONE_MAX: usize = 200;

/// The notices to send.
#[derive(Debug, Default)]
pub(super) struct NoticeQueue {
    pending: Mutex<PendingNotices>,
    pub(super) added: Notify,
}

/// The merged notices of commits that the other processes do not know yet.
#[derive(Debug, Default)]
pub(super) struct PendingNotices {
    hints: WakeHints,
    /// `None`: too many.
    ids: Option<BTreeSet<TaskId>>,
    /// `None`: too many.
    news: Option<BTreeSet<TaskId>>,
    any: bool,
}

impl NoticeQueue {
    /// Adds a commit: its hints, the tasks of which others may remember an older state, and the
    /// tasks that clients now see differently.
    pub(super) fn add(
        &self,
        hints: WakeHints,
        ids: impl Iterator<Item = TaskId>,
        news: impl IntoIterator<Item = TaskId>,
    ) {
        let (mut ids, mut news) = (ids.peekable(), news.into_iter().peekable());
        if hints == WakeHints::default() && ids.peek().is_none() && news.peek().is_none() {
            return;
        }
        let mut pending = self.pending();
        if !pending.any {
            *pending = PendingNotices {
                ids: Some(BTreeSet::new()),
                news: Some(BTreeSet::new()),
                any: true,
                ..PendingNotices::default()
            };
        }
        pending.hints = pending.hints.union(hints);
        add_ids(&mut pending.ids, ids, NAMED_MAX);
        add_ids(&mut pending.news, news, NEWS_MAX);
        drop(pending);
        self.added.notify_one();
    }

    /// Takes everything since the last call.
    pub(super) fn take(&self) -> Option<PendingNotices> {
        let pending = std::mem::take(&mut *self.pending());
        pending.any.then_some(pending)
    }

    fn pending(&self) -> MutexGuard<'_, PendingNotices> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add_ids(
    named: &mut Option<BTreeSet<TaskId>>,
    more: impl Iterator<Item = TaskId>,
    named_max: usize,
) {
    if let Some(some) = named {
        some.extend(more);
        if some.len() > named_max {
            *named = None;
        }
    }
}

/// The notices as sent, each with its sender, the hints, ended tasks, and tasks with news.
pub(super) fn encode(origin: u64, pending: &PendingNotices) -> Vec<String> {
    let mut hints = String::new();
    hints.extend(pending.hints.work.then_some('w'));
    hints.extend(pending.hints.withdrawn.then_some('x'));
    hints.extend(pending.hints.ended.then_some('e'));
    let first = match &pending.ids {
        None => "*".to_owned(),
        Some(ids) => join_ids(&ids.iter().collect::<Vec<_>>()),
    };
    let Some(news) = &pending.news else {
        return vec![format!("{origin}:{hints}:{first}:*")];
    };
    // An id has 32 characters: 200 of them with commas take 6,600 bytes, below PostgreSQL's limit of 8,000
    // bytes for a notification. News that do not fit beside the ended tasks go into further notices.
    let room = NAMED_BY_ONE_MAX.saturating_sub(pending.ids.as_ref().map_or(0, BTreeSet::len));
    let news: Vec<&TaskId> = news.iter().collect();
    let (beside, rest) = news.split_at(room.min(news.len()));
    let mut notices = vec![format!("{origin}:{hints}:{first}:{}", join_ids(beside))];
    let more = rest.chunks(NAMED_BY_ONE_MAX);
    notices.extend(more.map(|some| format!("{origin}:::{}", join_ids(some))));
    notices
}

fn join_ids(ids: &[&TaskId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PostgreSQL takes payloads of fewer than 8,000 bytes.
    const PAYLOAD_BYTES: usize = 8_000;

    fn ids(range: std::ops::Range<u64>) -> impl Iterator<Item = TaskId> {
        range.map(|number| TaskId::from_parts(number, [7; 10]))
    }

    #[test]
    fn notices_name_every_task_within_their_room() {
        let notices = NoticeQueue::default();
        assert!(notices.take().is_none());
        notices.add(WakeHints::default(), ids(0..150), ids(500..1_499));
        let pending = notices.take().unwrap();
        let written = encode(u64::MAX, &pending);
        assert!(written.iter().all(|notice| notice.len() < PAYLOAD_BYTES));
        let news = written.iter().filter_map(|notice| notice.split(':').nth(3));
        let named = news.flat_map(|ids| ids.split(',')).count();
        assert_eq!(named, 999);
        let ended = written.iter().filter_map(|notice| notice.split(':').nth(2));
        assert_eq!(ended.filter(|ids| !ids.is_empty()).count(), 1);
    }

    #[test]
    fn of_too_many_tasks_it_is_said_that_they_are_many() {
        let notices = NoticeQueue::default();
        notices.add(WakeHints::default(), ids(0..0), ids(0..600));
        notices.add(WakeHints::default(), ids(0..151), ids(600..1_001));
        let pending = notices.take().unwrap();
        assert_eq!(encode(1, &pending), ["1::*:*"]);
    }
}
