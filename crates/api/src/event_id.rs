//! The id of an event: what its reader has been told when it has read it. It says so by itself, so that a stream
//! goes on in any process, and none keeps a log. Clients send it back as they got it.

use std::fmt;
use std::str::FromStr;

use kinora_contract::{Status, TaskId, UnixMs};
use kinora_store::Glance;

/// Follows the time in the id of a partial beginning.
const PARTIAL: &str = "p";

/// The id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    /// The reader has been told of every end before this time of the store's clock.
    pub(crate) since_ms: UnixMs,
    /// Whether the reader has not been told yet of all tasks that had not ended when its stream began.
    pub(crate) is_partial: bool,
    /// Where the event's task stood.
    pub(crate) told: Told,
}

/// Where a reader has been told that a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    task: TaskId,
    status: Status,
    progress: u8,
}

impl Told {
    /// Whether the task has ended.
    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.status, Status::Completed | Status::Failed)
    }

    /// The task.
    pub(crate) const fn task(&self) -> TaskId {
        self.task
    }
}

impl From<Glance> for Told {
    fn from(glance: Glance) -> Self {
        Self {
            task: glance.id,
            status: glance.status,
            progress: glance.progress,
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told {
            task,
            status,
            progress,
        } = self.told;
        let partial = if self.is_partial { PARTIAL } else { "" };
        let (since_ms, status) = (self.since_ms, status.as_str());
        write!(f, "{since_ms}{partial}-{task}-{status}-{progress}")
    }
}

/// The text is not the id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoEventId;

impl FromStr for EventId {
    type Err = NoEventId;

    fn from_str(text: &str) -> Result<Self, NoEventId> {
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(NoEventId);
        let since = next()?;
        let (since_ms, is_partial) = match since.strip_suffix(PARTIAL) {
            Some(since_ms) => (since_ms, true),
            None => (since, false),
        };
        let id = Self {
            since_ms: number(since_ms)?,
            is_partial,
            told: Told {
                task: next()?.parse().map_err(|_| NoEventId)?,
                status: status(next()?)?,
                progress: number(next()?)?,
            },
        };
        match parts.next() {
            None => Ok(id),
            Some(_) => Err(NoEventId),
        }
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, NoEventId> {
    // A sign would be taken too.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number.ok_or(NoEventId)
}

fn status(text: &str) -> Result<Status, NoEventId> {
    let all = [
        Status::Queued,
        Status::InProgress,
        Status::Completed,
        Status::Failed,
    ];
    let named = all.into_iter().find(|status| status.as_str() == text);
    named.ok_or(NoEventId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_and_nothing_else_is() {
        let mut id = EventId {
            since_ms: 1_760_000_000_000,
            is_partial: true,
            told: Told {
                task: TaskId::from_parts(1_760_000_000_000, [9; 10]),
                status: Status::InProgress,
                progress: 40,
            },
        };
        assert_eq!(id.to_string().parse(), Ok(id));
        id.is_partial = false;
        let text = id.to_string();
        assert_eq!(text.parse(), Ok(id));
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
            assert_eq!(text.parse::<EventId>(), Err(NoEventId), "{text}");
        }
    }
}
