//! What is promised of reference files: whole and honest ones give the pixels and samples that
//! were put in, all others a clean refusal in bounded memory and time.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

mod bombs;
mod colours;
mod edges;
mod fuzz;
mod images;
mod kinds;
mod limits;
mod pictures;
mod samples;
mod sounds;
mod wavs;
