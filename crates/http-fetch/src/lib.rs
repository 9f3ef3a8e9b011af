//! Fetches reference URLs into files, with [`ReferenceFetcher::fetch`], and posts events to webhooks, with
//! [`ReferenceFetcher::post`]. Both check every address before connecting; the modules in the order in which
//! a URL passes them:
//!
//! 1. `turns` and `budget` limit the connections per host and the bytes per project and hour;
//!    `patience` limits the time.
//! 2. `target`: parses the URL, resolves its host once (`resolve`, `lookups`) and checks every
//!    answer.
//! 3. `policy`: decides: what the operator lists (`network`), what is local (`surroundings`), what
//!    is public (`address`, [`classify`]).
//! 4. `fetcher`: TCP and TLS to exactly a permitted address, within one deadline; one request, one
//!    bounded response head; redirects go back to 2.
//! 5. `body`: saves the bytes to a new file, counted, never below the minimum rate, and undoes their
//!    `coding`.
//!
//! `error` has the errors, `reached` how far the fetch got. [`SystemResolver`] also resolves for clients in
//! other crates, without these checks.
//!
//! It uses no proxy from the environment, no connection reuse and no cookies, and does not
//! interpret the file.

#![forbid(unsafe_code)]

mod address;
mod body;
mod budget;
mod coding;
mod error;
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

pub use address::{AddressVerdict, ForbiddenReason, classify};
pub use body::{MinimumPace, SaveError, SaveTarget, save};
pub use coding::ContentCoding;
pub use error::{FetchCause, FetchError};
pub use fetcher::{DISK_THREADS, ReferenceFetcher, ReferenceRequest, WebhookPost};
pub use network::{Network, NetworkError};
pub use options::{FetchOptions, FetchOptionsError};
pub use policy::{AllowedNetwork, AllowedNetworkError};
pub use reached::FetchProgress;
pub use resolve::{LookupError, NameLookup, ProjectResolver, SystemResolver};
pub use surroundings::{InterfaceAddress, InterfaceSource, SystemInterfaces};
