//! The models of a service and what they can do.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A model that the service offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Model {
    /// The identifier to send.
    pub id: String,
    /// Other names under which the service accepts it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Whether a worker serves it at the moment.
    #[serde(default = "yes")]
    pub available: bool,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Fields that this version of the client does not know, as sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What a model can do; see `docs/api.md`.
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
    /// Length in seconds when none is asked for.
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
