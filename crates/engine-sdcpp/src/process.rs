//! A running server: starts it on a free port, waits until it listens, makes sure that it is our
//! child that answers there, and kills it.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kinora_engine::EngineError;
use kinora_system::process;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::log::ServerLog;
use crate::program::ServerProgram;

/// Another process may take the port that was free.
const STARTS_MAX: usize = 3;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long the pipes of a server that has exited may stay open.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// State of a listening socket in `/proc/net/tcp` (proc_net(5), `TCP_LISTEN`).
const LISTENING: &str = "0A";

/// Looks for a cancel and for progress, by what a server has printed.
pub(crate) type Tick<'a> = dyn FnMut(&ServerLog) -> Result<(), EngineError> + 'a;

/// A server that listens. Dropping this kills it.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) port: u16,
    pub(crate) log: ServerLog,
    /// Threads that read its output.
    readers: Vec<JoinHandle<()>>,
    oom_kills_before: Option<u64>,
}

impl ServerProcess {
    /// Starts the server and waits until it listens, which it does once its weights are loaded.
    /// Calls `tick` meanwhile.
    ///
    /// # Errors
    /// If it ends, or does not listen within `limit`; the errors of `tick`.
    pub(crate) fn start(
        program: &ServerProgram,
        limit: Duration,
        tick: &mut Tick<'_>,
    ) -> Result<Self, EngineError> {
        for _ in 0..STARTS_MAX {
            let mut started = Self::spawn(program)?;
            if started.await_listening(limit, tick)? {
                return Ok(started);
            }
            let port = started.port;
            tracing::warn!(port, "another process took the server's port");
        }
        Err(EngineError::Failed(format!(
            "the server found no free port in {STARTS_MAX} attempts"
        )))
    }

    fn spawn(program: &ServerProgram) -> Result<Self, EngineError> {
        let failed = |error: io::Error| EngineError::Failed(format!("the server: {error}"));
        // The listener is closed again at the end of the statement.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .map_err(failed)?
            .port();
        let oom_kills_before = process::oom_kills();
        let mut child = program.start(port).map_err(failed)?;
        let pipes = [
            (child.stdout.take().map(OwnedFd::from), false),
            (child.stderr.take().map(OwnedFd::from), true),
        ];
        // From here on, an early return kills the child.
        let mut started = Self {
            child,
            port,
            log: ServerLog::new(),
            readers: Vec::new(),
            oom_kills_before,
        };
        for (pipe, is_error_output) in pipes {
            let (log, pipe) = (started.log.clone(), pipe.map(File::from));
            let builder = thread::Builder::new().name("server-output".to_owned());
            let reader = builder.spawn(move || {
                if let Some(pipe) = pipe {
                    log.collect(pipe, is_error_output);
                }
            });
            started.readers.push(reader.map_err(failed)?);
        }
        Ok(started)
    }

    /// Waits until it listens; `false` if another process has its port.
    fn await_listening(
        &mut self,
        limit: Duration,
        tick: &mut Tick<'_>,
    ) -> Result<bool, EngineError> {
        for _ in 0..=limit.as_millis() / POLL_INTERVAL.as_millis() {
            match listener_of(self.port, self.child.id()) {
                PortOwner::Nobody => {}
                PortOwner::Child => return Ok(true),
                PortOwner::Descendant => {
                    let why = "the server runs as a child of `server`; if that is a script, let it `exec` the program";
                    return Err(EngineError::Failed(why.to_owned()));
                }
                PortOwner::Other => return Ok(false),
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                // It ends without an error if it loaded everything and cannot listen.
                return if status.success() {
                    Ok(false)
                } else {
                    Err(self.exit_error(status))
                };
            }
            tick(&self.log)?;
            thread::sleep(POLL_INTERVAL);
        }
        let what = format!("the server does not listen after {limit:?}");
        Err(self.log.last_words(&what))
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The error for a connection that broke because of `what`: the end of the server explains more.
    pub(crate) fn broken_connection(&mut self, what: &str) -> EngineError {
        for _ in 0..EXIT_GRACE.as_millis() / POLL_INTERVAL.as_millis() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return self.exit_error(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.log.failure(&format!("the server: {what}"))
    }

    fn exit_error(&self, status: ExitStatus) -> EngineError {
        // The last lines may still be in the pipes.
        for _ in 0..EXIT_GRACE.as_millis() / POLL_INTERVAL.as_millis() {
            if self.readers.iter().all(JoinHandle::is_finished) {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        let error = self.log.last_words(&format!("the server ended ({status})"));
        match error {
            EngineError::Failed(cause)
                if process::was_killed_for_memory(Some(status), self.oom_kills_before) =>
            {
                EngineError::OutOfMemory(cause)
            }
            other => other,
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Of one that was reaped, the id may belong to others. Each fails only if all have exited.
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let (true, Some(group)) = (self.is_running(), group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Who listens on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortOwner {
    Nobody,
    Child,
    /// A process of the child's group, but not the child.
    Descendant,
    Other,
}

/// Who listens on `port` of IPv4. The server allows others of its user to listen on the same port
/// (`SO_REUSEPORT`), so every socket there must be the child's.
#[cfg(target_os = "linux")]
fn listener_of(port: u16, child: u32) -> PortOwner {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    let sockets = listening_sockets(&table, port);
    if sockets.is_empty() {
        return PortOwner::Nobody;
    }
    let has_all = |id: u32| {
        let open = open_files(id);
        sockets
            .iter()
            .all(|socket| open.contains(&format!("socket:[{socket}]").into()))
    };
    let processes = || process::living_processes().into_iter().flatten();
    if has_all(child) {
        PortOwner::Child
    } else if processes().any(|entry| entry.group == child && has_all(entry.id)) {
        PortOwner::Descendant
    } else {
        PortOwner::Other
    }
}

/// What the open files of a process are.
#[cfg(target_os = "linux")]
fn open_files(id: u32) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(format!("/proc/{id}/fd"));
    let files = files.into_iter().flatten().flatten();
    files
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .collect()
}

/// Who listens on `port` cannot be told here: whoever answers counts as the child.
#[cfg(not(target_os = "linux"))]
fn listener_of(port: u16, _child: u32) -> PortOwner {
    let connected = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    connected.map_or(PortOwner::Nobody, |_| PortOwner::Child)
}

/// The inodes of sockets that listen on `port`, by the text of `/proc/net/tcp`.
#[cfg(target_os = "linux")]
fn listening_sockets(table: &str, port: u16) -> Vec<&str> {
    let wanted = format!(":{port:04X}");
    let rows = table.lines().skip(1);
    rows.filter_map(|row| {
        let mut fields = row.split_whitespace();
        let local = fields.nth(1)?;
        let state = fields.nth(1)?;
        (local.ends_with(&wanted) && state == LISTENING).then(|| fields.nth(5))?
    })
    .collect()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_listener_of_a_port_is_this_process_or_another_one() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listener_of(port, std::process::id()), PortOwner::Child);
        let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
        assert_eq!(listener_of(port, other.id()), PortOwner::Other);
        drop(listener);
        assert_eq!(listener_of(port, other.id()), PortOwner::Nobody);
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 111 1 0 100 0 0 10 0\n\
            1: 0100007F:1F90 0100007F:1234 01 00000000:00000000 00:00000000 00000000  0  0 222 1 0 20 4 30 10 -1\n\
            2: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 333 1 0 100 0 0 10 0\n";
        assert_eq!(listening_sockets(table, 8080), ["111"]);
        assert_eq!(listening_sockets(table, 8081), ["333"]);
        assert!(listening_sockets(table, 80).is_empty());
    }
}
