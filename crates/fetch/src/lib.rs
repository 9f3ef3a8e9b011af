//! Reads reference URLs into files. [`Fetcher::fetch`] is the only door; read on in the order in
//! which a URL crosses it:
//!
//! 1. `turns` and `budget` bound the connections to one host and the bytes of one project in an
//!    hour; `patience` bounds the time.
//! 2. `target`: the URL is parsed, its host resolved once (`resolve`, `lookups`), every answer
//!    judged.
//! 3. `policy`: the judgement: what the operator names (`network`), what is near (`surroundings`),
//!    what is public (`address`, [`judge`]).
//! 4. `connect`: TCP and TLS to exactly a judged address, within one deadline.
//! 5. `exchange`: one request, one bounded response head; redirects go back to 2.
//! 6. `body`: the bytes into a new file, counted, never slower than the minimum rate.
//!
//! `error` says what went wrong, `reached` how far the fetch got.
//!
//! It refuses proxies from the environment, connection reuse, cookies, decompression and any
//! opinion on what the bytes are.

#![forbid(unsafe_code)]

mod address;
mod body;
mod budget;
mod connect;
mod error;
mod exchange;
mod fetcher;
mod lookups;
mod network;
mod options;
mod patience;
mod policy;
mod reached;
mod resolve;
mod surroundings;
mod target;
mod turns;

pub use address::{Reason, Verdict, judge};
pub use body::{Pace, SaveError, Saving, save};
pub use error::{Cause, FetchError};
pub use fetcher::{DISK_THREADS, Fetcher, Request};
pub use network::{Network, NetworkError};
pub use options::{Options, OptionsError};
pub use policy::{Allowed, AllowedError};
pub use reached::Reached;
pub use resolve::{Lookup, LookupError, Resolve, SystemResolver};
pub use surroundings::{Attached, Interfaces, SystemInterfaces};
