//! A client for servers with the OpenAI-style `/v1/videos` API: submits tasks, polls them, cancels
//! them, and saves their results. The modules in the order in which a task passes them:
//!
//! 1. `options`: the upstreams of one engine; [`dialect`]: the protocol of each kind of server, as
//!    one declarative record.
//! 2. `encode`: encodes a [`RemoteRequest`] in a dialect. Fields that a dialect lacks are
//!    refused, never dropped.
//! 3. `submit`: sends it to the least busy upstream that is not excluded.
//! 4. [`Job`]: a task at its upstream, by its [`Ticket`]; `answer` parses its answers.
//! 5. [`Remote::run`]: everything from submit to file, with back-off; a saved ticket is polled and
//!    never submitted again.
//! 6. [`RemoteEngine`]: the same as an engine of the service; [`RemoteKind`]: its settings.
//!
//! The calls themselves are those of `kinora-upstream`. It uses no redirects, no proxies from the
//! environment and no unbounded bodies, dials no unknown origin named in an answer, and does not
//! interpret the bytes of a result.

#![forbid(unsafe_code)]

mod answer;
pub mod dialect;
mod encode;
mod engine;
mod error;
mod job;
mod kind;
mod options;
mod probe;
mod remote;
mod request;
mod run;
mod shared;
mod submit;

pub use answer::{AnswerError, Snapshot};
pub use dialect::Dialect;
pub use engine::{EngineOptions, RemoteEngine};
pub use error::RemoteError;
pub use job::{Job, Poll};
pub use kind::RemoteKind;
pub use kinora_engine::ReferenceFile;
pub use kinora_upstream::{Cause, KeyError, KeySource, SystemTimer, Timer};
pub use options::{Options, OptionsError, UpstreamOptions};
pub use remote::{DISK_THREADS, Remote};
pub use request::{RemoteRequest, Ticket};
pub use run::Watcher;
