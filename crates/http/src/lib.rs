//! What every HTTP and TLS client of the product stands on; each crate adds only its own protocol.
//!
//! 1. [`TrustedRoots`]: the certificate authorities that a client trusts, as a configuration of `rustls`.
//! 2. [`HttpClient`]: connections and exchanges. Each answer has a time limit and a maximum size.
//! 3. [`Backoff`] and [`retry_after`]: the wait before the next attempt.
//! 4. [`PartialFile`], [`content_range`] and [`redirect_target`]: downloads that can be resumed.
//!
//! It follows no redirects, reads no proxy from the environment, and cannot turn certificate checks off.

#![forbid(unsafe_code)]

mod client;
mod headers;
mod partial_file;
mod retry;
mod roots;

pub use client::{
    BoxError, ClientOptions, ExchangeError, HttpClient, NameResolver, RequestBody, error_chain,
    innermost, next_piece, read_body,
};
pub use headers::{content_range, redirect_target, retry_after};
pub use partial_file::PartialFile;
pub use retry::Backoff;
pub use roots::{RootsError, TrustedRoots};
