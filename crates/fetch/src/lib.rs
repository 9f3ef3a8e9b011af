//! Reads reference URLs into files. [`Fetcher::fetch`] is the only door; read on in the order in
//! which a URL crosses it:
//!
//! 1. `target`: the URL is parsed, its host resolved once, every answer judged.
//! 2. `network` and `address`: the judgement itself, [`judge`], and the operator's exceptions.
//! 3. `connect`: TCP and TLS to exactly a judged address, within one deadline.
//! 4. `exchange`: one request, one bounded response head; redirects go back to 1.
//! 5. `body`: the bytes into a new file, counted, never slower than the minimum rate.
//!
//! It refuses proxies from the environment, connection reuse, cookies, decompression and any
//! opinion on what the bytes are.

mod address;
mod body;
mod connect;
mod error;
mod exchange;
mod fetcher;
mod network;
mod options;
mod resolve;
mod target;

pub use address::{Reason, Verdict, judge};
pub use body::{Pace, SaveError, save};
pub use error::{Cause, FetchError};
pub use fetcher::Fetcher;
pub use network::{Network, NetworkError};
pub use options::{Options, OptionsError};
pub use resolve::{Resolve, SystemResolver};
