//! The pure domain of Kinora. Read it in the order in which a request crosses it:
//!
//! 1. [`request`]: parses the body, JSON or form, into one [`SubmitRequest`].
//! 2. [`card`]: the model cards and their file format, and [`mod@validate`]: turns request and card into
//!    a [`VideoSpec`].
//! 3. [`task`]: the states of a task, and its rank in its project; [`lifecycle`]: its transitions and
//!    their effects, and the sums over ended tasks; [`object`]: the task as clients see it; [`webhook`]:
//!    the event at its end; [`trace`]: the trace that it belongs to.
//! 4. [`upload_fields`]: the request that uploads a file, [`file_object`]: the file as clients see it,
//!    and [`uploaded`]: how a request and a spec name it.
//! 5. [`money`]: amounts; [`prices`]: the prices of a model, and what a task costs by them.
//! 6. [`error`]: every refusal, failure and warning by its stable code; [`limits`]: every limit.
//!
//! It has no I/O, no async, no clocks and no randomness: time and random bytes are arguments.

#![forbid(unsafe_code)]

pub mod card;
mod cost;
pub mod derived_spec;
pub mod edit_endpoints;
pub mod entropy;
pub mod error;
mod fields;
pub mod file_object;
pub mod form;
pub mod hex;
pub mod id;
mod json;
pub mod key;
pub mod lifecycle;
pub mod limits;
pub mod money;
pub mod object;
pub mod page;
pub mod prices;
mod ranges;
mod readiness;
pub mod reference_url;
pub mod request;
pub mod short_requests;
pub mod size;
pub mod spec;
pub mod task;
pub mod time;
pub mod trace;
pub mod upload_fields;
pub mod uploaded;
pub mod validate;
pub mod webhook;

pub use card::{Capabilities, Features, ModelCard, ModelCatalog};
pub use card::{CardError, CardRecord, ModelPreset, built_in_cards};
pub use cost::listed_bytes;
pub use entropy::{EntropySource, NoEntropy};
pub use error::{ErrorBody, ErrorCode, Failure, FailureCode, RequestRefusal};
pub use error::{Warning, WarningCode};
pub use file_object::{FileDeleted, FileList, FileObject};
pub use form::FormFields;
pub use id::{FileId, ID_AHEAD_MS_MAX, TaskId};
pub use key::KeyText;
pub use lifecycle::{FileKind, TaskTally};
pub use money::{Amount, Currency, Money};
pub use object::{ResultLinks, VideoDeleted, VideoList, VideoObject};
pub use page::{FilePageQuery, PageQuery};
pub use prices::{CostObject, CostReservation, Prices, TaskCost};
pub use readiness::{AliveGuard, StandstillReason, WorkerReadiness};
pub use request::SubmitRequest;
pub use size::{AspectRatio, Resolution, Size};
pub use spec::{
    EditSpec, FrameSize, ReferenceItem, SPEC_VERSION, VideoInputs, VideoLength, VideoSpec,
};
pub use task::Priority;
pub use task::{Artifact, Status, StoredFile, Task, TaskPhase, TaskState};
pub use time::{
    Clock, ClockReading, LeaseMs, ManualClock, RELEASED_MS, RunningClock, SteadyMs, Stopwatch,
    UnixMs,
};
pub use time::{day_begins_ms, day_of, iso_date, iso_day, month_of, next_month, parse_iso_day};
pub use trace::TraceContext;
pub use upload_fields::{UploadFields, UploadRequest};
pub use validate::{SubmitIntent, ValidatedRequest, validate};
pub use webhook::WebhookSecret;
