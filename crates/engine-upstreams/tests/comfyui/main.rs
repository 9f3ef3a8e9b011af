//! The engine against servers that answer as ComfyUI does, traps included; and, where
//! `KINORA_COMFYUI_URL` names one, against a real server. Nothing here waits for a fixed time.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(clippy::print_stderr, reason = "a test that is left out says so")]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's helpers fail the test"
)]

#[path = "../common/mod.rs"]
mod common;
mod contract;
mod fitness;
mod free;
mod graphs;
mod live;
mod raw;
mod real;
mod support;
mod traps;
