//! Downloads from servers that follow a script on real sockets: what they cut off, hold back, lie
//! about or change.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test"
)]

mod broken;
mod changed;
mod redirects;
mod refused;
mod server;
mod support;
