//! The latest renderings of a project's tasks, which all of its event streams share: a change is
//! read, placed in the queue and written as JSON once, however many streams report it.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use kinora_contract::TaskId;
use kinora_contract::limits::EVENT_RENDERINGS_BYTES_MAX;

use crate::event_id::ReportedState;

/// Memory of an entry besides its JSON.
const ENTRY_BYTES: usize = 128;

/// A task as a stream reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RenderedTask {
    /// The reported state.
    pub(crate) state: ReportedState,
    /// Time of the task's end; 0 before it.
    pub(crate) ended_ms: u64,
    /// The task object.
    pub(crate) json: Bytes,
}

/// Renderings, the newest first to stay.
#[derive(Debug, Default)]
pub(super) struct RenderingCache {
    by_task: HashMap<TaskId, RenderingEntry>,
    /// The tasks of all entries, oldest entry first.
    order: BTreeMap<u64, TaskId>,
    next: u64,
    bytes: usize,
}

#[derive(Debug)]
struct RenderingEntry {
    place: u64,
    /// It shows all changes up to the one with this number.
    covers: u64,
    /// `None`: there is nothing to report.
    rendering: Option<RenderedTask>,
}

impl RenderingEntry {
    fn bytes(&self) -> usize {
        let json = self.rendering.as_ref().map_or(0, |one| one.json.len());
        ENTRY_BYTES + json
    }
}

impl RenderingCache {
    /// The rendering of a task after its change with this number.
    pub(super) fn after(&self, id: TaskId, change: u64) -> Option<Option<RenderedTask>> {
        let entry = self.by_task.get(&id)?;
        (entry.covers >= change).then(|| entry.rendering.clone())
    }

    /// Adds a rendering that shows all changes up to the one with the number `covers`.
    pub(super) fn put(&mut self, id: TaskId, covers: u64, rendering: Option<RenderedTask>) {
        // Removed first, so that the entry moves to the end of the order and its bytes are not
        // counted twice.
        self.remove(id);
        let entry = RenderingEntry {
            place: self.next,
            covers,
            rendering,
        };
        self.next += 1;
        self.bytes += entry.bytes();
        self.order.insert(entry.place, id);
        self.by_task.insert(id, entry);
        while self.bytes > EVENT_RENDERINGS_BYTES_MAX
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            self.remove(*oldest);
        }
    }

    fn remove(&mut self, id: TaskId) {
        if let Some(entry) = self.by_task.remove(&id) {
            self.order.remove(&entry.place);
            self.bytes -= entry.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use kinora_contract::Status;
    use kinora_store::TaskGlance;

    use super::*;

    fn id(number: u64) -> TaskId {
        TaskId::from_parts(number, [0; 10])
    }

    fn rendering(number: u64, bytes: usize) -> RenderedTask {
        let glance = TaskGlance {
            id: id(number),
            status: Status::Queued,
            progress: 0,
            created_at_ms: 0,
        };
        RenderedTask {
            state: ReportedState::from(glance),
            ended_ms: 0,
            json: vec![0; bytes].into(),
        }
    }

    #[test]
    fn a_rendering_serves_the_changes_that_it_shows() {
        let mut renderings = RenderingCache::default();
        renderings.put(id(1), 7, Some(rendering(1, 10)));
        renderings.put(id(2), 7, None);
        assert_eq!(renderings.after(id(1), 7), Some(Some(rendering(1, 10))));
        assert_eq!(renderings.after(id(1), 8), None);
        assert_eq!(renderings.after(id(2), 3), Some(None));
        assert_eq!(renderings.after(id(3), 0), None);
        renderings.put(id(1), 9, Some(rendering(1, 20)));
        assert_eq!(renderings.after(id(1), 8), Some(Some(rendering(1, 20))));
    }

    #[test]
    fn p08_the_memory_for_renderings_is_bounded() {
        let mut renderings = RenderingCache::default();
        for number in 0..1_000 {
            renderings.put(id(number), number, Some(rendering(number, 10_000)));
            assert!(renderings.bytes <= EVENT_RENDERINGS_BYTES_MAX);
            assert!(renderings.after(id(number), number).is_some());
        }
        for number in 0..100_000 {
            renderings.put(id(number), number, None);
        }
        assert!(renderings.by_task.len() * ENTRY_BYTES <= EVENT_RENDERINGS_BYTES_MAX);
        assert_eq!(renderings.by_task.len(), renderings.order.len());
        let large = EVENT_RENDERINGS_BYTES_MAX + 1;
        renderings.put(id(1), 1, Some(rendering(1, large)));
        assert_eq!((renderings.bytes, renderings.by_task.len()), (0, 0));
    }
}
