//! A client for servers with the OpenAI-style `/v1/videos` API: submits tasks, polls them, cancels
//! them, and saves their results. The modules in the order in which a task passes them:
//!
//! 1. `options`: the upstreams of one engine; [`dialect`]: the protocol of each kind of server, as
//!    one declarative record.
//! 2. `encode`: encodes a [`RemoteRequest`] in a dialect. Fields that a dialect lacks are
//!    refused, never dropped.
//! 3. `run`: everything from submit to file ([`RemoteServers::run`]), with back-off; a saved ticket is polled and
//!    never submitted again.
//! 4. [`RemoteJob`]: a task at its upstream, by its [`RemoteTicket`]; `answer` parses its answers, `identity` says
//!    whether they are about this task.
//! 5. [`RemoteEngine`]: the same as an engine of the service; [`RemoteKind`]: its settings.
//!
//! It dials no unknown origin named in an answer.

mod answer;
pub mod dialect;
mod encode;
mod engine;
mod error;
mod identity;
mod job;
mod options;
mod remote;
mod run;

pub use crate::servers::{CallError, KeyError, KeySource, SystemTimer, WaitTimer};
pub use answer::{AnswerError, TaskSnapshot};
pub use dialect::ServerDialect;
pub use encode::{RemoteRequest, RemoteTicket};
pub use engine::{EngineOptions, RemoteEngine, RemoteKind};
pub use error::RemoteError;
pub use job::{PollAnswer, RemoteJob};
pub use kinora_engine::ReferenceFile;
pub use options::{RemoteOptions, RemoteOptionsError, UpstreamOptions};
pub use remote::{DISK_THREADS, RemoteServers};
pub use run::JobWatcher;
