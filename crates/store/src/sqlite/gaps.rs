//! Gaps ([`Gaps`]) on disk.

use rusqlite::{Connection, params};

use super::batch::Batch;
use super::columns::int;
use super::fault::Done;
use super::job::WriterStep;
use super::rows;
use crate::Gap;
use crate::gap::Gaps;

/// The stored gaps, and the one that begins now.
pub(super) fn load(conn: &Connection) -> Done<Gaps> {
    // Updated with each task.
    let newest_ms = rows::counter(conn, "newest_ms")?;
    let mut query = conn.prepare("SELECT after_ms, before_ms FROM gaps ORDER BY after_ms")?;
    let earlier = query.query_map([], |row| {
        Ok(Gap {
            after_ms: row.get::<_, i64>(0)?.unsigned_abs(),
            before_ms: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })?;
    Ok(Gaps::opened(newest_ms, earlier.collect::<Result<_, _>>()?))
}

/// Writes the differences between `gaps` and `before`.
pub(super) fn write(gaps: &Gaps, before: &Gaps, conn: &Connection) -> Done<()> {
    if gaps.newest_ms() != before.newest_ms() {
        rows::set_counter(conn, "newest_ms", gaps.newest_ms())?;
    }
    if gaps.current() != before.current()
        && let Some(gap) = gaps.current()
    {
        let mut query = conn
            .prepare_cached("INSERT OR REPLACE INTO gaps (after_ms, before_ms) VALUES (?1, ?2)")?;
        query.execute(params![int(gap.after_ms), int(gap.before_ms)])?;
    }
    Ok(())
}

/// Removes these gaps, and those that were merged into them when they were read.
pub(super) fn remove(gaps: &[Gap], conn: &Connection) -> Done<()> {
    let mut query =
        conn.prepare_cached("DELETE FROM gaps WHERE after_ms >= ?1 AND before_ms <= ?2")?;
    for gap in gaps {
        query.execute(params![int(gap.after_ms), int(gap.before_ms)])?;
    }
    Ok(())
}

/// Confirms that no files of tasks in these gaps are left.
#[derive(Debug)]
pub(super) struct CloseGaps(pub(super) Vec<Gap>);

impl WriterStep for CloseGaps {
    type Output = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Done<()> {
        remove(&self.0, batch.conn)?;
        batch.gaps_mut().close(&self.0);
        Ok(())
    }
}
