//! A wall clock that a test sets while the service runs, by libfaketime. Only the time of day is
//! faked, as an operator or NTP would move it: the monotonic clock and file times stay the
//! machine's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::server::{Server, Setup};

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// The time of day of the services that are started under it.
#[derive(Debug)]
pub struct WallClock {
    folder: TempDir,
    started: Mutex<Vec<u32>>,
}

impl WallClock {
    /// One that is as far ahead of the machine's, in seconds; behind it when negative.
    pub fn ahead_by(seconds: i64) -> Self {
        let clock = Self {
            folder: tempfile::tempdir().unwrap(),
            started: Mutex::default(),
        };
        clock.jump_to(seconds);
        clock
    }

    /// Sets it, for running services as well, to so many seconds ahead of the machine's.
    pub fn jump_to(&self, seconds: i64) {
        // It is read at every look at the clock: never half a number.
        let next = self.folder.path().join("next");
        fs::write(&next, format!("{seconds:+}\n")).unwrap();
        fs::rename(next, self.file()).unwrap();
    }

    /// The machine's own time, in seconds since 1970.
    #[expect(clippy::disallowed_methods, reason = "the tests' processes live by it")]
    pub fn machine_s() -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_secs()).unwrap()
    }

    /// Starts a service that lives by this clock.
    pub fn start(&self, setup: Setup) -> Server {
        let server = setup
            .set("LD_PRELOAD", library().display())
            .set("FAKETIME_TIMESTAMP_FILE", self.file().display())
            .set("FAKETIME_NO_CACHE", 1)
            .set("FAKETIME_DONT_FAKE_MONOTONIC", 1)
            .set("NO_FAKE_STAT", 1)
            .start();
        self.started.lock().unwrap().push(server.process_id());
        server
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("ahead")
    }
}

impl Drop for WallClock {
    /// What a killed process leaves would stop a later one of the same number from starting.
    fn drop(&mut self) {
        for id in self.started.lock().unwrap().drain(..) {
            for name in ["faketime_shm_", "sem.faketime_sem_"] {
                // Gone already when the process ended by itself.
                let _ = fs::remove_file(format!("/dev/shm/{name}{id}"));
            }
        }
    }
}

/// Where the system has it: directly in a library folder, or in one for its architecture.
fn library() -> PathBuf {
    let folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(Path::new);
    let inner = folders
        .into_iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let inner = inner
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    folders
        .into_iter()
        .map(Path::to_owned)
        .chain(inner)
        .map(|folder| folder.join(LIBRARY))
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("no {LIBRARY}: libfaketime is needed; ./test installs it"))
}
