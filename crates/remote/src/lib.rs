//! A client for servers with the OpenAI-style `/v1/videos` API: submits tasks, polls them, cancels
//! them, and saves their results. The modules in the order in which a task passes them:
//!
//! 1. `options`: the upstreams of one engine; [`dialect`]: the protocol of each kind of server, as
//!    one declarative record; [`Key`](KeySource): their keys.
//! 2. `encode` and `form`: encode a [`RemoteRequest`] in a dialect. Fields that a dialect lacks are
//!    refused, never dropped.
//! 3. `pool`: chooses the least busy upstream that is not excluded; `upstream` and `http`: one
//!    bounded exchange with it.
//! 4. [`Job`]: a task at its upstream, by its [`Ticket`]; `answer` and `hints` parse its answers.
//! 5. [`kinora_fetch::save`]: saves the result to a new file, counted and paced.
//! 6. [`Remote::run`]: everything from submit to file, with back-off; a saved ticket is polled and
//!    never submitted again.
//! 7. [`RemoteEngine`]: the same as an engine of the service; [`RemoteKind`]: its settings.
//!
//! It uses no redirects, no proxies from the environment and no unbounded bodies, dials no unknown
//! origin named in an answer, and does not interpret the bytes of a result.

#![forbid(unsafe_code)]

mod answer;
mod backoff;
pub mod dialect;
mod encode;
mod engine;
mod error;
mod form;
mod hints;
mod http;
mod job;
mod key;
mod kind;
mod options;
mod pool;
mod probe;
mod remote;
mod request;
mod run;
mod shared;
mod submit;
mod text;
mod timer;
mod upstream;

pub use answer::{AnswerError, Snapshot};
pub use dialect::Dialect;
pub use engine::{EngineOptions, RemoteEngine};
pub use error::{Cause, RemoteError};
pub use job::{Job, Poll};
pub use key::{KeyError, KeySource};
pub use kind::RemoteKind;
pub use kinora_engine::ReferenceFile;
pub use options::{Options, OptionsError, UpstreamOptions};
pub use remote::{DISK_THREADS, Remote};
pub use request::{RemoteRequest, Ticket};
pub use run::Watcher;
pub use timer::{SystemTimer, Timer};
