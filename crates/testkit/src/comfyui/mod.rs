//! A server for tests that answers as ComfyUI does, traps included: a job can be submitted twice under one
//! name and runs twice, an identical graph saves nothing, outputs lag behind the state, a restart forgets
//! everything, and a second websocket takes the place of the first. It makes no films: a [`Behaviour`] says
//! which bytes come of a job. Jobs get on when they are looked at, so nothing depends on time.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is for tests")]

mod behaviour;
mod classes;
mod jobs;
mod routes;
mod server;
mod socket;
mod workflow;

pub use crate::http::Request;
pub use behaviour::{Behaviour, Works};
pub use server::TestComfy;
pub use workflow::{edit_workflow, workflow};
