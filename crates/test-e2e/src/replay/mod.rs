//! Power loss, replayed: what the real service wrote, synced, named and answered, in order, and the
//! disks that a cut at any moment of it may leave.
//!
//! [`record`] starts the service under `strace`, [`Recording::read`] reads what `strace` wrote, and
//! [`Disk`] goes through it up to a moment and makes the image of it. The model of a crash is
//! more forgetful than the file systems of today:
//!
//! - A write or a change of length is certain once an `fsync` or `fdatasync` of the file has ended that
//!   began after it. Until then it may be there, be missing, be there in part (in sectors of 512
//!   bytes), or have made the file longer and brought no bytes.
//! - A name that was made or removed is certain once an `fsync` of its folder has ended that began
//!   after it. Until then either may be found, whatever became of the file itself. A rename within a
//!   folder is one change, and between two folders it is two.
//! - Uncertain changes are independent of each other: a later one may be there and an earlier one not.
//! - Bytes beside a write stay as they are, also when it is torn, as SQLite assumes of a disk
//!   (<https://sqlite.org/psow.html>).
//! - An answer counts from the moment in which the service began to send it, and an operation from
//!   the moment in which the kernel said that it was done.
//!
//! The index of SQLite's log (`-shm`) is shared memory that no sync concerns: SQLite makes it anew, and
//! an image has none. Whatever the recorder missed would show as a difference between the folder that the service
//! leaves and the image of a disk that forgets nothing ([`Loss::Nothing`]).

mod calls;
mod contents;
mod disk;
mod folder;
mod loss;
mod op;
mod recording;
mod words;

use std::path::Path;

pub use disk::{Disk, Entry};
pub use loss::Loss;
pub use op::Op;
pub use recording::{Answer, Recording};

use crate::server::Setup;

/// The calls that change files, folders or descriptors, or send something. [`Recording::read`] refuses
/// those whose effects it does not model, where they concern the data folder.
const CALLS: &str = "trace=?open,openat,?creat,close,lseek,write,writev,pwrite64,pwritev,pwritev2,ftruncate,\
    fsync,fdatasync,?link,linkat,?unlink,unlinkat,?mkdir,mkdirat,?rmdir,sendto,sendmsg,execve,\
    copy_file_range,?rename,?renameat,renameat2,truncate,fallocate,sendfile,splice,dup,?dup2,dup3";

/// Above every buffer that is written at once; what is longer is refused.
const BYTES_MAX: &str = "16777216";

/// The service of `setup`, whose calls are written to the file `to`.
#[must_use]
pub fn record(setup: Setup, to: &Path) -> Setup {
    let to = to.display().to_string();
    // -D: the service is the child, and the tracer stands aside. With a filter in the kernel only
    // these calls stop it.
    setup.under(&[
        "strace",
        "-D",
        "-f",
        "--seccomp-bpf",
        "-y",
        "-s",
        BYTES_MAX,
        "-e",
        CALLS,
        "-o",
        &to,
    ])
}
