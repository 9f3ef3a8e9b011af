//! What both kinds of engines need, whatever protocol their servers speak:
//!
//! 1. [`ServerPool`]: the servers of one engine, of which the least busy available one is chosen; [`ServerOptions`]:
//!    their limits; [`SpreadBackoff`], [`WaitTimer`] and [`TaskPatience`]: how long to wait for one.
//! 2. [`UpstreamServer`]: one server, with its [`ServerKey`](key::ServerKey) and headers; `upstream` makes one bounded
//!    exchange with it; [`encode_form`]: the body of an upload.
//! 3. [`ExchangeWatcher`]: shows each exchange to an operator.
//! 4. [`retry_after`]: when a server wants the next request; [`CallError`]: what came instead of an answer;
//!    [`UpstreamError`]: why there is no film.
//!
//! It knows no protocol.

mod auth;
mod cause;
mod error;
mod key;
mod options;
mod patience;
mod pool;
mod upstream;
mod watch;

pub(crate) use auth::{AuthScheme, KeySigner};
pub use cause::{AnswerError, CallError};
pub(crate) use cause::{chain, shown};
pub use error::UpstreamError;
pub use key::KeySource;
pub(crate) use key::read_small;
pub(crate) use options::{
    LAST_CALL_MAX, OneOrMany, ReferenceReader, base_url, check_positive, key_source, milliseconds,
    origin, read_ticket, seconds, setting,
};
pub use options::{NamedServer, ServerOptions};
pub(crate) use patience::{SpreadBackoff, TaskPatience, poll_after, retry_after};
pub use patience::{SystemTimer, WaitTimer};
pub(crate) use pool::{DISK_THREADS, ServerPool};
pub(crate) use upstream::{
    EncodedBody, FormPart, ServerAnswer, ServerCall, UpstreamServer, encode_form, file_ending,
    is_media_type,
};
pub use watch::{ExchangeWatcher, WatchedAnswer, WatchedExchange};
