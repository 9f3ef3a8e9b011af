//! Where result bytes live. [`BlobStore`] is the interface, [`LocalBlobs`] a folder of this
//! machine, [`open()`] finds the implementation by URL, and [`sign`] makes result addresses that
//! open without a key. It knows nothing of tasks beyond their ids, and never overwrites.

#![forbid(unsafe_code)]

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "faulty")]
pub mod faulty;
pub mod folder;
mod key;
mod local;
mod measure;
mod open;
mod reserve;
pub mod sign;
mod store;

pub use key::{BlobKey, KEY_BYTES_MAX};
pub use local::LocalBlobs;
pub use measure::{measure_bytes, measure_file};
pub use open::{open, open_beside, root, shown};
pub use reserve::Reserve;
pub use store::{BlobEntry, BlobError, BlobStore, ByteStream, EntryStream, PAGE_MAX};

/// Threads of the runtime that a store of this crate uses at most.
pub const THREADS: usize = local::THREADS;
