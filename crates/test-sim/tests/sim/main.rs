//! A seeded simulation of the whole service in virtual time: each seed is one life of a few hundred
//! operations, drawn from thirty kinds, between which the workers go on by themselves. After each operation,
//! and after each effect that a worker has on the two stores, every promise that can be looked at is looked at.
//!
//! Real are: the router and all behind it, the contract, the SQLite store on a file, the local blob store, the
//! faulty wrappers around both, and the workers, of which two work on one store: claims, the fetch stage, leases,
//! preparing, films, publishing, sweeps, chores, orphans, backing off and stopping are `kinora-worker`'s own code.
//! Modelled are: the sockets (requests go to the router in process), the hosts of references (`hosts`), the
//! machine's death (what lies on the disk at that moment is copied and opened), and the engine with the check of
//! its films (`films`): a `FilmEngine`, so that neither the recorder nor a decoder of films runs. Whatever blocks is
//! done on the spot (`moment`): the workers' pools, their lease keeper and the store's writer have no threads here.
//!
//! A worker's calls (`seen`) take a while, hang and die with its process. The store stamps all times; the workers
//! have clocks of their own, and one of these is wrong.
//!
//! Some lives are over PostgreSQL instead (`KINORA_SIM_POSTGRES_SEEDS`): there the processes die and the database stays.
//! It judges by the life's clock, but its notices arrive in real time: such a seed may live another life each time.
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

mod base;
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

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
