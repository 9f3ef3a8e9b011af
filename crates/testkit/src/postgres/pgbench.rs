//! Raw statements by `pgbench`, for benchmarks to be compared with.

use std::fs;

use crate::postgres::{Server, USER};

impl Server {
    /// Transactions per second of `script` in the database with this address, by `clients` connections for `seconds`,
    /// with prepared statements.
    ///
    /// # Panics
    /// Where `pgbench` is not installed or fails.
    pub fn pgbench(&self, url: &str, script: &str, clients: u32, seconds: u32) -> f64 {
        let path = self.folder.join("script.sql");
        fs::write(&path, script).expect("the script is written");
        let mut command = self.programs.command("pgbench", &self.folder);
        command.args(["--no-vacuum", "--protocol=prepared", "--jobs=1"]);
        command.arg(format!("--client={clients}"));
        command.arg(format!("--time={seconds}"));
        command.arg("--file").arg(&path);
        command.args(["--host=127.0.0.1", "--username", USER]);
        command.arg(format!("--port={}", self.port));
        let done = command
            .arg(url.rsplit('/').next().unwrap_or(url))
            .output()
            .expect("pgbench runs");
        let told = String::from_utf8_lossy(&done.stdout);
        let rate = told.lines().find_map(|line| line.strip_prefix("tps = "));
        let rate = rate.and_then(|rest| rest.split(' ').next()?.parse().ok());
        rate.unwrap_or_else(|| {
            panic!("pgbench: {told}{}", String::from_utf8_lossy(&done.stderr));
        })
    }
}
