//! The contract as tests: tables of refused and accepted requests, properties over generated
//! ones, and what may ever be seen of a task. Nothing here needs a network, a clock or a store.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should stop"
)]

mod cases;
mod lineage;
mod objects;
mod order;
mod properties;
mod strategies;
mod tables;
