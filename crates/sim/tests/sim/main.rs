//! A seeded simulation of the whole service under a manual clock: each seed is one life of a few
//! hundred operations, drawn from about forty kinds, and after each of them every promise that
//! can be looked at is looked at.
//!
//! Real are: the router and all behind it, the contract, the SQLite store on a file, the local
//! blob store, the faulty wrappers around both, and the worker's look for orphans and trust in the
//! clock. Modelled are: the sockets (requests go to the router in process), the machine's death
//! (what lies on the disk at that moment is copied and opened), and the three workers, whose
//! effects on the two stores are made one by one in the order of `kinora-worker`'s modules, without
//! timers, engine and encoder: see `worker` and `steps`. Two processes beside them do chores. The
//! store stamps all times; the workers have clocks of their own, and two of these are wrong.
//!
//! `KINORA_SIM_SEEDS` says how many lives, `KINORA_SIM_FIRST_SEED` which is the first,
//! `KINORA_SIM_OPERATIONS` how long each is. A failing life prints its seed and all it did.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a simulation stops at the first broken promise"
)]

mod book;
mod client;
mod clocks;
mod films;
mod hosts;
mod http;
mod ledger;
mod lives;
mod moment;
mod operations;
mod orphans;
mod process;
mod quiescence;
mod requests;
mod rng;
mod seen;
mod submit;
mod taken;
mod transitions;
mod witness;
mod world;
