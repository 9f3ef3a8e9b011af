//! Downloads large files, such as weights. A file gets its name only when its length, and its
//! SHA-256 if one is known, are right. An interrupted download goes on where it stopped, even in a
//! later process. Uses no proxy.
//!
//! The modules in the order in which a download passes them:
//!
//! 1. [`Downloader`] gets one [`DownloadSource`], in several attempts.
//! 2. `partial`: the incomplete file beside its target, and what is known of it.
//! 3. `http`: one request, with its redirects; the [`OriginToken`] goes to its own origin only.
//! 4. `head`: what an answer means for the bytes that are present.
//! 5. `room`: the free space that all downloads together have claimed.
//! 6. `check`: the SHA-256 of the complete file.

#![forbid(unsafe_code)]

mod check;
mod downloader;
mod error;
mod head;
mod http;
mod partial;
mod room;
mod source;
mod token;
mod watcher;

pub use downloader::{DownloadOptions, Downloader};
pub use error::DownloadError;
pub use partial::{partial_bytes, remove_partial};
pub use room::check_room;
pub use source::DownloadSource;
pub use token::OriginToken;
pub use watcher::DownloadWatcher;
