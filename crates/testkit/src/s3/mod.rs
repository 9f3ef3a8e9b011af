//! An S3 server for tests, in this process: `s3s` checks the signatures and speaks the protocol, a
//! bucket in memory keeps the objects, and a [`Fault`] decides what goes wrong. `s3s-fs`, which keeps
//! them in a folder, is not used: it publishes a body before it checks its hash, does not check parts,
//! checks and creates in two steps, and takes a folder for an object.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is for tests")]

mod bucket;
mod client;
mod fault;
mod server;

pub use client::{Answer, get};
pub use fault::Fault;
pub use server::TestS3;
