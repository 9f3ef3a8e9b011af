//! What the service promises, shown on the real binary over real sockets. One module per topic;
//! `routes.rs` lists every route once, so that no topic can forget one.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should stop"
)]

mod as_sent;
mod attacks;
mod away;
mod backups;
mod bounds;
mod broken;
mod callbacks;
mod catalogue;
mod cli;
mod clocks;
mod cluster;
mod comfyui;
mod commands;
mod damage;
mod devices;
mod dice;
mod documents;
mod durability;
mod edit_sources;
mod engine_checks;
mod events;
mod examples;
mod expiry;
mod framework;
mod gateways;
mod hosted;
mod idempotency;
mod injected;
mod keys;
mod kills;
mod listener;
mod logs;
mod mcp;
mod metrics;
mod moves;
mod neural;
mod open_webui;
mod openapi;
mod operator_walks;
mod orders;
mod otlp;
mod own_models;
mod page;
mod pauses;
mod pipelines;
mod policy;
mod power;
mod presets;
mod priorities;
mod processes;
mod provenance;
mod references;
mod refused;
mod releases;
mod removed;
mod rescue;
mod restarts;
mod restores;
mod roles;
mod rust_client;
mod s3;
mod sdk;
mod seats;
mod secrets;
mod sign_in;
mod signatures;
mod stages;
mod stopping;
mod stops;
mod storage;
mod strict_http;
mod support;
mod syncs;
mod terminal;
mod third_party;
mod top;
mod traces;
mod trials;
mod uploads;
mod upstreams;
mod usage;
mod walks;
mod webhook_page;
mod webhooks;
mod weights;

/// A service that is the real binary.
pub(crate) fn setup() -> kinora_test_e2e::Setup {
    kinora_test_e2e::Setup::default()
}
