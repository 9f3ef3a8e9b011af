//! The newest task ever accepted, and the gaps in what this store knows ([`Gap`]). An opening begins
//! one; the first task accepted after it ends and records it, unless a look at all files has closed
//! it before.

use kinora_contract::{ID_AHEAD_MS_MAX, UnixMs};
use rusqlite::{Connection, params};

use super::batch::Batch;
use super::fault::Done;
use super::rows::{self, int};
use super::writer::Operation;
use crate::Gap;

/// Gaps that are told apart; the oldest of more become one.
const GAPS_MAX: usize = 16;
/// A gap without an end.
const OPEN_END: UnixMs = i64::MAX.unsigned_abs();

/// Belongs to the writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps {
    newest_ms: UnixMs,
    /// Since the opening; narrowed by each task that is accepted in it.
    current: Option<Gap>,
    /// Of earlier openings, oldest first.
    earlier: Vec<Gap>,
}

impl Gaps {
    /// Those on disk, and the one that begins now.
    pub(super) fn load(conn: &Connection) -> Done<Self> {
        // Written with each task.
        let newest_ms = rows::counter(conn, "newest_ms")?;
        let mut query = conn.prepare("SELECT after_ms, before_ms FROM gaps ORDER BY after_ms")?;
        let earlier = query.query_map([], |row| {
            Ok(Gap {
                after_ms: row.get::<_, i64>(0)?.unsigned_abs(),
                before_ms: row.get::<_, i64>(1)?.unsigned_abs(),
            })
        })?;
        let mut earlier: Vec<Gap> = earlier.collect::<Result<_, _>>()?;
        while earlier.len() > GAPS_MAX {
            let oldest = earlier.remove(0);
            earlier[0].after_ms = oldest.after_ms;
        }
        Ok(Self {
            newest_ms,
            current: Some(Gap {
                after_ms: newest_ms,
                before_ms: OPEN_END,
            }),
            earlier,
        })
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Gap> {
        self.earlier.iter().chain(&self.current).copied().collect()
    }

    /// A task was accepted.
    pub(super) fn accept(&mut self, created_at_ms: UnixMs) {
        // A clock that was far ahead for a moment is not followed: behind it later gaps would hold nothing.
        let is_absurd = self.newest_ms > created_at_ms.saturating_add(ID_AHEAD_MS_MAX);
        self.newest_ms = if is_absurd {
            created_at_ms
        } else {
            self.newest_ms.max(created_at_ms)
        };
        if let Some(gap) = &mut self.current
            && gap.holds_ms(created_at_ms)
        {
            gap.before_ms = created_at_ms;
        }
    }

    /// Writes what differs from `before`.
    pub(super) fn write(&self, before: &Self, conn: &Connection) -> Done<()> {
        if self.newest_ms != before.newest_ms {
            rows::set_counter(conn, "newest_ms", self.newest_ms)?;
        }
        if self.current != before.current
            && let Some(gap) = self.current
        {
            let mut query = conn.prepare_cached(
                "INSERT OR REPLACE INTO gaps (after_ms, before_ms) VALUES (?1, ?2)",
            )?;
            query.execute(params![int(gap.after_ms), int(gap.before_ms)])?;
        }
        Ok(())
    }

    fn close(&mut self, closed: &[Gap]) {
        let is_closed = |gap: &Gap| closed.iter().any(|one| one.after_ms == gap.after_ms);
        self.earlier.retain(|gap| !is_closed(gap));
        self.current = self.current.filter(|gap| !is_closed(gap));
    }
}

/// Confirms that no files of tasks in these gaps are left.
#[derive(Debug)]
pub(super) struct Close(pub(super) Vec<Gap>);

impl Operation for Close {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        let mut query = batch
            .conn
            // Also those that were made one when they were read.
            .prepare_cached("DELETE FROM gaps WHERE after_ms >= ?1 AND before_ms <= ?2")?;
        for gap in &self.0 {
            query.execute(params![int(gap.after_ms), int(gap.before_ms)])?;
        }
        drop(query);
        batch.gaps_mut().close(&self.0);
        Ok(())
    }
}
