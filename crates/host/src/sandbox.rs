//! The lock-in of a child process. The child applies it to itself before it does anything for a task,
//! and nothing can undo it: an empty set of capabilities, resource limits, `no_new_privs`, Landlock for
//! files, and seccomp for system calls. What the kernel does not have is named, never ignored.

mod environment;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod syscalls;

use std::path::PathBuf;
use std::thread;

use serde::{Deserialize, Serialize};

pub(crate) use environment::clear_environment;

/// What a confined process is for: it decides which system calls and devices it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Native code that makes frames: threads, system libraries, accelerators.
    Engine,
    /// Decodes one film on one thread: the film, and nothing else of the machine.
    Decoder,
}

/// What a process may touch. All else is closed to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// What the process is for.
    pub role: Role,
    /// Files, and folders with all that lies in them, that it may read.
    pub read: Vec<PathBuf>,
    /// A folder in which it may read and write. It is made when the process starts, for its owner alone.
    pub scratch: Option<PathBuf>,
}

impl Confinement {
    /// A confinement with nothing to read and nowhere to write.
    pub fn of(role: Role) -> Self {
        Self {
            role,
            read: Vec::new(),
            scratch: None,
        }
    }
}

/// Locks this process in; for its main thread, before there are others. Returns what could not be
/// applied, each in words for an operator.
pub(crate) fn lock_in(confinement: &Confinement) -> Vec<String> {
    let is_alone = is_single_threaded();
    let mut lacking = lock_thread(confinement);
    if !is_alone {
        lacking.push("threads that ran before are not confined".to_owned());
    }
    // Last: Landlock opens more files than a decoder ever will.
    #[cfg(target_os = "linux")]
    limits::limit(confinement.role, &mut lacking);
    lacking
}

/// Tells an operator how the processes called `name` are confined.
pub(crate) fn log(name: &str, lacking: &[String]) {
    if lacking.is_empty() {
        tracing::info!(name, "child processes are fully sandboxed");
    } else {
        let lacking = lacking.join("; ");
        tracing::warn!(name, lacking, "child processes are sandboxed in part only");
    }
}

/// Tries the lock-in of an engine on a thread of its own, which ends at once. Returns what this system
/// lacks, each in words for an operator. Resource limits are not tried: they would hold for the whole
/// process.
pub fn rehearse() -> Vec<String> {
    let trial = thread::Builder::new()
        .name("sandbox-trial".to_owned())
        .spawn(|| lock_thread(&Confinement::of(Role::Engine)));
    match trial.map(thread::JoinHandle::join) {
        Ok(Ok(lacking)) => lacking,
        Ok(Err(_)) | Err(_) => vec!["the trial did not end".to_owned()],
    }
}

#[cfg(target_os = "linux")]
fn lock_thread(confinement: &Confinement) -> Vec<String> {
    let mut lacking = Vec::new();
    // Landlock and seccomp ask for it.
    if let Err(error) = rustix::thread::set_no_new_privs(true) {
        lacking.push(format!("no_new_privs: {error}"));
    }
    files::close(confinement, &mut lacking);
    limits::drop_capabilities(&mut lacking);
    // Last: it takes away what the others use.
    syscalls::filter(confinement.role, &mut lacking);
    lacking
}

#[cfg(not(target_os = "linux"))]
fn lock_thread(_: &Confinement) -> Vec<String> {
    vec!["processes are confined on Linux only".to_owned()]
}

/// Whether this is the only thread: what follows holds for it and for those that it starts.
fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}
