//! A throw-away PostgreSQL server for tests: made by the programs that are installed in a temporary folder, which is in
//! memory for one without syncs, reached by TCP on the loopback address, and stopped with the process that started it,
//! however that ends. It keeps nothing.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is for tests alone"
)]

mod clock;
mod pgbench;
mod pooler;
mod programs;
mod raw;
mod standby;

pub use pooler::Pooler;

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use programs::{Programs, own};

/// Only a server that is broken takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Free bytes of `/dev/shm` with which a server may be there. Some are there at a time, of which each takes 2 GB at most.
const MEMORY_MIN: u64 = 8 << 30;
/// The database user. Everybody on this machine may connect as it: there is nothing to be had.
const USER: &str = "kinora";

/// Stops the server when the process at the other end of its standard input has ended, and removes its folder.
const WATCH: &str = r#"
folder="$1"; signal="$2"; shift 2
"$@" >"$folder/log" 2>&1 &
server=$!
read -r _
kill -"$signal" "$server" 2>/dev/null
wait "$server"
rm -rf "$folder"
"#;

/// How a server is set up.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Whether commits are synced to disk, as in earnest.
    pub fsync: bool,
    /// Files that the server alone may read, by name and contents; from its data folder, `..` is where they are.
    pub files: Vec<(&'static str, String)>,
    /// More settings, as `name=value`.
    pub more: Vec<String>,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    folder: PathBuf,
    programs: Programs,
    settings: Settings,
    port: u16,
    running: Mutex<Option<Child>>,
    databases: AtomicU64,
}

impl Server {
    /// The server that all tests of this program share, without syncs; started at the first call.
    ///
    /// # Panics
    /// Where no PostgreSQL is installed, or it does not start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Settings::default()))
    }

    /// Starts a server of its own.
    ///
    /// # Panics
    /// As [`Server::shared`].
    pub fn start(settings: Settings) -> Self {
        let (programs, folder) = (Programs::find(), new_folder(!settings.fsync));
        let made = programs
            .command("initdb", &folder)
            .arg("--pgdata")
            .arg(folder.join("data"))
            .args([
                "--username",
                USER,
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ])
            .output()
            .expect("initdb runs");
        assert_done(&made, "initdb");
        Self::in_folder(folder, programs, settings, free_port())
    }

    /// Starts the server whose data is in this folder.
    fn in_folder(folder: PathBuf, programs: Programs, settings: Settings, port: u16) -> Self {
        for (name, contents) in &settings.files {
            let file = folder.join(name);
            fs::write(&file, contents).expect("a file");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("its mode");
            own(&file);
        }
        let server = Self {
            port,
            folder,
            programs,
            settings,
            running: Mutex::new(None),
            databases: AtomicU64::new(0),
        };
        server.resume();
        server
    }

    /// Stops the server at once, as a crash does: its connections break.
    pub fn stop(&self) {
        let child = self.running.lock().unwrap().take();
        if let Some(mut child) = child {
            self.signal(rustix::process::Signal::QUIT);
            // Not by its standard input, which would remove the folder.
            child.kill().unwrap();
            child.wait().unwrap();
            let gone = || !self.folder.join("data/postmaster.pid").exists();
            wait_until(gone, "the server does not stop");
        }
    }

    /// To the server's first process.
    fn signal(&self, signal: rustix::process::Signal) {
        let pid = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap_or_default();
        let pid = pid.lines().next().and_then(|pid| pid.parse().ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Starts it again on the same port, with all its data.
    pub fn resume(&self) {
        let fsync = if self.settings.fsync { "on" } else { "off" };
        let mut command = self.programs.command("sh", &self.folder);
        command.arg("-c").arg(WATCH).arg("sh").arg(&self.folder);
        command.arg("QUIT");
        command.arg(self.programs.path("postgres"));
        command.arg("-D").arg(self.folder.join("data"));
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        command.arg("-k").arg(&self.folder);
        command.args(["-c", "max_connections=500", "-c", "shared_buffers=64MB"]);
        // In its folder, which goes with it however it ends.
        command.args(["-c", "dynamic_shared_memory_type=mmap"]);
        command.args(["-c", &format!("fsync={fsync}")]);
        for setting in &self.settings.more {
            command.args(["-c", setting]);
        }
        let child = command.stdin(Stdio::piped()).spawn();
        *self.running.lock().unwrap() = Some(child.expect("the server starts"));
        let up = || {
            let asked = self.programs.command("pg_isready", &self.folder);
            self.is_ready(asked)
        };
        wait_until(up, "the server does not start");
    }

    fn is_ready(&self, mut asked: Command) -> bool {
        asked.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        asked.status().is_ok_and(|status| status.success())
    }

    /// What the server has logged so far.
    ///
    /// # Panics
    /// Where there is no log.
    pub fn log(&self) -> String {
        let log = fs::read(self.folder.join("log")).expect("a log");
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The port on the loopback address.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Makes an empty database, and returns its address.
    ///
    /// # Panics
    /// Where that cannot be done.
    pub fn database(&self) -> String {
        self.copy_of("template1")
    }

    /// Makes a copy of this database, to which nobody may be connected, and returns its address.
    ///
    /// # Panics
    /// Where that cannot be done.
    pub fn copy_of(&self, template: &str) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        self.run(
            "postgres",
            &format!("CREATE DATABASE {name} TEMPLATE {template}"),
        );
        format!("postgres://{USER}@127.0.0.1:{}/{name}", self.port)
    }

    /// All tables of the database with this name or address, with their rows, as a script that every version of
    /// [`Server::run`] can read: without the settings of a session and what only one version of `psql` knows.
    ///
    /// # Panics
    /// Where there is no `pg_dump`, or it fails.
    pub fn dump(&self, database: &str) -> String {
        let name = database.rsplit('/').next().unwrap_or(database);
        let mut dump = self.programs.command("pg_dump", &self.folder);
        dump.args([
            "--no-owner",
            "--no-privileges",
            "--no-comments",
            "-h",
            "127.0.0.1",
        ]);
        dump.args(["-U", USER, "-p", &self.port.to_string(), name]);
        let done = dump.output().expect("pg_dump runs");
        assert_done(&done, "pg_dump");
        let text = String::from_utf8_lossy(&done.stdout);
        let skipped = [
            "SET ",
            "SELECT pg_catalog.set_config",
            "--",
            "\\restrict",
            "\\unrestrict",
        ];
        let lines = text.lines().filter(|line| {
            !line.is_empty() && !skipped.iter().any(|begin| line.starts_with(begin))
        });
        lines.flat_map(|line| [line, "\n"]).collect()
    }

    /// Runs a statement in the database with this name or address, and returns its rows, fields separated by `|`.
    ///
    /// # Panics
    /// Where the server refuses it.
    pub fn run(&self, database: &str, statement: &str) -> String {
        let name = database.rsplit('/').next().unwrap_or(database);
        let mut psql = self.programs.command("psql", &self.folder);
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
        ]);
        psql.args([
            "-U",
            USER,
            "-p",
            &self.port.to_string(),
            "-d",
            name,
            "-f",
            "-",
        ]);
        psql.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = psql.spawn().expect("psql runs");
        let mut input = child.stdin.take().expect("an input");
        input.write_all(statement.as_bytes()).expect("psql reads");
        drop(input);
        let done = child.wait_with_output().expect("psql ends");
        assert!(
            done.status.success(),
            "{statement}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.lock().unwrap().take() {
            // Its watcher stops it and removes the folder.
            drop(child.stdin.take());
            let _ = child.wait();
        } else {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// A folder of the user who runs servers: in memory if that is wanted and there is enough. A database is three hundred
/// files, which a disk's file system makes in five times the processor time.
fn new_folder(in_memory: bool) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let has_room = || {
        let free = rustix::fs::statvfs(memory).map(|found| found.f_bavail * found.f_frsize);
        free.is_ok_and(|bytes| bytes >= MEMORY_MIN)
    };
    let mut made = tempfile::Builder::new();
    made.prefix("kinora-postgres-");
    let folder = match in_memory && has_room() {
        true => made.tempdir_in(memory),
        false => made.tempdir(),
    };
    let folder = folder.expect("a temporary folder").keep();
    own(&folder);
    folder
}

fn assert_done(done: &Output, name: &str) {
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name} failed: {said}");
}

/// A port that nobody has now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

fn wait_until(done: impl Fn() -> bool, otherwise: &str) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{otherwise}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
