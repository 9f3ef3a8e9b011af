//! The client against scripted servers on real sockets. Waiting between calls is on a timer that the
//! test moves; only the deadlines of sockets are real, and short.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

#[path = "../common/mod.rs"]
mod common;
mod dialects;
mod engine;
mod files;
mod results;
mod resume;
mod server;
mod settings;
mod support;
mod weather;
