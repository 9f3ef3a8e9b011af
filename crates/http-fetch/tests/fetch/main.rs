//! The guarded fetch against servers of this process: what it reads, what it refuses, and that a
//! refusal sends nothing. No test leaves the loopback interface; 127.77.0.1 plays the Internet.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod codings;
mod forbidden;
mod hostile;
mod judgement;
mod machine;
mod reading;
mod sharing;
mod support;
