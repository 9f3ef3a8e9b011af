//! What the result of a job does not say about its process. A process that had to be killed after a cancel is as good to
//! the service as one that obeyed, since the next job starts another; `kinora engine check` must tell them apart.

use std::sync::{Mutex, PoisonError};

/// A remark about a process, in ascending order of weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conduct {
    /// A cancelled job ended as done: the work was over before the cancel took effect.
    DoneAfterCancel,
    /// The process did not read its orders after the end of a job, and was killed.
    LeftOrdersUnread,
    /// The process exited after a cancel, without an end of the job.
    ExitedAfterCancel,
    /// No end of the job within the time for a cancel; the process was killed.
    IgnoredCancel,
}

/// The gravest remark since the last look.
#[derive(Debug, Default)]
pub(crate) struct Remarks(Mutex<Option<Conduct>>);

impl Remarks {
    pub(crate) fn note(&self, conduct: Conduct) {
        let mut gravest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *gravest = (*gravest).max(Some(conduct));
    }

    pub(crate) fn take(&self) -> Option<Conduct> {
        let mut gravest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gravest.take()
    }
}
