//! The dialects of paid providers against a strict stand-in of each, over real sockets: every kind of input is sent as
//! it was recorded, and nothing is paid twice. A provider is one [`case::Case`]; every test runs for all of them.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

mod ark;
mod case;
mod dashscope;
mod engine;
mod kling;
mod minimax;
mod outcomes;
mod paid_once;
mod requests;
mod stage;
mod veo;
