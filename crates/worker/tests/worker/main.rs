//! One worker, or two, on the real SQLite store and a real folder of blobs, with engines that
//! behave as badly as engines do. No test here waits for a time to pass: each waits for what it
//! is about, with a deadline that only a failure reaches.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's helpers fail the test"
)]

mod away;
mod bench;
mod clocks;
mod crashes;
mod devices;
mod ending;
mod engines;
mod failures;
mod film_studio;
mod films;
mod held;
mod hiccups;
mod in_vain;
mod leftovers;
mod lengths;
mod life;
mod lodger;
mod orphans;
mod pauses;
mod processes;
mod references;
mod registry;
mod removals;
mod rescue;
mod seats;
mod server_clock;
mod short_slot;
mod sources;
mod stopping;
mod storage;
mod stored;
mod warm_up;
