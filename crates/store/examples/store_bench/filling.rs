//! Fills a store: one task of each kind by the interface, the others as copies of its row.

use std::fmt::Write as _;
use std::ops::Range;

use kinora_store::StoreHandles;
use kinora_testkit::postgres::Server;
use rusqlite::{Connection, params};

use crate::Failure;
use crate::subjects::{Backing, NOW_MS, PROJECT, artifact, claiming_one, id, opened, task};

/// When finished tasks expire.
pub(crate) const EXPIRY_MS: u64 = NOW_MS + 100_000_000;

/// A store with so many finished tasks, whose numbers begin at 0, and so many queued ones, which follow.
pub(crate) async fn filled(
    backing: &Backing,
    name: &str,
    finished: u64,
    queued: u64,
) -> Result<StoreHandles, Failure> {
    let url = backing.empty(name).await?;
    let stores = opened(&url).await?;
    stores.tasks.insert(task(id(0), PROJECT)).await?;
    for claim in stores.work.claim(claiming_one(0)).await? {
        let done = Ok(artifact());
        let done = stores.work.finish(&claim.lease, done, EXPIRY_MS - NOW_MS);
        done.await?;
    }
    stores.tasks.insert(task(id(finished), PROJECT)).await?;
    drop(stores);
    let copies = [
        (0, 1..finished),
        (finished, finished + 1..finished + queued),
    ];
    match backing {
        Backing::Folder(_) => copy_in_sqlite(url.trim_start_matches("sqlite:"), copies)?,
        Backing::Server(server) => copy_in_postgres(server, &url, copies),
    }
    opened(&url).await
}

const COLUMNS: &str = "project, phase, progress, attempt, engine, created_at_ms, started_at_ms, \
    finished_at_ms, expires_at_ms, lease_token, lease_until_ms, worker, artifact, failure, \
    spec_version, spec, metadata, warnings, reference_bytes, charged_bytes";

fn copy_in_sqlite(path: &str, copies: [(u64, Range<u64>); 2]) -> Result<(), Failure> {
    let mut raw = Connection::open(path)?;
    let copying = raw.transaction()?;
    let more = format!("{COLUMNS}, kept, references_ready");
    for (of, numbers) in copies {
        let mut query = copying.prepare(&format!(
            "INSERT INTO tasks (seq, id, {more}) SELECT ?1, ?2, {more} FROM tasks WHERE id = ?3"
        ))?;
        for number in numbers {
            let backing = i64::try_from(number + 10_000_000)?;
            query.execute(params![backing, id(number).to_string(), id(of).to_string()])?;
        }
    }
    copying.execute(
        "UPDATE usage SET tasks = (SELECT count(*) FROM tasks), \
         bytes = (SELECT sum(charged_bytes) FROM tasks)",
        [],
    )?;
    copying.commit()?;
    raw.execute_batch("ANALYZE")?;
    Ok(())
}

fn copy_in_postgres(server: &Server, url: &str, copies: [(u64, Range<u64>); 2]) {
    let more = format!("{COLUMNS}, model, backing, deaths, cost, fetch_state, fetch_tries");
    let mut script = "CREATE TEMP TABLE copies (backing bigint, id text, of text);\n\
        COPY copies FROM STDIN;\n"
        .to_owned();
    for (of, numbers) in copies {
        for number in numbers {
            let _ = writeln!(
                script,
                "{}\t{}\t{}",
                number + 10_000_000,
                id(number),
                id(of)
            );
        }
    }
    let of = |column: &str| format!("t.{column}");
    let read: Vec<String> = more.split(", ").map(of).collect();
    let _ = write!(
        script,
        "\\.\n\
        INSERT INTO tasks (seq, id, {more}) SELECT c.backing, c.id, {} FROM copies c JOIN tasks t ON t.id = c.of;\n\
        SELECT setval('task_seq', 1000000000);\n\
        UPDATE projects SET tasks = n.tasks, bytes = n.bytes, waiting = n.waiting, unfinished = n.waiting FROM \
        (SELECT project, count(*) AS tasks, sum(charged_bytes) AS bytes, count(*) FILTER (WHERE backing = 1) AS waiting \
        FROM tasks GROUP BY project) n WHERE n.project = name;\n",
        read.join(", ")
    );
    server.run(url, &script);
    server.run(url, "VACUUM (ANALYZE)");
    server.run(url, "CHECKPOINT");
}
