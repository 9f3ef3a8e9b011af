//! An asynchronous client of Kinora's HTTP API: submit a task, wait for it, save its video.
//!
//! ```no_run
//! # async fn example() -> Result<(), kinora_client::Error> {
//! use kinora_client::{Client, NewVideo, Variant};
//!
//! let client = Client::new("http://127.0.0.1:8080", "kinora_...")?;
//! let video = NewVideo::new("kinora-a1", "A red balloon drifts over the sea").seconds(5);
//! let task = client.submit(&video).await?;
//! let done = client.wait(&task.id).await?;
//! client.download(&done.id, Variant::Video, "balloon.mp4".as_ref()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The modules in the order in which a call passes them:
//!
//! 1. `builder`: the URL of the service, the key, time limits, certificates.
//! 2. [`Client`] has a method for each endpoint; `request` and `video` are the types that it sends
//!    and receives. Unknown fields are kept in `other`, so a newer service works with an older
//!    client.
//! 3. `http`: one bounded exchange; `retry`: which calls to retry, and when.
//! 4. [`VideoWatch`] follows a task by server-sent events (`events`), or by polling.
//! 5. [`Files`]: uploads pictures and sounds, which tasks take as references.
//! 6. `download`: saves a result to a file, and resumes after an interruption.
//!
//! A submit always carries an `Idempotency-Key`, so a repeat after a lost answer returns the same
//! task. All other calls are safe to repeat. The client uses no proxy and sends its key only to the
//! service's own origin.

#![forbid(unsafe_code)]

mod builder;
mod client;
mod download;
mod error;
mod events;
mod files;
mod http;
mod model;
mod pages;
mod request;
mod retry;
mod video;
mod watch;

pub use builder::Builder;
pub use client::{Client, Variant};
pub use error::{Error, Refusal};
pub use files::{File, FilePages, Files, NewFile};
pub use model::{Capabilities, Model, ModelPause};
pub use pages::{Pages, VideoPages};
pub use request::{Edit, NewVideo, Seconds};
pub use video::{Cost, Failure, Status, Video, Warning};
pub use watch::VideoWatch;
