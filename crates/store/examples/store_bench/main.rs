//! Measures a store: `cargo run --release -p kinora-store --example store_bench -- rates|costs sqlite|postgres`.
//!
//! `rates`: durable submits, polls and claims a second, beside raw statements by `pgbench` where the store is
//! PostgreSQL. `costs [FINISHED [QUEUED]]`: what each operation costs with so many stored tasks (a million, and a tenth
//! of them queued) and with a tenth of them, beside a nearly empty store. SQLite files lie in the current folder;
//! PostgreSQL is a throw-away server with syncs.
#![allow(
    clippy::disallowed_methods,
    reason = "measurements are made in real time"
)]
#![allow(clippy::print_stdout, reason = "it prints tables")]

mod costs;
mod filling;
mod rates;
mod subjects;

use std::error::Error;

use mimalloc::MiMalloc;
use subjects::Kind;

/// As in the released program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Whatever went wrong.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let kind = match words.get(1) {
        Some(&"sqlite") => Kind::Sqlite,
        Some(&"postgres") => Kind::Postgres,
        _ => return Err("which store: sqlite or postgres?".into()),
    };
    let number =
        |at: usize, otherwise: u64| words.get(at).map_or(Ok(otherwise), |word| word.parse());
    match words.first() {
        Some(&"rates") => rates::measure(kind).await,
        Some(&"costs") => {
            let finished = number(2, 1_000_000)?;
            costs::measure(kind, finished, number(3, finished / 10)?).await
        }
        _ => Err("what to measure: rates or costs?".into()),
    }
}
