//! The JSON bodies of the engine protocol, as `docs/engine-protocol.md` defines them for engines
//! written in any language, and the clip sizes that follow from them. Readers ignore unknown keys.

use std::time::Duration;

use kinora_contract::{Features, ModelPreset, Size, VideoSpec};
use kinora_engine::{CHANNELS, ClipPlan, EngineCapabilities, RenderGrid, SAMPLE_RATE_HZ};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Protocol version of this service.
pub(crate) const VERSION: ProtocolVersion = ProtocolVersion { major: 1, minor: 1 };
/// How long an engine may take to obey a cancel unless it asks for more.
const YIELD_SECONDS: f64 = 1.5;
/// Maximum of that request.
const YIELD_SECONDS_MAX: f64 = 30.0;

/// No model has a coarser grid, and products with it do not overflow.
const GRID_MAX: u32 = 1_024;

/// A version of the protocol. Equal major versions understand each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolVersion {
    /// Changes what messages mean.
    pub major: u32,
    /// Adds messages and keys.
    pub minor: u32,
}

/// The first message to an engine process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenRequest {
    /// The version that the service speaks.
    #[serde(default = "version")]
    pub protocol: ProtocolVersion,
    /// The kind of engine, for this executable, which has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The engine's name in the configuration.
    pub name: String,
    /// Its settings.
    pub settings: serde_json::Value,
    /// The device that it computes on. `None`: it chooses.
    #[serde(default)]
    pub device: Option<String>,
}

const fn version() -> ProtocolVersion {
    VERSION
}

impl OpenRequest {
    /// The message for an engine named `name`.
    pub fn new(name: impl Into<String>, settings: serde_json::Value) -> Self {
        Self {
            protocol: VERSION,
            kind: None,
            name: name.into(),
            settings,
            device: None,
        }
    }
}

/// The first message of an engine process: what it is and what it can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EngineHello {
    pub protocol: ProtocolVersion,
    #[serde(default)]
    pub sdk: String,
    #[serde(default)]
    pub engine: EngineName,
    #[serde(default, deserialize_with = "known_features")]
    pub features: Features,
    #[serde(default = "one")]
    pub size_multiple: u32,
    #[serde(default)]
    pub frames: FrameGrid,
    /// 0: any.
    #[serde(default)]
    pub fps: u32,
    #[serde(default = "yield_seconds")]
    pub yield_seconds: f64,
    /// Since 1.1: whether it obeys [`JobHead::preset`].
    #[serde(default)]
    pub presets: bool,
}

/// The engine's own name for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineName {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub version: String,
}

/// Clips have `step * n + offset` frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FrameGrid {
    pub step: u32,
    pub offset: u32,
}

impl Default for FrameGrid {
    fn default() -> Self {
        Self { step: 1, offset: 0 }
    }
}

/// An engine of a later version may have features that this one does not know.
fn known_features<'de, D: Deserializer<'de>>(table: D) -> Result<Features, D::Error> {
    let known = serde_json::to_value(Features::default()).map_err(D::Error::custom)?;
    let mut features = Map::deserialize(table)?;
    // `Features` refuses unknown fields, as the configuration needs; here they are dropped
    // first.
    features.retain(|name, _| known.get(name).is_some());
    Features::deserialize(Value::Object(features)).map_err(D::Error::custom)
}

const fn one() -> u32 {
    1
}

const fn yield_seconds() -> f64 {
    YIELD_SECONDS
}

impl EngineHello {
    /// The hello of this executable, whose planner already knows what the engine can do.
    pub(crate) fn of_this_executable() -> Self {
        Self {
            protocol: VERSION,
            sdk: format!("kinora/{}", env!("CARGO_PKG_VERSION")),
            engine: EngineName::default(),
            features: Features::default(),
            size_multiple: one(),
            frames: FrameGrid::default(),
            fps: 0,
            yield_seconds: yield_seconds(),
            presets: false,
        }
    }

    /// Converts to the public form, with values clamped to sane ranges.
    pub(crate) fn introduction(&self) -> EngineIntroduction {
        EngineIntroduction {
            sdk: self.sdk.clone(),
            name: self.engine.name.clone(),
            version: self.engine.version.clone(),
            promises: EngineCapabilities {
                features: self.features,
                grid: RenderGrid {
                    size_multiple: self.size_multiple.clamp(1, GRID_MAX),
                    frame_step: self.frames.step.clamp(1, GRID_MAX),
                    frame_offset: self.frames.offset.min(GRID_MAX),
                },
                fps: self.fps,
                presets: self.presets,
            },
            yield_limit: self.yield_limit(),
        }
    }

    /// How long to wait for the end of a cancelled job.
    fn yield_limit(&self) -> Duration {
        // NaN becomes the default too.
        let asked = self.yield_seconds.max(YIELD_SECONDS);
        Duration::from_secs_f64(asked.min(YIELD_SECONDS_MAX))
    }
}

/// An engine's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineIntroduction {
    /// Package that implements the protocol, with its version.
    pub sdk: String,
    /// The engine's own name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its capabilities; 0 frames per second: any rate.
    pub promises: EngineCapabilities,
    /// How long it may take to obey a cancel.
    pub yield_limit: Duration,
}

/// A long silent part of the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeclaredPhase {
    pub name: String,
    pub limit_seconds: f64,
}

impl DeclaredPhase {
    /// The most that a phase can declare.
    const LIMIT_SECONDS_MAX: f64 = 3_600.0;

    /// How long signs of life count as progress.
    pub(crate) fn limit(&self) -> Duration {
        let seconds = self.limit_seconds.clamp(0.0, Self::LIMIT_SECONDS_MAX);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }
}

/// The length of a clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LengthDecision {
    /// As rendered: on the engine's grid.
    pub frames: u32,
}

/// Everything in a job except its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobHead {
    pub prompt: String,
    pub negative_prompt: Option<String>,
    pub seed: u32,
    pub draft: bool,
    #[serde(rename = "final")]
    pub is_final: bool,
    pub edit: Option<EditHead>,
    pub clip: ClipHead,
    pub first_frame: Option<PixelSize>,
    pub last_frame: Option<PixelSize>,
    pub images: Vec<PixelSize>,
    pub audios: u32,
    pub source: Option<SourceHead>,
    /// Since 1.1: the settings of the model, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<ModelPreset>,
    /// A key of a later version, which today's engines must ignore: for `kinora engine check`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<bool>,
    /// Only for engines of this executable: it contains the URLs of references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnHead>,
}

/// Parts of a job that only engines of this executable get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnHead {
    pub spec: VideoSpec,
    /// At most [`kinora_engine::SCRIPT_LINKS_MAX`] specs, each up to the size of a request's text.
    pub script: Vec<VideoSpec>,
}

/// An edit of the source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EditHead {
    pub strength: f64,
}

/// A source without its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceHead {
    #[serde(flatten)]
    pub size: PixelSize,
    pub fps: u32,
    pub frames: u32,
}

/// The outcome of a job, or of opening an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum JobEnding {
    Done,
    Cancelled,
    Unsupported {
        #[serde(default)]
        message: String,
    },
    OutOfMemory {
        #[serde(default)]
        message: String,
    },
    /// Since 1.1: not this job's fault; the process must be replaced.
    Broken {
        #[serde(default)]
        message: String,
    },
    Failed {
        #[serde(default)]
        message: String,
        /// A failure code of the contract.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
}

/// The size of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PixelSize {
    pub width: u32,
    pub height: u32,
}

impl From<Size> for PixelSize {
    fn from(size: Size) -> Self {
        Self {
            width: size.width,
            height: size.height,
        }
    }
}

impl From<PixelSize> for Size {
    fn from(pixels: PixelSize) -> Self {
        Self::new(pixels.width, pixels.height)
    }
}

/// [`ClipPlan`] in serialisable form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClipHead {
    #[serde(flatten)]
    pub size: PixelSize,
    pub fps: u32,
    /// `None`: the engine decides, up to `frames_max`.
    pub frames: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_max: Option<u32>,
    pub audio: bool,
}

impl From<ClipPlan> for ClipHead {
    fn from(clip: ClipPlan) -> Self {
        Self {
            size: clip.size.into(),
            fps: clip.fps,
            frames: Some(clip.frames),
            frames_max: None,
            audio: clip.audio,
        }
    }
}

impl ClipHead {
    /// This clip with a length that the engine decides.
    pub(crate) fn with_open_length(self) -> Self {
        Self {
            frames: None,
            frames_max: self.frames,
            ..self
        }
    }

    /// Number of frames, or its maximum.
    pub(crate) fn frames_limit(self) -> u32 {
        self.frames.or(self.frames_max).unwrap_or(0)
    }

    /// Bytes of one frame; `None` if no message can hold it.
    pub(crate) fn frame_bytes(self) -> Option<u32> {
        let pixels = u64::from(self.size.width) * u64::from(self.size.height);
        u32::try_from(pixels.checked_mul(3)?).ok()
    }

    /// Bytes of a frame whose sides are `more` pixels longer.
    pub(crate) fn larger_frame_bytes(self, more: u32) -> Option<u32> {
        let width = self.size.width.checked_add(more)?;
        let height = self.size.height.checked_add(more)?;
        let size = PixelSize { width, height };
        Self { size, ..self }.frame_bytes()
    }

    /// Bytes of its sound plus one second, because engines let the last note end.
    pub(crate) fn sound_bytes(self) -> Option<u32> {
        if !self.audio {
            return Some(0);
        }
        let seconds = u64::from(self.frames_limit().div_ceil(self.fps.max(1))) + 1;
        let second = u64::from(SAMPLE_RATE_HZ) * u64::from(CHANNELS) * 4;
        u32::try_from(seconds.checked_mul(second)?).ok()
    }
}

impl From<ClipHead> for ClipPlan {
    fn from(head: ClipHead) -> Self {
        Self {
            size: head.size.into(),
            fps: head.fps,
            frames: head.frames_limit(),
            audio: head.audio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that the Python package is tested with too.
    fn golden(name: &str) -> Value {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/tests/golden");
        let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn assert_same<T: Serialize + serde::de::DeserializeOwned>(value: &Value) {
        let read: T = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), *value);
    }

    #[test]
    fn golden_bodies_are_read_and_written_as_they_are() {
        assert_same::<OpenRequest>(&golden("open"));
        assert_same::<EngineHello>(&golden("hello"));
        assert_same::<JobHead>(&golden("job"));
        assert_same::<JobHead>(&golden("job-edit"));
        assert_same::<JobHead>(&golden("job-late"));
        assert_same::<JobHead>(&golden("job-preset"));
        for ending in golden("ended").as_array().unwrap() {
            assert_same::<JobEnding>(ending);
        }
    }

    #[test]
    fn keys_of_later_versions_are_ignored_and_absent_ones_have_their_meaning() {
        let mut hello = golden("hello");
        hello["colour"] = Value::from("red");
        hello["features"] = serde_json::json!({"draft": true, "smell": true});
        let hello: EngineHello = serde_json::from_value(hello).unwrap();
        assert!(hello.features.draft);
        let short = serde_json::json!({"protocol": {"major": 1, "minor": 7}});
        let hello: EngineHello = serde_json::from_value(short).unwrap();
        assert_eq!(
            (hello.size_multiple, hello.frames),
            (1, FrameGrid::default())
        );
        assert_eq!(hello.yield_limit(), Duration::from_millis(1_500));
    }

    #[test]
    fn limits_that_an_engine_asks_for_are_bounded() {
        let asks = |yield_seconds| {
            let hello = EngineHello {
                yield_seconds,
                ..EngineHello::of_this_executable()
            };
            hello.yield_limit()
        };
        for (asked, given) in [
            (10.0, 10.0),
            (0.0, 1.5),
            (1e9, 30.0),
            (f64::NAN, 1.5),
            (-1.0, 1.5),
        ] {
            assert_eq!(asks(asked), Duration::from_secs_f64(given), "{asked}");
        }
        let phase = |limit_seconds| DeclaredPhase {
            name: String::new(),
            limit_seconds,
        };
        for (asked, given) in [(60.0, 60), (1e9, 3_600), (-1.0, 0), (f64::NAN, 0)] {
            assert_eq!(phase(asked).limit(), Duration::from_secs(given), "{asked}");
        }
    }
}
