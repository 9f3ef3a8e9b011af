//! Signed films, judged by the C2PA project's own reader: that it believes them, what it reads in them, and that it
//! finds what somebody changed. And certificates and keys that are refused.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should stop"
)]

mod authority;
mod credentials;
mod films;
mod signed;
