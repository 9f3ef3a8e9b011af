//! What the crate promises of files that it writes and reads, judged by ffmpeg.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test"
)]

mod damage;
mod film;
mod fragments;
mod probe;
mod provenance;
mod read;
mod record;
mod recorder;
mod stills;
mod support;
