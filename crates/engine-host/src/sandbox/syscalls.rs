//! The system calls that a confined process may make (seccomp, seccomp(2)): an allow list. Any
//! other call fails as on a kernel without it (`ENOSYS`), so libraries fall back. Deliberately
//! excluded: sockets of any kind, new processes and programs, inspection of other processes,
//! priorities (they may be another process's), other users, mounts, namespaces, kernel modules,
//! `bpf`, `io_uring`, `userfaultfd`, keyrings.

use std::collections::BTreeMap;

use libc::c_long;
use rustix::process::getpid;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter,
};

use super::confinement::SandboxRole;

/// `fcntl` commands that choose the process to signal when a file is ready (fcntl(2)), which could
/// be another process.
const SIGNAL_OWNERS: [u64; 2] = [8, 15];

/// Calls for decoding a film on one thread: memory, files, time, exit.
const ALL: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getcwd,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Additional calls for native code with threads and accelerators.
const ENGINE: &[c_long] = &[
    libc::SYS_capget,
    libc::SYS_close_range,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_get_mempolicy,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getdents64,
    libc::SYS_getgroups,
    libc::SYS_getitimer,
    libc::SYS_getpgid,
    libc::SYS_getpriority,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getsid,
    libc::SYS_ioctl,
    libc::SYS_mbind,
    libc::SYS_memfd_create,
    libc::SYS_mincore,
    libc::SYS_mkdirat,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mlockall,
    libc::SYS_msync,
    libc::SYS_munlock,
    libc::SYS_munlockall,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_preadv,
    libc::SYS_pselect6,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_readahead,
    libc::SYS_readlinkat,
    libc::SYS_renameat2,
    libc::SYS_rseq,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_getattr,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setaffinity,
    libc::SYS_sendfile,
    libc::SYS_set_mempolicy,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setitimer,
    libc::SYS_statfs,
    libc::SYS_sysinfo,
    libc::SYS_timer_create,
    libc::SYS_timer_delete,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_gettime,
    libc::SYS_timer_settime,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    libc::SYS_times,
    libc::SYS_truncate,
    libc::SYS_umask,
    libc::SYS_uname,
    libc::SYS_unlinkat,
];

/// Older forms of calls, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_getdents,
    libc::SYS_getrlimit,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_stat,
    libc::SYS_time,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Restricts this thread, and those that it starts, to the calls of `role`.
pub(super) fn filter(role: SandboxRole, lacking: &mut Vec<String>) {
    let program = program(role);
    let applied = program.and_then(|program| {
        apply_filter(&program).map_err(|error| format!("this kernel refuses the filter ({error})"))
    });
    if let Err(error) = applied {
        lacking.push(format!("seccomp: {error}"));
    }
}

fn program(role: SandboxRole) -> Result<BpfProgram, String> {
    let arch = std::env::consts::ARCH.try_into();
    let arch = arch.map_err(|_| "not written for this processor".to_owned())?;
    let mut rules = BTreeMap::new();
    let more: &[&[c_long]] = match role {
        SandboxRole::Engine | SandboxRole::Server | SandboxRole::Command => &[ENGINE, OLDER],
        SandboxRole::Decoder => &[],
    };
    for call in ALL.iter().chain(more.iter().copied().flatten()) {
        rules.insert(*call, Vec::new());
    }
    for (call, rule) in conditional(role).map_err(|error| error.to_string())? {
        rules.insert(call, vec![rule]);
    }
    // `ENOSYS` is 38 on every supported architecture.
    let refuse = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)
        .and_then(TryInto::try_into)
        .map_err(|error: BackendError| error.to_string())
}

/// Allows a call if one argument satisfies the condition.
fn rule(
    argument: u8,
    length: SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, BackendError> {
    let condition = SeccompCondition::new(argument, length, operator, value)?;
    SeccompRule::new(vec![condition])
}

/// Allows a call unless the argument has one of these values.
fn all_but(argument: u8, values: &[u64]) -> Result<SeccompRule, BackendError> {
    let mut conditions = Vec::new();
    for value in values {
        // Commands and options are C `int`s; the kernel ignores the upper 32 bits.
        let (length, operator) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Ne);
        conditions.push(SeccompCondition::new(argument, length, operator, *value)?);
    }
    SeccompRule::new(conditions)
}

/// Calls allowed only with certain arguments.
fn conditional(role: SandboxRole) -> Result<Vec<(c_long, SeccompRule)>, BackendError> {
    // The filter is compiled for this process: a BPF program cannot ask for the caller's id.
    let own = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    // A process id has 32 bits; the kernel ignores the rest of the register.
    let to_itself = || rule(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, own);
    let mut rules = vec![
        // Signals only to this process.
        (libc::SYS_kill, to_itself()?),
        (libc::SYS_tgkill, to_itself()?),
        (libc::SYS_rt_sigqueueinfo, to_itself()?),
        (libc::SYS_rt_tgsigqueueinfo, to_itself()?),
        (libc::SYS_fcntl, all_but(1, &SIGNAL_OWNERS)?),
        // Limits may be read, not raised.
        (
            libc::SYS_prlimit64,
            rule(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?,
        ),
    ];
    if role == SandboxRole::Engine {
        // Threads only, no processes. The newer `clone3` hides its flags behind a pointer;
        // libraries fall back to `clone` without it.
        let thread = libc::CLONE_THREAD.unsigned_abs().into();
        let starts_thread = SeccompCmpOp::MaskedEq(thread);
        rules.push((
            libc::SYS_clone,
            rule(0, SeccompCmpArgLen::Qword, starts_thread, thread)?,
        ));
        // The process must stay closed to tracers.
        let options = [libc::PR_SET_DUMPABLE, libc::PR_SET_PTRACER];
        let options = options.map(|option| u64::from(option.unsigned_abs()));
        rules.push((libc::SYS_prctl, all_but(0, &options)?));
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_out_of_a_process_is_on_no_list() {
        let listed = |call: &c_long| [ALL, ENGINE, OLDER].concat().contains(call);
        for call in [
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_clone3,
            libc::SYS_socket,
            libc::SYS_socketpair,
            libc::SYS_connect,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
            libc::SYS_userfaultfd,
            libc::SYS_perf_event_open,
            libc::SYS_keyctl,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_pidfd_open,
            libc::SYS_pidfd_getfd,
            libc::SYS_setuid,
            libc::SYS_kill,
            libc::SYS_clone,
            libc::SYS_prlimit64,
            libc::SYS_setrlimit,
            libc::SYS_fcntl,
            libc::SYS_prctl,
            libc::SYS_seccomp,
            libc::SYS_setpriority,
            libc::SYS_sched_setscheduler,
            libc::SYS_sched_setattr,
        ] {
            assert!(!listed(&call), "{call}");
        }
        assert!(program(SandboxRole::Engine).is_ok() && program(SandboxRole::Decoder).is_ok());
    }
}
