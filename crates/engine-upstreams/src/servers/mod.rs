//! What both kinds of engines need, whatever protocol their servers speak:
//!
//! 1. [`places_of`]: the servers as places, of which the least busy available one is chosen;
//!    [`SpreadBackoff`], [`WaitTimer`] and [`TaskPatience`]: how long to wait for one.
//! 2. [`UpstreamServer`]: one server, with its [`ServerKey`] and headers; [`ServerClient`]: one bounded exchange;
//!    [`encode_form`]: the body of an upload; [`save_result`]: a result as a new file.
//! 3. [`ExchangeWatcher`]: shows each exchange to an operator.
//! 4. [`retry_after`]: when a server wants the next request; [`CallError`]: what came instead of an answer.
//!
//! It knows no protocol.

mod auth;
mod cause;
mod key;
mod patience;
mod upstream;
mod watch;

pub(crate) use auth::{AuthScheme, KeySigner};
pub use cause::CallError;
pub(crate) use cause::{chain, shown};
pub use key::{KeyError, KeySource};
pub(crate) use key::{ServerKey, SettingsError, check_each_once, key_source};
pub(crate) use patience::{PatienceError, SpreadBackoff, TaskPatience, poll_after, retry_after};
pub use patience::{PatienceLimits, SystemTimer, WaitTimer};
pub(crate) use upstream::{
    EncodedBody, FormPart, PartContent, ResultError, ResultTarget, ServerAnswer, ServerCall,
    ServerClient, ServerClientOptions, UpstreamServer, base_url, encode_form, file_ending,
    is_media_type, origin, places_of, save_result,
};
pub use watch::{ExchangeWatcher, WatchedAnswer, WatchedExchange};
