//! Engines that are workflows of ComfyUI servers. The modules in the order in which a task passes them:
//!
//! 1. [`ComfyKind`]: the settings; [`ComfyEngine`]: the engine.
//! 2. `workflow`: the exported graph, and the bindings of its inputs; `card`: both together, checked, and
//!    filled in for one request.
//! 3. `run`: everything from the choice of a server to the film, with a [`ComfyTicket`] so that no restart loses a
//!    job and nothing runs twice.
//! 4. `server`: the calls; `answer` reads what comes back. `feed` brings progress and previews, which nothing
//!    else depends on. `free` empties a server's memory for an engine that shares its device.
//! 5. `fitness`: what a server lacks for a workflow; [`propose`]: bindings for a new workflow.
//!
//! It never installs nodes or models, and reads no workflow in the editor's own format.

mod answer;
mod card;
mod engine;
mod feed;
mod fitness;
mod free;
mod import;
mod run;
mod server;
mod shared;
mod workflow;

pub use crate::servers::{NamedServer, ServerOptions, SystemTimer, UpstreamError, WaitTimer};
pub use card::{WorkflowCard, WorkflowDescription};
pub use engine::{ComfyEngine, ComfyKind};
pub use import::{BindingProposal, propose};
pub use run::ComfyTicket;
pub use shared::ComfyServers;
pub use workflow::{BindingTarget, BindingTargets, InputRole, Workflow, WorkflowBindings};
