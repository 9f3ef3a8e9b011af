//! The sandbox of a child process. The child applies it to itself before it works on a task, and
//! cannot undo it: no capabilities, resource limits, `no_new_privs`, Landlock for files, and
//! seccomp for system calls. Features missing in the kernel are reported, never ignored.

mod confinement;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod syscalls;

use std::thread;

pub use confinement::{Confinement, SandboxRole, restrict_environment};
pub(crate) use confinement::{clear_environment, order_devices_by_bus};

/// Confines this process; call it on the main thread before starting others. Returns the parts that
/// could not be applied, each described for an operator.
pub(crate) fn lock_in(confinement: &Confinement) -> Vec<String> {
    // Landlock and seccomp apply to the calling thread and to those that it starts later. A
    // thread that a library started earlier would stay unconfined.
    let is_alone = is_single_threaded();
    let mut lacking = lock(confinement, Extent::Process);
    if !is_alone {
        lacking.push("threads started earlier are not confined".to_owned());
    }
    lacking
}

/// Confines this process before it becomes the operator's command: its files, signals and tracing, and the rights of
/// root. Returns the parts that could not be applied.
///
/// # Errors
/// If nothing confines its files: a command that should be confined must not run unconfined.
#[cfg(target_os = "linux")]
pub fn confine_command(confinement: &Confinement) -> Result<Vec<String>, String> {
    let mut lacking = Vec::new();
    if !lock_files(confinement, &mut lacking) {
        return Err(lacking.join("; "));
    }
    Ok(lacking)
}

/// Unsupported on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn confine_command(_: &Confinement) -> Result<Vec<String>, String> {
    Err("processes are confined on Linux only".to_owned())
}

/// Logs how processes named `name` are confined.
pub(crate) fn log(name: &str, lacking: &[String]) {
    if lacking.is_empty() {
        tracing::info!(name, "child processes are fully sandboxed");
    } else {
        let lacking = lacking.join("; ");
        tracing::warn!(name, lacking, "child processes are only partly sandboxed");
    }
}

/// Tries the sandbox of an engine on a separate thread, which exits immediately. Returns the parts
/// that this system lacks, each described for an operator. Skips resource limits, which would apply
/// to the whole process.
pub fn rehearse() -> Vec<String> {
    let trial = thread::Builder::new()
        .name("sandbox-trial".to_owned())
        .spawn(|| lock(&Confinement::of(SandboxRole::Engine), Extent::Thread));
    match trial.map(thread::JoinHandle::join) {
        Ok(Ok(lacking)) => lacking,
        Ok(Err(_)) | Err(_) => vec!["the sandbox trial did not finish".to_owned()],
    }
}

/// The scope of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// The whole process.
    Process,
    /// Only this thread: skips process-wide restrictions.
    Thread,
}

#[cfg(target_os = "linux")]
fn lock(confinement: &Confinement, extent: Extent) -> Vec<String> {
    let mut lacking = Vec::new();
    lock_files(confinement, &mut lacking);
    // After Landlock, which opens more files than a decoder may.
    if extent == Extent::Process {
        limits::limit(confinement.role, &mut lacking);
    }
    // Last, because it removes system calls that the others use. A server has no list: it starts as a program, listens, and
    // its libraries are as many as its builds.
    if confinement.role != SandboxRole::Server {
        syscalls::filter(confinement.role, &mut lacking);
    }
    lacking
}

/// Closes files and rights. Returns whether at least the oldest Landlock applied.
#[cfg(target_os = "linux")]
fn lock_files(confinement: &Confinement, lacking: &mut Vec<String>) -> bool {
    // Required by Landlock and seccomp.
    if let Err(error) = rustix::thread::set_no_new_privs(true) {
        lacking.push(format!("no_new_privs: {error}"));
    }
    let is_landlocked = files::close(confinement, lacking);
    limits::drop_capabilities(is_landlocked, lacking);
    is_landlocked
}

#[cfg(not(target_os = "linux"))]
fn lock(_: &Confinement, _: Extent) -> Vec<String> {
    vec!["processes are confined on Linux only".to_owned()]
}

/// Whether this is the only thread: the sandbox covers it and the threads that it starts.
fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs::{self, File};
    use std::io;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;
    use std::process::Command;

    use rustix::process::{
        DumpableBehavior, getppid, getpriority_process, set_dumpable_behavior, setpriority_process,
        test_kill_process,
    };

    use super::*;

    /// What a confined thread tried, and whether it succeeded.
    type Tried = Vec<(&'static str, bool)>;

    /// Runs `tries` on a confined thread; returns the results and the missing parts of the sandbox.
    fn locked(
        confinement: Confinement,
        tries: impl FnOnce() -> Tried + Send + 'static,
    ) -> (Tried, Vec<String>) {
        let thread = thread::spawn(move || {
            let lacking = lock(&confinement, Extent::Thread);
            (tries(), lacking)
        });
        thread.join().unwrap()
    }

    /// Whether the part of the sandbox with this prefix was applied.
    fn has(part: &str, lacking: &[String]) -> bool {
        !lacking.iter().any(|one| one.starts_with(part))
    }

    fn could<T>(tried: io::Result<T>) -> bool {
        tried.is_ok()
    }

    #[test]
    fn no_process_socket_or_look_at_another_process_is_had() {
        let (tried, lacking) = locked(Confinement::of(SandboxRole::Engine), || {
            let parent = getppid().unwrap();
            vec![
                (
                    "a shell",
                    could(Command::new("/bin/sh").arg("-c").arg(":").spawn()),
                ),
                ("a listener", could(TcpListener::bind("127.0.0.1:0"))),
                ("a datagram socket", could(UdpSocket::bind("127.0.0.1:0"))),
                ("a pair of sockets", could(UnixStream::pair())),
                ("a signal to the parent", test_kill_process(parent).is_ok()),
                (
                    "a handle of the parent",
                    rustix::process::pidfd_open(parent, rustix::process::PidfdFlags::empty())
                        .is_ok(),
                ),
                // Its current priority: nothing changes where this is allowed.
                (
                    "the parent's priority",
                    getpriority_process(Some(parent))
                        .and_then(|priority| setpriority_process(Some(parent), priority))
                        .is_ok(),
                ),
                (
                    "open to tracers",
                    set_dumpable_behavior(DumpableBehavior::Dumpable).is_ok(),
                ),
            ]
        });
        for (what, done) in tried {
            assert!(!done || !has("seccomp", &lacking), "{what}");
        }
    }

    #[test]
    fn only_what_was_given_is_read_and_only_scratch_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["weights", "signing.key"] {
            fs::write(path(name), name).unwrap();
        }
        fs::create_dir(path("scratch")).unwrap();
        let confinement = Confinement {
            read: vec![path("weights")],
            scratch: Some(path("scratch")),
            ..Confinement::of(SandboxRole::Engine)
        };
        let [weights, key, scratch] = ["weights", "signing.key", "scratch"].map(path);
        let parent = getppid().unwrap().as_raw_nonzero();
        let (tried, lacking) = locked(confinement, move || {
            vec![
                ("the signing key", could(File::open(&key))),
                ("its folder", could(fs::read_dir(key.parent().unwrap()))),
                (
                    "writing weights",
                    could(File::options().write(true).open(&weights)),
                ),
                ("removing weights", could(fs::remove_file(&weights))),
                (
                    "a file beside the key",
                    could(File::create(key.with_extension("new"))),
                ),
                ("passwords", could(File::open("/etc/passwd"))),
                (
                    "the parent's memory",
                    could(File::open(format!("/proc/{parent}/mem"))),
                ),
                (
                    "the parent's keys",
                    could(fs::read(format!("/proc/{parent}/environ"))),
                ),
                ("(weights)", could(fs::read(&weights))),
                (
                    "(scratch)",
                    could(fs::write(scratch.join("kernel.bin"), "compiled")),
                ),
                ("(a library)", could(fs::read_dir("/usr/lib"))),
                ("(randomness)", could(File::open("/dev/urandom"))),
                (
                    "(nothing)",
                    could(File::options().write(true).open("/dev/null")),
                ),
                ("(its own threads)", could(fs::read_dir("/proc/self/task"))),
            ]
        });
        for (what, done) in tried {
            let is_given = what.starts_with('(');
            assert!(
                done == is_given || !has("Landlock", &lacking),
                "{what}: {done}"
            );
        }
    }

    #[test]
    fn a_server_is_started_and_answers_and_the_service_s_files_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["weights", "signing.key"] {
            fs::write(path(name), name).unwrap();
        }
        fs::create_dir(path("programs")).unwrap();
        let program = path("programs").join("server");
        fs::copy("/bin/cat", &program).unwrap();
        fs::write(path("programs").join("notes"), "notes").unwrap();
        let confinement = Confinement {
            read: vec![path("weights"), program.clone()],
            list: vec![path("programs")],
            ..Confinement::of(SandboxRole::Server)
        };
        let (programs, notes) = (path("programs"), path("programs").join("notes"));
        let [weights, key] = ["weights", "signing.key"].map(path);
        let (tried, lacking) = locked(confinement, move || {
            let reads = |file: &PathBuf| {
                let status = Command::new(&program).arg(file).output();
                status.is_ok_and(|output| output.status.success())
            };
            vec![
                ("the signing key", could(File::open(&key))),
                ("the key in its program", reads(&key)),
                ("a file beside its program", reads(&notes)),
                ("(names beside its program)", could(fs::read_dir(&programs))),
                ("(weights in its program)", reads(&weights)),
                ("(a listener)", could(TcpListener::bind("127.0.0.1:0"))),
            ]
        });
        for (what, done) in tried {
            let is_given = what.starts_with('(');
            assert!(
                done == is_given || !has("Landlock", &lacking),
                "{what}: {done}"
            );
        }
    }

    #[test]
    fn an_engine_may_have_threads_and_a_decoder_none() {
        let thread = || could(thread::Builder::new().spawn(|| ()));
        let (tried, _) = locked(Confinement::of(SandboxRole::Engine), move || {
            vec![("a thread", thread())]
        });
        assert!(tried[0].1);
        let (tried, lacking) = locked(Confinement::of(SandboxRole::Decoder), move || {
            vec![
                ("a thread", thread()),
                ("a library", could(File::open("/usr/lib"))),
                ("a pipe", could(io::pipe())),
            ]
        });
        for (what, done) in tried {
            let is_closed = has("seccomp", &lacking) && has("Landlock", &lacking);
            assert!(!done || !is_closed, "{what}");
        }
    }

    #[test]
    fn rights_of_root_are_gone() {
        let (tried, lacking) = locked(Confinement::of(SandboxRole::Engine), || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
            let line = |start: &str| status.lines().any(|line| line == start);
            vec![
                (
                    "capabilities",
                    // None, or only reading, where Landlock has closed the rest.
                    ["0", "4"]
                        .iter()
                        .any(|last| line(&format!("CapEff:\t000000000000000{last}"))),
                ),
                ("no_new_privs", line("NoNewPrivs:\t1")),
            ]
        });
        // Landlock lets a process read its own state.
        assert!(tried.iter().all(|(_, done)| *done), "{tried:?} {lacking:?}");
    }

    #[test]
    fn a_rehearsal_leaves_this_process_as_it_was() {
        let lacking = rehearse();
        assert_eq!(lacking, rehearse());
        assert!(could(TcpListener::bind("127.0.0.1:0")));
        assert!(could(File::open("/etc/passwd")));
    }
}
