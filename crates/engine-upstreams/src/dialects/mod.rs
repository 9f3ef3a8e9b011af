//! A client for servers with the OpenAI-style `/v1/videos` API: submits tasks, polls them, cancels
//! them, and saves their results. The modules in the order in which a task passes them:
//!
//! 1. `options`: the upstreams of one engine; [`dialect`]: the protocol of each kind of server, a record that is
//!    read from a TOML file and checked (`check`), with its `calls` and the `shape` of its answers; `template`: its placeholders; `address`: its paths and the
//!    origins of results; `pointer`: where an answer has what.
//! 2. `encode`: encodes a [`RemoteRequest`] in a dialect. What a dialect cannot say is refused, never dropped.
//! 3. `run`: everything from submit to file ([`RemoteServers::run`]), with back-off; a saved ticket is polled and
//!    never submitted again.
//! 4. [`RemoteJob`]: a task at its upstream, by its [`RemoteTicket`]; `answer` parses its answers, `identity` says
//!    whether they are about this task.
//! 5. [`RemoteEngine`]: the same as an engine of the service; [`RemoteKind`]: its settings; `describe`: words about a
//!    dialect and its answers for an operator.
//!
//! It dials no unknown origin named in an answer.

mod address;
mod answer;
mod calls;
mod check;
mod describe;
pub mod dialect;
mod encode;
mod engine;
mod identity;
mod job;
mod options;
mod pointer;
mod remote;
mod run;
mod shape;
mod template;

pub use crate::servers::{
    AnswerError, CallError, ExchangeWatcher, KeySource, NamedServer, ServerOptions, SystemTimer,
    UpstreamError, WaitTimer, WatchedAnswer, WatchedExchange,
};
pub use answer::TaskSnapshot;
pub use calls::RepeatRule;
pub use describe::describe_answer;
pub use dialect::ServerDialect;
pub use encode::{RemoteRequest, RemoteTicket};
pub use engine::{RemoteEngine, RemoteKind};
pub use job::RemoteJob;
pub use kinora_engine::ReferenceFile;
pub use options::RemoteOptions;
pub use remote::RemoteServers;
pub use shape::UpstreamPhase;
