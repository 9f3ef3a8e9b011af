//! A copy of the queue for looking up positions, read again regularly while clients ask, since
//! other processes change the queue too. Between two readings it follows the changes of this
//! process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kinora_contract::{Priority, Stopwatch, TaskId};
use tokio::sync::OwnedMutexGuard;

use super::fault::PostgresFault;
use super::reads::StoreReader;
use super::rows::parse_id;
use super::session::SqlStatement;
use super::shared::SharedState;
use crate::StoreError;
use crate::queue::{
    POSITIONS_MAX, ProjectTurns, QueuePlace, QueueSnapshot, RunningEntry, WaitingEntry,
};

/// Maximum number of tasks of each model that are read in each place of the queue, shared evenly by
/// the projects: tasks further back have no position.
const READ_MAX: u64 = 5_000;
/// Age of a reading at which the next one starts, as a multiple of the time that it took.
const REST: u32 = 10;

/// Decides when to read the queue again.
#[derive(Clone, Debug, Default)]
pub(super) struct SnapshotRefresher {
    last: Arc<Mutex<Option<QueueReadingTime>>>,
    /// One reads at a time.
    reading: Arc<ReadingLock>,
}

type ReadingLock = tokio::sync::Mutex<()>;

/// A reading of the queue.
#[derive(Clone, Debug)]
struct QueueReadingTime {
    since: Stopwatch,
    took: Duration,
}

/// The age of the last reading, which decides whether to read again.
enum ReadingAge {
    Young,
    /// Still shown, while the next reading is made.
    Middle,
    Old,
}

impl SnapshotRefresher {
    /// Reads the queue, if the last reading is too old.
    pub(super) async fn refresh(
        &self,
        reader: &Arc<StoreReader>,
        shared: &Arc<SharedState>,
    ) -> Result<(), StoreError> {
        let held = match self.age(shared) {
            ReadingAge::Young => return Ok(()),
            ReadingAge::Middle => match self.reading.clone().try_lock_owned() {
                Ok(held) => Some(held),
                Err(_) => return Ok(()),
            },
            ReadingAge::Old => None,
        };
        let is_early = held.is_some();
        let (snapshots, from, to) = (self.clone(), reader.clone(), shared.clone());
        let refreshed = async move { snapshots.refresh_now(held, &from, &to).await };
        if is_early {
            reader.connector().spawn(async move {
                // The next caller that finds the last one too old tries again.
                let _ = refreshed.await;
            });
            return Ok(());
        }
        reader.connector().run(refreshed).await
    }

    async fn refresh_now(
        &self,
        held: Option<OwnedMutexGuard<()>>,
        reader: &StoreReader,
        shared: &SharedState,
    ) -> Result<(), StoreError> {
        let is_early = held.is_some();
        let _held = match held {
            Some(held) => held,
            // All callers that need a new reading wait here for the first one, and then use its result.
            None => self.reading.clone().lock_owned().await,
        };
        if !is_early && !matches!(self.age(shared), ReadingAge::Old) {
            return Ok(());
        }
        let since = Stopwatch::start(&shared.clock);
        let snapshot = read_queue(reader).await?;
        shared.estimates.replace(snapshot);
        let took = since.elapsed();
        *self.last() = Some(QueueReadingTime { since, took });
        Ok(())
    }

    fn age(&self, shared: &SharedState) -> ReadingAge {
        let age_max = Duration::from_millis(shared.options.positions_ms_max);
        let last = self.last();
        let Some(QueueReadingTime { since, took }) = last.as_ref().filter(|_| !age_max.is_zero())
        else {
            return ReadingAge::Old;
        };
        // A queue that takes 2 s to read is read every 20 s, whatever the setting: the database spends at most
        // a tenth of a connection on positions.
        let (age, age_max) = (since.elapsed(), age_max.max(REST * *took));
        if age < age_max / 2 {
            ReadingAge::Young
        } else if age < age_max {
            ReadingAge::Middle
        } else {
            ReadingAge::Old
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<QueueReadingTime>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The query for the heads of the projects' lines. It uses the index of each model's line, so that the work
/// does not grow with the queue.
fn select_queue() -> SqlStatement {
    let columns =
        "p.name, p.turn, t.id, t.seq, t.model, t.cost, t.place, t.progress, q.turn_now, t.priority";
    // The recursion is a loose index scan (<https://wiki.postgresql.org/wiki/Loose_indexscan>): the first
    // model of a project, then each time the next greater one. DISTINCT would read all waiting tasks.
    let lines = [1, 2].map(|place: i16| {
        let next = format!("SELECT model FROM tasks WHERE project = p.name AND place = {place}");
        let first = format!("({next} ORDER BY model LIMIT 1)");
        let others = format!("({next} AND model > m.model ORDER BY model LIMIT 1)");
        format!(
            "(SELECT {columns} FROM queue q CROSS JOIN (\
               SELECT name, turn, least($1 / count(*) OVER () + 1, $2) AS each FROM projects \
               WHERE waiting > 0 ORDER BY turn LIMIT $1\
             ) p CROSS JOIN LATERAL (\
               WITH RECURSIVE m(model) AS ({first} UNION ALL SELECT {others} FROM m WHERE m.model IS NOT NULL) \
               SELECT model FROM m WHERE model IS NOT NULL\
             ) m CROSS JOIN LATERAL (\
               SELECT * FROM tasks WHERE project = p.name AND model = m.model AND place = {place} \
               ORDER BY priority, seq LIMIT p.each) t)"
        )
    });
    // Few tasks at a time are fetched or run, so these need no lines.
    let few = [3, 4].map(|place: i16| {
        format!(
            "(SELECT {columns} FROM queue q CROSS JOIN tasks t JOIN projects p ON p.name = t.project \
             WHERE t.place = {place} LIMIT $1)"
        )
    });
    SqlStatement::new([lines, few].concat().join(" UNION ALL "))
}

async fn read_queue(reader: &StoreReader) -> Result<QueueSnapshot, StoreError> {
    let rows = reader
        .query(select_queue().int(READ_MAX).int(POSITIONS_MAX))
        .await?;
    let (mut waiting, mut running, mut turns) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = 0;
    for row in &rows {
        let number = |at: usize| -> Result<u64, StoreError> {
            let value: i64 = row.try_get(at).map_err(PostgresFault::from)?;
            Ok(value.unsigned_abs())
        };
        let project: Arc<str> = row
            .try_get::<_, &str>(0)
            .map_err(PostgresFault::from)?
            .into();
        turns.push((project.clone(), number(1)?));
        let id: TaskId = parse_id(row.try_get(2).map_err(PostgresFault::from)?)?;
        let model: String = row.try_get(4).map_err(PostgresFault::from)?;
        let (place, progress): (i16, i16) = (
            row.try_get(6).map_err(PostgresFault::from)?,
            row.try_get(7).map_err(PostgresFault::from)?,
        );
        now = number(8)?;
        let cost = number(5)?;
        match place {
            4 => running.push(RunningEntry {
                id,
                project,
                model,
                cost,
                progress: u8::try_from(progress).unwrap_or(0),
            }),
            _ => waiting.push(WaitingEntry {
                id,
                project,
                place: QueuePlace {
                    // A later program may have stored one that is unknown here.
                    priority: Priority::from_rank(row.try_get(9).map_err(PostgresFault::from)?)
                        .unwrap_or_default(),
                    seq: number(3)?,
                },
                model,
                cost,
                claimable: place == 1,
            }),
        }
    }
    Ok(QueueSnapshot {
        waiting,
        running,
        turns: ProjectTurns::from_stored(now, turns),
    })
}
