//! The machine under the service: bounded shares of blocking threads, folders and file names that survive a power cut,
//! folders of unfinished files, limits of networks, processes as the kernel shows them, and the points at which a test may
//! kill the process. It knows nothing of tasks.

#![forbid(unsafe_code)]

pub mod crash;
pub mod durable;
pub mod network;
pub mod pool;
pub mod process;
pub mod scratch;
