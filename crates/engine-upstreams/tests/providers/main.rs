//! Paid providers: their dialects and the ready-made configurations of `models/`, against strict stand-ins. Every
//! test runs over every provider; a provider is one [`ProviderCase`](support::ProviderCase).

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's helpers fail the test"
)]

mod cases_a;
mod cases_b;
#[path = "../common/mod.rs"]
mod common;
mod logs;
mod support;
mod table;
