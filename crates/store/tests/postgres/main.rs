//! The PostgreSQL store against the conformance suite, with two handles on one database, and what is about PostgreSQL
//! alone: connections that break, commits whose answer is lost, newer rows and schemas. Each test has a database of its
//! own on a server that this program starts.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

mod allowances;
mod backlog;
mod clock;
mod durability;
mod failover;
mod faults;
mod harness;
mod load;
mod migrations;
mod moves;
mod names;
mod polls;
mod pooler;
mod proxy;
mod schema;
mod silence;
mod standby;
mod tls;

use harness::Databases;

kinora_store::conformance_suite!(Databases::default());
