//! The client against servers that follow a script on real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test"
)]

mod calls;
mod downloads;
mod server;
mod watches;
