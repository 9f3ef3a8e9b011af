//! The state of a store for operators: the queue, running tasks, recent ends and live workers.

use kinora_contract::UnixMs;
use kinora_contract::limits::OVERVIEW_RUNNING_MAX;

use super::workers;
use crate::operators::LATELY_MS;
use crate::present::Present;
use crate::sql::{Dialect, Query, Row, Script, Unreadable};
use crate::{Overview, RunningTask};

/// Reads the state of a store. Changes nothing, so a reader runs it.
pub(crate) struct ReadOverview {
    pub(crate) dialect: Dialect,
    /// The time by which workers announce themselves.
    pub(crate) now: Present,
}

impl Script for ReadOverview {
    type Output = Overview;

    fn statements(&self, _: UnixMs) -> Vec<Query> {
        let since_ms = self.now.wall_ms.saturating_sub(LATELY_MS);
        vec![
            self.queue(),
            self.running(),
            self.ended().bind(since_ms),
            workers::announced(self.dialect).query,
        ]
    }

    fn output(&self, answers: &[Vec<Row>]) -> Result<Overview, Unreadable> {
        let [queue, running, ended, workers] = answers else {
            return Err(Unreadable("an answer is missing".to_owned()));
        };
        let workers = workers.iter().map(workers::announced(self.dialect).read);
        let workers = workers.collect::<Result<_, _>>()?;
        let mut overview = Overview {
            now_ms: self.now.wall_ms,
            workers: workers::living(workers, &self.now)?,
            ..Overview::default()
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
            Dialect::Sqlite => {
                "CASE WHEN json_valid(spec) THEN coalesce(json_extract(spec, '$.model'), '') ELSE '' END"
            }
            Dialect::Postgres => "model",
        }
    }

    /// Asks for unfinished tasks by model, and whether they run.
    fn queue(&self) -> Query {
        let columns = |is_running: &str| {
            let model = self.model();
            format!("SELECT {model}, {is_running}, count(*), min(created_at_ms) FROM tasks WHERE")
        };
        Query::new(match self.dialect {
            Dialect::Sqlite => format!(
                "{} phase IN ('waiting', 'running') GROUP BY 1, 2",
                columns("phase = 'running'")
            ),
            // By the index of each place in the queue.
            Dialect::Postgres => {
                let part = |place: u16| {
                    let columns = columns(&format!("{place} = 4"));
                    format!("{columns} place = {place} GROUP BY model")
                };
                [1, 2, 3, 4].map(part).join(" UNION ALL ")
            }
        })
    }

    fn running(&self) -> Query {
        let ask = format!(
            "SELECT id, project, {}, progress, attempt, coalesce(started_at_ms, created_at_ms), \
             coalesce(worker, '') FROM tasks WHERE {} ORDER BY 6, seq LIMIT $1",
            self.model(),
            self.dialect.is_running()
        );
        Query::new(ask).bind(OVERVIEW_RUNNING_MAX as u64)
    }

    /// `None` for a row that cannot be read, which must not hide the others.
    fn read_running(&self, row: &Row) -> Option<RunningTask> {
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
    fn ended(&self) -> Query {
        Query::new(match self.dialect {
            Dialect::Sqlite => {
                "SELECT count(*) FILTER (WHERE t.phase = 'completed'), count(*) FILTER (WHERE t.phase = 'failed') \
                 FROM usage u CROSS JOIN tasks t ON t.project = u.project AND t.finished_at_ms > $1"
            }
            Dialect::Postgres => {
                "SELECT coalesce(sum(e.completed), 0)::bigint, coalesce(sum(e.failed), 0)::bigint \
                 FROM projects p CROSS JOIN LATERAL \
                 (SELECT count(*) FILTER (WHERE phase = 'completed') AS completed, \
                 count(*) FILTER (WHERE phase = 'failed') AS failed FROM tasks t \
                 WHERE t.project = p.name AND t.finished_at_ms > $1) e"
            }
        })
    }
}
