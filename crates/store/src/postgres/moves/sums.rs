//! Values derived from all tasks of a filled store: sums of projects, and the place of the next
//! task.

use tokio_postgres::Client;

use crate::postgres::fault::Done;
use crate::postgres::rows;
use crate::postgres::statement::Statement;
use crate::stored::int;

/// The statements that write them. `newest_ms`: creation time of the newest task ever accepted.
pub(super) async fn write(client: &Client, newest_ms: u64) -> Done<Vec<Statement>> {
    let remove = Statement::new("DELETE FROM projects");
    let sum = Statement::new(
        "INSERT INTO projects (name, bytes, tasks, waiting, unfinished) \
         SELECT project, sum(charged_bytes), count(*) FILTER (WHERE phase <> 'expired'), \
         count(*) FILTER (WHERE phase = 'waiting'), count(*) FILTER (WHERE phase IN ('waiting', 'running')) \
         FROM tasks GROUP BY project",
    );
    // The newest task may be gone, and its project unknown: a project without a name represents it,
    // in the place behind all tasks.
    let ever = Statement::new(
        "INSERT INTO projects (name, newest_ms, newest_seq) \
         SELECT '', $1, coalesce(max(seq), 0) + 1 FROM tasks HAVING $1 > 0 ON CONFLICT (name) \
         DO UPDATE SET newest_ms = excluded.newest_ms, newest_seq = excluded.newest_seq",
    );
    let next = "SELECT setval('task_seq', coalesce(max(seq), 0) + 1) FROM tasks";
    Ok(vec![
        remove,
        sum,
        newest(client).await?,
        ever.int(newest_ms),
        Statement::new(next),
    ])
}

/// The last task of each project.
async fn newest(client: &Client) -> Done<Statement> {
    let last =
        "SELECT DISTINCT ON (project) project, seq, id FROM tasks ORDER BY project, seq DESC";
    let (mut names, mut times, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for row in &Statement::new(last).run(client).await? {
        let id = rows::parse_id(row.try_get(2)?)?;
        names.push(row.try_get::<_, String>(0)?);
        places.push(row.try_get::<_, i64>(1)?);
        times.push(int(id.created_at_ms()));
    }
    let update = "UPDATE projects p SET newest_ms = n.newest_ms, newest_seq = n.newest_seq \
                  FROM unnest($1, $2, $3) AS n(name, newest_ms, newest_seq) WHERE p.name = n.name";
    Ok(Statement::new(update).texts(names).ints(times).ints(places))
}
