//! Engines that are workflows of ComfyUI servers. The modules in the order in which a task passes them:
//!
//! 1. [`ComfyKind`]: the settings. `bindings` say which input of which node takes which part of a
//!    request, and so what requests the engine takes; `describe` says its rate and grid.
//! 2. `workflow`: the exported graph, reduced to what the output needs; `card`: graph and bindings
//!    together, checked, and filled in for one request.
//! 3. `run`: everything from the choice of a server to the file, with `enter` for the way in and
//!    `follow` for the rest. A job has an identifier of ours (`identity`), kept in a [`Ticket`] before
//!    the server hears of it, so that no restart loses it and nothing runs twice.
//! 4. `server`: the calls; `answer` and `output` read what comes back. `feed` and `event` bring progress
//!    and previews, which nothing else depends on.
//! 5. [`ComfyEngine`]: the same as an engine of the service.
//! 6. `fitness`: what a server lacks for a workflow; [`propose`]: bindings for a new workflow.
//!
//! It never installs nodes or models, and reads no workflow in the editor's own format.

#![forbid(unsafe_code)]

mod answer;
mod attempt;
mod bindings;
mod card;
mod describe;
mod engine;
mod enter;
mod error;
mod event;
mod feed;
mod fitness;
mod follow;
mod free;
mod identity;
mod import;
mod kind;
mod options;
mod output;
mod probe;
mod run;
mod secret;
mod server;
mod shared;
mod ticket;
mod upload;
mod workflow;

pub use bindings::{Bindings, Role, Target, Targets};
pub use card::{Card, CardError};
pub use describe::Describe;
pub use engine::ComfyEngine;
pub use error::ComfyError;
pub use import::{Proposal, propose};
pub use kind::ComfyKind;
pub use kinora_upstream::{SystemTimer, Timer};
pub use options::Options;
pub use shared::{Comfy, DISK_THREADS};
pub use ticket::Ticket;
pub use workflow::{Workflow, WorkflowError};
