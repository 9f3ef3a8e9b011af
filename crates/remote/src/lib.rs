//! A client for servers with the OpenAI-style `/v1/videos` API: submits tasks, polls them, cancels
//! them, and saves their results. The modules in the order in which a task passes them:
//!
//! 1. `options`: the upstreams of one engine; [`dialect`]: how they are spoken to, one declarative
//!    record each; [`Key`](KeySource): what they are shown.
//! 2. `encode` and `form`: a [`RemoteRequest`] in the words of a dialect. What a dialect has no word
//!    for is refused, never dropped.
//! 3. `pool`: the least busy upstream that is not left out; `upstream` and `http`: one bounded
//!    exchange with it.
//! 4. [`Job`]: a task at its upstream, by its [`Ticket`]; `answer` and `hints` read what it says.
//! 5. [`kinora_fetch::save`]: the result into a new file, counted and paced.
//! 6. [`Remote::run`]: all of it from submit to file, with back-off; a saved ticket is polled on
//!    and never submitted again.
//! 7. [`RemoteEngine`]: that as an engine of the service; [`RemoteKind`]: its settings.
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
