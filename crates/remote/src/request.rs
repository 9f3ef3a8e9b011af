//! What is asked of an upstream, and the name of a task there. Both are values: nothing here reads a
//! file or the network.

use kinora_contract::VideoSpec;
use kinora_engine::ReferenceFile;
use serde::{Deserialize, Serialize};

/// A video to be made elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteRequest {
    /// The upstream's name of the model; `None` leaves it to the upstream.
    pub model: Option<String>,
    /// What to make; its shape must be decided.
    pub spec: VideoSpec,
    /// The reference material of the spec as fetched, in the order of its
    /// [`references`](kinora_contract::Inputs::references).
    pub references: Vec<ReferenceFile>,
    /// Whether the upstream's model can be told to make sound or none.
    pub audio_switch: bool,
    /// Distinct for each run that may be paid for, the same for its repetition: the task's id.
    /// 1 to 255 visible ASCII characters.
    pub key: String,
}

/// A task at an upstream: what must be kept so that it is polled on after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// The configured name of the upstream.
    pub upstream: String,
    /// The task's identifier there.
    pub id: String,
}
