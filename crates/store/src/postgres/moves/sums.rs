//! What follows from all tasks of a store that was filled: sums of projects, and the place of the next task.

use tokio_postgres::Client;

use crate::postgres::fault::Done;
use crate::postgres::rows;
use crate::postgres::statement::Statement;
use crate::stored::int;

/// The statements that write them. `newest_ms`: when the newest task ever accepted was created, which may be gone.
pub(super) async fn write(client: &Client, newest_ms: u64) -> Done<Vec<Statement>> {
    let remove = Statement::new("DELETE FROM projects");
    let sum = Statement::new(
        "INSERT INTO projects (name, bytes, tasks, waiting, unfinished) \
         SELECT project, sum(charged_bytes), count(*) FILTER (WHERE phase <> 'expired'), \
         count(*) FILTER (WHERE phase = 'waiting'), count(*) FILTER (WHERE phase IN ('waiting', 'running')) \
         FROM tasks GROUP BY project",
    );
    let next = "SELECT setval('task_seq', coalesce(max(seq), 0) + 1, false) FROM tasks";
    let next = Statement::new(next);
    Ok(vec![remove, sum, newest(client, newest_ms).await?, next])
}

/// The last task of each project. That of the project that had the last task of all stands for the newest one ever.
async fn newest(client: &Client, newest_ms: u64) -> Done<Statement> {
    let last =
        "SELECT DISTINCT ON (project) project, seq, id FROM tasks ORDER BY project, seq DESC";
    let mut projects = Vec::new();
    for row in &Statement::new(last).run(client).await? {
        let id = rows::parse_id(row.try_get(2)?)?;
        let seq: i64 = row.try_get(1)?;
        projects.push((seq, row.try_get::<_, String>(0)?, int(id.created_at_ms())));
    }
    projects.sort_unstable();
    if let Some((.., last_ms)) = projects.last_mut() {
        *last_ms = int(newest_ms);
    }
    let update = "UPDATE projects p SET newest_ms = n.newest_ms, newest_seq = n.newest_seq \
                  FROM unnest($1, $2, $3) AS n(name, newest_ms, newest_seq) WHERE p.name = n.name";
    let names = projects.iter().map(|(_, name, _)| name.clone()).collect();
    let times = projects.iter().map(|(.., at_ms)| *at_ms).collect();
    let places = projects.iter().map(|(seq, ..)| *seq).collect();
    Ok(Statement::new(update).texts(names).ints(times).ints(places))
}
