//! An engine that is any command speaking the engine protocol (`docs/engine-protocol.md`), as an operator configures it:
//! `kind = "process"` in `[[engines]]`. Clips are planned here, without the command: the configuration says what it can
//! do, and the command must agree when it opens.

mod kind;
mod planner;

pub use kind::{ProcessKind, finds_program};
pub use planner::PromisedPlanner;
