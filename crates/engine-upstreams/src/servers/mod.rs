//! What both kinds of engines need, whatever protocol their servers speak:
//!
//! 1. [`places_of`]: the servers as places, of which the least busy available one is chosen;
//!    [`Backoff`], [`Timer`] and [`Patience`]: how long to wait for one.
//! 2. [`Upstream`]: one server, with its [`Key`] and headers; [`Http`]: one bounded exchange;
//!    [`encode_form`]: the body of an upload; [`save_result`]: a result as a new file.
//! 3. [`retry_after`]: when a server wants the next request; [`Cause`]: what came instead of an answer.
//!
//! It knows no protocol.

mod cause;
mod key;
mod patience;
mod upstream;

pub use cause::Cause;
pub(crate) use cause::{chain, shown};
pub(crate) use key::{Key, SettingsError, check_each_once, key_source};
pub use key::{KeyError, KeySource};
pub(crate) use patience::{Backoff, Impatience, Patience, poll_after, retry_after};
pub use patience::{Limits, SystemTimer, Timer};
pub(crate) use upstream::{
    Call, Content, Encoded, Http, HttpOptions, Part, Reply, ResultError, Saved, Upstream, base_url,
    encode_form, file_ending, is_media_type, origin, places_of, save_result,
};
