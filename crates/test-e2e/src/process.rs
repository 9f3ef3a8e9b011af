//! A child process whose output is kept line by line, and which never outlives the test: a
//! watchdog kills it when this process ends, however it ends.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::{PATIENCE, until};

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

impl Finished {
    /// Its output; panics when it failed.
    pub fn ok(self) -> String {
        assert!(self.status.success(), "{self:#?}");
        self.stdout
    }
}

/// What a process wrote so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Arc<(Mutex<Written>, Condvar)>);

#[derive(Debug, Default)]
struct Written {
    lines: Vec<String>,
    ended: bool,
    /// Nobody reads at the moment.
    paused: bool,
}

impl Lines {
    fn collect(self, from: impl Read + Send + 'static) -> JoinHandle<()> {
        std::thread::spawn(move || {
            let (written, news) = &*self.0;
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let text = String::from_utf8_lossy(&line).into_owned();
                let reading = news.wait_while(written.lock().unwrap(), |written| written.paused);
                reading.unwrap().lines.push(text);
                news.notify_all();
            }
            written.lock().unwrap().ended = true;
            news.notify_all();
        })
    }

    /// Stops reading, or goes on: a little more is taken, then the pipe fills up.
    pub(crate) fn pause(&self, paused: bool) {
        self.0.0.lock().unwrap().paused = paused;
        self.0.1.notify_all();
    }

    /// All of it, as text.
    pub(crate) fn text(&self) -> String {
        // Also for the last words of a test that failed while it looked at them.
        let written = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        written
            .lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// The first line that `pick` takes; `None` when the process ended without one.
    pub(crate) fn wait_for<T>(&self, pick: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (written, news) = &*self.0;
        let mut guard = written.lock().unwrap();
        let (mut seen, begun) = (0, Instant::now());
        loop {
            let found = guard.lines[seen..].iter().find_map(|line| pick(line));
            if found.is_some() || guard.ended {
                return found;
            }
            seen = guard.lines.len();
            let left = PATIENCE.saturating_sub(begun.elapsed());
            assert!(!left.is_zero(), "no such line: {:#?}", guard.lines);
            guard = news.wait_timeout(guard, left).unwrap().0;
        }
    }
}

/// A running child.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) stdout: Lines,
    pub(crate) stderr: Lines,
    readers: Vec<JoinHandle<()>>,
    watchdog: Watchdog,
}

impl Process {
    /// Starts `command`; `folder` is removed with it when this process ends too early to do so.
    pub(crate) fn start(mut command: Command, folder: Option<&Path>) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} could not be started: {error}"));
        let (stdout, stderr) = (Lines::default(), Lines::default());
        let readers = vec![
            stdout.clone().collect(child.stdout.take().unwrap()),
            stderr.clone().collect(child.stderr.take().unwrap()),
        ];
        let watchdog = Watchdog::over(&child, folder);
        Self {
            child,
            stdout,
            stderr,
            readers,
            watchdog,
        }
    }

    /// Its number, by which the system knows it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end and for the last of its output.
    /// Waits for its end, and takes all that it wrote.
    pub(crate) fn finished(&mut self) -> Finished {
        Finished {
            status: self.wait(),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        }
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let status = until("the end of a process", || self.child.try_wait().unwrap());
        self.watchdog.dismiss();
        self.stderr.pause(false);
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended: nothing to kill, and that is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.watchdog.dismiss();
    }
}

/// A path as the process with this number sees it: it may have mounts of its own.
pub(crate) fn inside(process: u32, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{process}/root"));
    root.join(path.strip_prefix("/").unwrap_or(path))
}

const GUARD: &str =
    "read -r word; [ \"$word\" = dismissed ] && exit; kill -9 \"$1\"; rm -rf \"$2\"";

/// A shell that waits for the end of this process, by the pipe between them, and then kills.
#[derive(Debug)]
struct Watchdog {
    shell: Child,
    leash: Option<ChildStdin>,
}

impl Watchdog {
    fn over(child: &Child, folder: Option<&Path>) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", GUARD, "watchdog", &child.id().to_string()])
            .arg(folder.unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let leash = shell.stdin.take();
        Self { shell, leash }
    }

    fn dismiss(&mut self) {
        use std::io::Write;
        if let Some(mut leash) = self.leash.take() {
            let _ = leash.write_all(b"dismissed\n");
            drop(leash);
            let _ = self.shell.wait();
        }
    }
}
