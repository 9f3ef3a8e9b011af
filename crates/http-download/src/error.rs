//! Why a download failed, and whether another attempt may help.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a download failed. Addresses are shortened to their origins: those of redirects may be
/// signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// The server cannot be reached.
    #[error("{origin} cannot be reached: {source}")]
    Connect {
        /// The server.
        origin: String,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The connection ended before the file.
    #[error("the connection broke: {0}")]
    Broken(Box<dyn StdError + Send + Sync>),
    /// Nothing arrived for this long.
    #[error("nothing arrived for {} seconds", .0.as_secs_f64())]
    Stalled(Duration),
    /// The server refused, or has a fault.
    #[error("{origin} answered with HTTP {status}")]
    Status {
        /// The server.
        origin: String,
        /// The HTTP status.
        status: u16,
        /// The wait that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The bytes that are present are not those of the file that the server has now.
    #[error("the server's file has changed, or the server sent another part than the missing one")]
    Changed,
    /// The server's answer makes no sense.
    #[error("the server's answer cannot be used: {0}")]
    Answer(String),
    /// The server's file has another length than the expected one.
    #[error("the server's file has {found} bytes instead of {expected}")]
    Length {
        /// Its length.
        found: u64,
        /// The expected length.
        expected: u64,
    },
    /// The complete file has another SHA-256 than the expected one.
    #[error("the file's SHA-256 is {found} instead of {expected}")]
    Hash {
        /// Its SHA-256.
        found: String,
        /// The expected one.
        expected: String,
    },
    /// The disk has too little free space.
    #[error("the file system of {} has {free} bytes free, and {needed} are needed", .folder.display())]
    Room {
        /// The folder of the file.
        folder: PathBuf,
        /// Bytes that are missing, of this and of other running downloads.
        needed: u64,
        /// Free bytes.
        free: u64,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process is downloading the same file.
    #[error("another download to {} is in progress", .0.display())]
    Busy(PathBuf),
    /// The options are unusable.
    #[error("{0}")]
    Options(String),
}

impl DownloadError {
    /// Whether another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Broken(_) | Self::Stalled(_) | Self::Changed => true,
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500..=599),
            _ => false,
        }
    }

    /// The wait that the server asks for.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
