//! What the server does without Kinora: rows with the columns and indexes of tasks, written and read by none of the rules.

use crate::postgres::Server;

/// Length of one measurement.
const SECONDS: u32 = 4;
const COLUMNS: &str = "id, seq, project, model, phase, place, progress, attempt, deaths, created_at_ms, spec_version, \
                       spec, metadata, cost, reference_bytes, charged_bytes, fetch_state, fetch_tries";
const ROW: &str = "'project', 'kinora-a1', 'waiting', 1, 0, 0, 0, 1790000000000, 1, repeat('specification ', 45), '{}', \
                   1, 0, 0, 0, 0";

impl Server {
    /// Rows a second of durable inserts of `rows` each, by so many connections to a database with Kinora's schema.
    ///
    /// # Panics
    /// As [`Server::pgbench`].
    pub fn raw_inserts(&self, url: &str, rows: u32, connections: u32) -> f64 {
        self.run(url, "CREATE TABLE raw (LIKE tasks INCLUDING ALL)");
        let script = format!(
            "INSERT INTO raw ({COLUMNS}) SELECT gen_random_uuid()::text, nextval('task_seq'), {ROW} \
             FROM generate_series(1, {rows});"
        );
        let rate = self.pgbench(url, &script, connections, SECONDS) * f64::from(rows);
        self.run(url, "DROP TABLE raw");
        rate
    }

    /// Selects a second of one stored task each, by so many connections.
    ///
    /// # Panics
    /// As [`Server::pgbench`].
    pub fn raw_selects(&self, url: &str, connections: u32) -> f64 {
        self.run(
            url,
            "CREATE TABLE numbered AS SELECT row_number() OVER () AS number, id FROM tasks LIMIT 1000",
        );
        self.run(url, "CREATE UNIQUE INDEX ON numbered (number)");
        let script = "\\set number random(1, 1000)\n\
            SELECT t.* FROM tasks t JOIN numbered n USING (id) WHERE n.number = :number;";
        let rate = self.pgbench(url, script, connections, SECONDS);
        self.run(url, "DROP TABLE numbered");
        rate
    }
}
