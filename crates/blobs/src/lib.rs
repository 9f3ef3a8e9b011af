//! Stores result files. [`BlobStore`] is the interface, [`LocalBlobs`] a folder on this machine,
//! [`S3Blobs`] a bucket, [`open()`] selects the implementation by URL, and [`sign`] makes URLs
//! that open without a key. It knows only the ids of tasks and uploaded files, and never overwrites.

#![forbid(unsafe_code)]

pub mod bulk;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "faulty")]
pub mod faulty;
pub mod folder;
mod local;
mod measure;
mod metered;
mod open;
mod reserve;
mod s3;
pub mod sign;
mod store;

pub use local::LocalBlobs;
pub use measure::{measure_bytes, measure_file};
pub use metered::metered;
pub use open::{display_location, local_root, open, open_beside};
pub use reserve::DiskReserve;
pub use s3::{S3Blobs, S3Options, S3Variables};
pub use store::{
    BlobEntry, BlobError, BlobKey, BlobStore, ByteStream, DirectLink, EntryStream, KEY_BYTES_MAX,
    PAGE_MAX,
};

/// Maximum number of runtime threads used by a store of this crate.
pub const THREADS: usize = local::THREADS;
