//! A standby of a server, which takes its place when that is killed.

use std::path::Path;

use rustix::process::Signal;

use super::{Server, Settings, assert_done, free_port, new_folder, wait_until};
use crate::postgres::programs::Programs;

impl Server {
    /// Starts a standby of this server on `port` (`None`: any). From when it returns, this server acknowledges a commit
    /// only after the standby has it on disk.
    ///
    /// # Panics
    /// Where that cannot be done.
    pub fn standby(&self, port: Option<u16>) -> Self {
        let (programs, folder) = (Programs::find(), new_folder(true));
        let mut copy = programs.command("pg_basebackup", &folder);
        copy.args([
            "-h",
            "127.0.0.1",
            "-U",
            super::USER,
            "-p",
            &self.port().to_string(),
        ]);
        copy.args(["-R", "-X", "stream", "--checkpoint=fast", "--no-sync", "-D"]);
        let made = copy.arg(folder.join("data")).output();
        assert_done(&made.expect("pg_basebackup runs"), "pg_basebackup");
        let port = port.unwrap_or_else(free_port);
        let standby = Self::in_folder(folder, programs, Settings::default(), port);
        self.run(
            "postgres",
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
        );
        self.run("postgres", "SELECT pg_reload_conf()");
        let is_followed = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        let follows = || self.run("postgres", is_followed) == "1";
        wait_until(follows, "the standby does not follow");
        standby
    }

    /// Ends the server by `kill -9`, for good.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Makes a standby take writes.
    ///
    /// # Panics
    /// Where it is none.
    pub fn promote(&self) {
        assert_eq!(self.run("postgres", "SELECT pg_promote()"), "t");
    }

    /// Where the server keeps its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
