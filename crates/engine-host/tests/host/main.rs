//! Processes that are engines and readers of films, as children of ours: those that keep to the protocol and those that do not.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test"
)]

mod commands;
mod hostile;
mod support;
