//! What every engine of other servers needs, whatever protocol they speak. The modules in the order in
//! which a call passes them:
//!
//! 1. [`places_of`]: the servers as places, of which the least busy available one is chosen;
//!    [`Backoff`], [`Timer`] and [`Patience`]: how long to wait for one.
//! 2. [`Upstream`]: one server, with its [`Key`] and headers, which only its own origin gets.
//! 3. [`Http`]: one bounded exchange; [`form`](encode_form): the body of an upload.
//! 4. [`retry_after`]: when a server wants the next request; [`Cause`]: what came instead of an answer.
//! 5. [`save_result`]: a result as a new file, counted and paced.
//!
//! [`key_source`] and [`check_each_once`] judge the settings that all these engines have.
//!
//! It uses no redirects, no proxies from the environment and no unbounded bodies, and knows no protocol.

#![forbid(unsafe_code)]

mod backoff;
mod cause;
mod form;
mod hints;
mod http;
mod key;
mod media_type;
mod patience;
mod places;
mod result;
mod settings;
mod text;
mod timer;
mod upstream;

pub use backoff::Backoff;
pub use cause::Cause;
pub use form::{Content, Part, encode as encode_form};
pub use hints::{poll_after, retry_after};
pub use http::{Http, HttpOptions, Reply};
pub use key::{Key, KeyError, KeySource};
pub use media_type::{file_ending, is_media_type};
pub use patience::{Impatience, Limits, Patience};
pub use places::places_of;
pub use result::{ResultError, Saved, save_result};
pub use settings::{SettingsError, check_each_once, key_source};
pub use text::{chain, shown};
pub use timer::{SystemTimer, Timer};
pub use upstream::{Call, Encoded, Upstream, base_url, origin};
