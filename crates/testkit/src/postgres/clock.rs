//! A server whose clock a test sets, for the sessions of one database: a function that hides the server's own.

use crate::postgres::Server;

impl Server {
    /// Sets the clock that new sessions of this database read: `shows` is an expression that gives the time.
    ///
    /// # Panics
    /// Where the server refuses it.
    pub fn show_time(&self, database: &str, shows: &str) {
        let name = database.rsplit('/').next().unwrap_or(database);
        self.run(
            database,
            &format!(
                "CREATE SCHEMA IF NOT EXISTS moved; CREATE OR REPLACE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE \
                 AS $$ SELECT {shows} $$; \
                 ALTER DATABASE {name} SET search_path = moved, pg_catalog, public"
            ),
        );
    }

    /// Sets that clock so many seconds ahead of the machine's, or behind it.
    ///
    /// # Panics
    /// Where the server refuses it.
    pub fn move_clock(&self, database: &str, ahead_s: i64) {
        let shows = format!("pg_catalog.clock_timestamp() + interval '{ahead_s} seconds'");
        self.show_time(database, &shows);
    }

    /// Stops that clock at this time, in milliseconds since 1970.
    ///
    /// # Panics
    /// Where the server refuses it.
    pub fn stop_clock(&self, database: &str, at_ms: u64) {
        self.show_time(database, &format!("to_timestamp({at_ms}::numeric / 1000)"));
    }

    /// Gives new sessions of this database the machine's clock again.
    ///
    /// # Panics
    /// Where the server refuses it.
    pub fn reset_clock(&self, database: &str) {
        let name = database.rsplit('/').next().unwrap_or(database);
        let reset = format!("ALTER DATABASE {name} RESET search_path; DROP SCHEMA moved CASCADE");
        self.run(database, &reset);
    }
}
