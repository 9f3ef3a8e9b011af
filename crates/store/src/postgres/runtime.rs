//! The runtime that drives all database connections of this process, on its own threads: a blocked
//! thread of a caller's runtime delays no renewal of a lease, and that runtime needs no I/O.

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

/// Its threads. They wait most of the time.
const THREADS: usize = 2;

/// Never shut down: lanes end by themselves after their queued jobs, once their store is dropped.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// The runtime, started at the first call.
pub(super) fn runtime() -> io::Result<Handle> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = &*runtime {
        return Ok(running.handle().clone());
    }
    let started = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("postgres")
        .enable_all()
        .build()?;
    let handle = started.handle().clone();
    *runtime = Some(started);
    Ok(handle)
}
