//! The rules of this repository that no compiler knows: the shape of its files, which crate may
//! know which, the licences of what it is built from, and the tables in its documents.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should stop"
)]

mod arrows;
mod bundled;
mod circles;
mod configuration;
mod dependencies;
mod documents;
mod files;
mod licences;
mod links;
mod modules;
mod overview;
mod promises;
mod reference;
mod release;
mod scripts;
mod style;
