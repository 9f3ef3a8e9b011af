//! PgBouncer in transaction mode before a server: each transaction may be done on another connection.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::{Server, USER, WATCH, free_port, new_folder, wait_until};
use crate::postgres::programs::Programs;

/// A running PgBouncer; stopped when dropped.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    running: Child,
}

impl Pooler {
    /// Starts one before `server`, with `connections` for each database. `None` where PgBouncer is not installed.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn before(server: &Server, connections: u32) -> Option<Self> {
        Self::that_ignores(server, connections, "")
    }

    /// The same; it ignores these parameters of a client's connection instead of refusing them.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn that_ignores(server: &Server, connections: u32, ignored: &str) -> Option<Self> {
        let program = find()?;
        let (folder, port) = (new_folder(false), free_port());
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = {connections}\nmax_client_conn = 1000\n\
             ignore_startup_parameters = {ignored}\n",
            server.port(),
            folder.join("users").display(),
        );
        fs::write(folder.join("settings"), settings).expect("its settings");
        fs::write(folder.join("users"), format!("\"{USER}\" \"\"\n")).expect("its users");
        let mut command = Programs::find().command("sh", &folder);
        command.arg("-c").arg(WATCH).arg("sh").arg(&folder);
        command.arg("TERM");
        command.arg(program).arg(folder.join("settings"));
        let running = command.stdin(Stdio::piped()).spawn();
        let pooler = Self {
            port,
            running: running.expect("PgBouncer starts"),
        };
        let answers = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        wait_until(answers, "PgBouncer does not start");
        Some(pooler)
    }

    /// The address through it of the database at `url`.
    pub fn address_of(&self, url: &str) -> String {
        let name = url.rsplit('/').next().unwrap_or_default();
        format!("postgres://{USER}@127.0.0.1:{}/{name}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // Its watcher stops it and removes the folder.
        drop(self.running.stdin.take());
        let _ = self.running.wait();
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push(Path::new("/usr/sbin").to_owned());
    let programs = folders.into_iter().map(|folder| folder.join("pgbouncer"));
    programs.into_iter().find(|program| program.is_file())
}
