//! The tools of the end-to-end tests: the real binary as a process, clients that speak to it,
//! and checks that every answer must pass. It knows no crate of the product: what it expects is what
//! `docs/api.md` says, so that a mistake in a shared type cannot hide itself.
//!
//! [`Setup`] starts a [`Server`] on a [`DataFolder`]; [`Client`] speaks to it; [`Reply`] judges
//! what came back; [`raw`] speaks to it below HTTP; [`media`] and
//! [`compare`] look into files; [`Host`] serves what [`studio`] makes; [`Judge`] is an
//! operator's policy service; [`Receiver`] takes webhooks; [`WallClock`] and [`Hold`]
//! choose the moment; [`replay`] makes the disks that a power loss may leave.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tools of tests: to fail loudly, on the spot, is what they are for"
)]

mod apart;
mod binary;
mod client;
mod clock;
mod command;
pub mod compare;
mod data;
mod events;
mod faults;
mod hold;
mod host;
mod inside;
mod judge;
pub mod media;
mod pages;
mod process;
pub mod raw;
mod receiver;
pub mod replay;
mod reply;
pub mod routes;
mod server;
pub mod studio;
mod video;
mod wait;

pub use apart::stores_are_apart;
pub use binary::{client_example, workspace};
pub use client::{Client, Form, Request};
pub use clock::WallClock;
pub use command::{Running, keys, kinora, program, run, webhooks};
pub use data::{DataFolder, RESULT_FILES};
pub use events::{Event, Events};
pub use faults::{is_once, stores_fail};
pub use hold::Hold;
pub use host::Host;
pub use inside::{Inside, StartInside};
pub use judge::{Answer, Judge};
pub use pages::{Block, blocks, readers_path};
pub use process::Finished;
pub use receiver::{Posted, Receiver, open_connections};
pub use reply::Reply;
pub use server::{Server, Setup};
pub use video::{Tracker, Video};
pub use wait::{PATIENCE, until};
