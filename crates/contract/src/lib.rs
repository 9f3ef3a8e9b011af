//! The pure domain of Kinora. Read it in the order in which a request crosses it:
//!
//! 1. [`request`]: parses the body, JSON or form, into one [`SubmitRequest`].
//! 2. [`card`]: the model cards, [`record`]: their file format, and [`mod@validate`]: turns request
//!    and card into a [`VideoSpec`].
//! 3. [`task`]: the states of a task; [`priority`]: its rank in its project; [`lifecycle`]: its
//!    transitions and their effects; [`object`]: the task as clients see it; [`webhook`]: the event
//!    at its end; [`tally`]: sums over ended tasks; [`trace`]: the trace that it belongs to.
//! 4. [`error`]: every refusal and every failure by its stable code; [`limits`]: every limit.
//!
//! It has no I/O, no async, no clocks and no randomness: time and random bytes are arguments.

#![forbid(unsafe_code)]

pub mod card;
mod combine;
mod cost;
mod date;
pub mod edit_call;
pub mod entropy;
pub mod error;
mod fields;
pub mod form;
pub mod hex;
mod hints;
pub mod id;
mod json;
pub mod key;
pub mod lifecycle;
pub mod limits;
pub mod lineage;
pub mod object;
pub mod page;
pub mod priority;
mod ranges;
mod readiness;
pub mod record;
pub mod reference_url;
pub mod request;
pub mod size;
pub mod spec;
pub mod tally;
pub mod task;
pub mod time;
pub mod trace;
pub mod validate;
pub mod warning;
pub mod webhook;
mod weight;

pub use card::{Capabilities, Catalog, Features, ModelCard};
pub use date::{iso_date, iso_day, parse_iso_day};
pub use entropy::{Entropy, NoEntropy};
pub use error::{ErrorBody, ErrorCode, Failure, FailureCode, Refusal};
pub use form::Form;
pub use id::{ID_AHEAD_MS_MAX, TaskId};
pub use key::KeyText;
pub use object::{Links, VideoDeleted, VideoList, VideoObject};
pub use page::PageQuery;
pub use priority::Priority;
pub use readiness::{Alive, Readiness, Standstill};
pub use record::{CardError, CardRecord, built_in_cards};
pub use request::SubmitRequest;
pub use size::{AspectRatio, Resolution, Size};
pub use spec::{Edit, FrameSize, Inputs, Reference, SPEC_VERSION, Seconds, VideoSpec};
pub use tally::Tally;
pub use task::{Artifact, Phase, State, Status, StoredFile, Task};
pub use time::{
    Clock, LeaseMs, ManualClock, RELEASED_MS, Reading, RunningClock, SteadyMs, Stopwatch, UnixMs,
};
pub use trace::TraceContext;
pub use validate::{Intent, Submission, validate};
pub use warning::{Warning, WarningCode};
pub use webhook::WebhookSecret;
pub use weight::listed_bytes;
