//! Queries about the whole service: the queue, running tasks, recent ends, live workers, pauses, and sums by
//! day, project and model. Each reads an index or a small table; none scans ended tasks.

use kinora_contract::limits::OVERVIEW_RUNNING_MAX;
use kinora_contract::{TaskId, TaskTally, UnixMs};

use crate::operators::LATELY_MS;
use crate::present_time::PresentTime;
use crate::sql::{SqlDialect, SqlQuery, SqlRow, SqlScript, TypedQuery, UnreadableValue};
use crate::tables::{pauses, workers};
use crate::{EndedRequest, RunningTask, ServiceOverview, TallyRequest, TallyRow};

/// Reads the state of a store. Changes nothing, so a reader runs it.
pub(crate) struct ReadOverview {
    pub(crate) dialect: SqlDialect,
    /// The time by which workers announce themselves.
    pub(crate) now: PresentTime,
}

impl SqlScript for ReadOverview {
    type Output = ServiceOverview;

    fn statements(&self, _: UnixMs) -> Vec<SqlQuery> {
        let since_ms = self.now.wall_ms.saturating_sub(LATELY_MS);
        vec![
            self.queue(),
            self.running(),
            self.ended().bind(since_ms),
            workers::announced(self.dialect).query,
            pauses::current().query,
        ]
    }

    fn output(&self, answers: &[Vec<SqlRow>]) -> Result<ServiceOverview, UnreadableValue> {
        // One answer for each of the statements above, in their order.
        let [queue, running, ended, workers, pauses] = answers else {
            return Err(UnreadableValue("an answer is missing".to_owned()));
        };
        let workers = workers.iter().map(workers::announced(self.dialect).read);
        let workers = workers.collect::<Result<_, _>>()?;
        let pauses = pauses.iter().map(pauses::current().read);
        let mut overview = ServiceOverview {
            pauses: pauses.collect::<Result<_, _>>()?,
            now_ms: self.now.wall_ms,
            workers: workers::living(workers, &self.now)?,
            ..ServiceOverview::default()
        };
        for row in queue {
            let (model, is_running): (String, u64) = (row.get(0)?, row.get(1)?);
            overview.count(&model, is_running == 1, row.get(2)?, row.get(3)?);
        }
        let running = running.iter().filter_map(|row| self.read_running(row));
        overview.running.extend(running);
        if let Some(row) = ended.first() {
            overview.completed_lately = row.get(0)?;
            overview.failed_lately = row.get(1)?;
        }
        Ok(overview)
    }
}

impl ReadOverview {
    /// The model of a task; empty if its spec cannot be read.
    const fn model(&self) -> &'static str {
        match self.dialect {
            SqlDialect::Sqlite => {
                "CASE WHEN json_valid(spec) THEN coalesce(json_extract(spec, '$.model'), '') ELSE '' END"
            }
            SqlDialect::Postgres => "model",
        }
    }

    /// Asks for unfinished tasks by model, and whether they run.
    fn queue(&self) -> SqlQuery {
        let columns = |is_running: &str| {
            let model = self.model();
            format!("SELECT {model}, {is_running}, count(*), min(created_at_ms) FROM tasks WHERE")
        };
        SqlQuery::new(match self.dialect {
            SqlDialect::Sqlite => format!(
                "{} phase IN ('waiting', 'running') GROUP BY 1, 2",
                columns("phase = 'running'")
            ),
            // One part for each place in the queue, so that each uses the partial index of its place.
            SqlDialect::Postgres => {
                let parts = [1, 2, 3, 4].map(|place| {
                    let columns = columns(&format!("{place} = 4"));
                    format!("{columns} place = {place} GROUP BY model")
                });
                parts.join(" UNION ALL ")
            }
        })
    }

    fn running(&self) -> SqlQuery {
        let ask = format!(
            "SELECT id, project, {}, progress, attempt, coalesce(started_at_ms, created_at_ms), \
             coalesce(worker, '') FROM tasks WHERE {} ORDER BY 6, seq LIMIT $1",
            self.model(),
            self.dialect.is_running()
        );
        SqlQuery::new(ask).bind(OVERVIEW_RUNNING_MAX as u64)
    }

    /// `None` for a row that cannot be read, which must not hide the others.
    fn read_running(&self, row: &SqlRow) -> Option<RunningTask> {
        let id: String = row.get(0).ok()?;
        let begun_ms = row.get(5).ok()?;
        Some(RunningTask {
            id: id.parse().ok()?,
            project: row.get(1).ok()?,
            model: row.get(2).ok()?,
            progress: u8::try_from(row.get::<u16>(3).ok()?).unwrap_or(0),
            attempt: row.get(4).ok()?,
            since_ms: self.now.wall_ms.saturating_sub(begun_ms),
            worker: row.get(6).ok()?,
        })
    }

    /// Asks for the ends since `$1`, by the index of each project's ended tasks. A project has a row
    /// while it has any tasks.
    fn ended(&self) -> SqlQuery {
        SqlQuery::new(match self.dialect {
            SqlDialect::Sqlite => {
                "SELECT count(*) FILTER (WHERE t.phase = 'completed'), count(*) FILTER (WHERE t.phase = 'failed') \
                 FROM usage u CROSS JOIN tasks t ON t.project = u.project AND t.finished_at_ms > $1"
            }
            SqlDialect::Postgres => {
                "SELECT coalesce(sum(e.completed), 0)::bigint, coalesce(sum(e.failed), 0)::bigint \
                 FROM projects p CROSS JOIN LATERAL \
                 (SELECT count(*) FILTER (WHERE phase = 'completed') AS completed, \
                 count(*) FILTER (WHERE phase = 'failed') AS failed FROM tasks t \
                 WHERE t.project = p.name AND t.finished_at_ms > $1) e"
            }
        })
    }
}

/// Asks for the tasks of a project that ended at `from_ms` or later, those that ended last first;
/// `None` for one with an unreadable id.
pub(crate) fn ended(
    request: &EndedRequest,
    from_ms: UnixMs,
) -> TypedQuery<Option<(UnixMs, TaskId)>> {
    let ask = "SELECT finished_at_ms, id FROM tasks WHERE project = $1 AND finished_at_ms >= $2 \
               AND phase IN ('completed', 'failed') ORDER BY finished_at_ms DESC, id DESC LIMIT $3";
    TypedQuery {
        query: SqlQuery::new(ask)
            .bind(&request.project)
            .bind(from_ms)
            .bind(request.limit as u64),
        read: |row| {
            let id = row.get(1).ok().and_then(|id: String| id.parse().ok());
            Ok(id.zip(row.get(0)?).map(|(id, at_ms)| (at_ms, id)))
        },
    }
}

/// Asks for sums, by day, project and model.
pub(crate) fn sums(request: &TallyRequest) -> TypedQuery<TallyRow> {
    let ask = "SELECT day, project, model, completed, failed, cancelled, video_ms, engine_ms, cost_micros FROM tallies \
               WHERE day BETWEEN $1 AND $2 AND ($3 IS NULL OR project = $3) AND ($4 IS NULL OR model = $4) \
               ORDER BY day, project, model";
    TypedQuery {
        query: SqlQuery::new(ask)
            .bind(request.since.unwrap_or(0))
            .bind(request.until.unwrap_or(u64::MAX))
            .bind(request.project.clone())
            .bind(request.model.clone()),
        read: |row| {
            Ok(TallyRow {
                day: row.get(0)?,
                project: row.get(1)?,
                model: row.get(2)?,
                tally: TaskTally {
                    completed: row.get(3)?,
                    failed: row.get(4)?,
                    cancelled: row.get(5)?,
                    video_ms: row.get(6)?,
                    engine_ms: row.get(7)?,
                    cost_micros: row.get(8)?,
                },
            })
        },
    }
}

/// Adds to the sums of a day.
pub(crate) fn add(row: &TallyRow) -> SqlQuery {
    let add = "INSERT INTO tallies AS t (day, project, model, completed, failed, cancelled, video_ms, engine_ms, \
               cost_micros) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (day, project, model) DO UPDATE SET \
               completed = t.completed + excluded.completed, failed = t.failed + excluded.failed, \
               cancelled = t.cancelled + excluded.cancelled, video_ms = t.video_ms + excluded.video_ms, \
               engine_ms = t.engine_ms + excluded.engine_ms, cost_micros = t.cost_micros + excluded.cost_micros";
    let tally = &row.tally;
    SqlQuery::new(add)
        .bind(row.day)
        .bind(&row.project)
        .bind(&row.model)
        .bind(tally.completed)
        .bind(tally.failed)
        .bind(tally.cancelled)
        .bind(tally.video_ms)
        .bind(tally.engine_ms)
        .bind(tally.cost_micros)
}
