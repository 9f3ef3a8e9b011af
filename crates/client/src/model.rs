//! The models of a service and their capabilities.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A model that the service offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Model {
    /// The identifier to send.
    pub id: String,
    /// Other names for the model in requests.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Whether a worker currently serves it.
    #[serde(default = "yes")]
    pub available: bool,
    /// The pause of the model, if an operator has paused it: its tasks wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<ModelPause>,
    /// The model's capabilities.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Fields unknown to this version of the client, unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The pause of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelPause {
    /// Beginning of the pause, in Unix seconds.
    pub since: u64,
    /// The operator's reason, if any was given.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The capabilities of a model; see `docs/api.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Capabilities {
    /// Allowed values of `size`.
    pub sizes: Vec<String>,
    /// Shortest video in seconds.
    pub seconds_min: u32,
    /// Longest video in seconds.
    pub seconds_max: u32,
    /// Default length in seconds.
    pub seconds_default: u32,
    /// Works from text alone.
    pub text_to_video: bool,
    /// Takes `first_frame`.
    pub first_frame: bool,
    /// Takes `last_frame`.
    pub last_frame: bool,
    /// Maximum number of `reference_images`.
    pub reference_images_max: u32,
    /// Maximum number of `reference_audios`.
    pub reference_audios_max: u32,
    /// Makes a sound track.
    pub audio_output: bool,
    /// Takes `seconds: "auto"`.
    pub auto_duration: bool,
    /// Takes `negative_prompt`.
    pub negative_prompt: bool,
    /// Makes drafts and their finals.
    pub draft: bool,
    /// Edits videos.
    pub edit: bool,
}

const fn yes() -> bool {
    true
}
