//! Requests: the fields of a submit and of an edit. Nothing is validated here; the service refuses
//! unsupported fields by name.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// A request for a video.
///
/// ```
/// use kinora_client::NewVideo;
///
/// let video = NewVideo::new("kinora-a1", "Day turns into night")
///     .size("1280x720")
///     .seconds(4)
///     .first_frame("https://example.com/day.jpg")
///     .metadata("order", "4711");
/// assert_eq!(serde_json::to_value(&video).unwrap()["seconds"], 4);
/// ```
#[derive(Clone, Debug, Default, Serialize)]
#[must_use]
pub struct NewVideo {
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    negative_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aspect_ratio: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_frame: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_frame: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reference_images: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reference_audios: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generate_audio: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    draft: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    draft_task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback_url: Option<String>,
    #[serde(skip)]
    pub(crate) idempotency_key: Option<String>,
}

impl NewVideo {
    /// A video of `prompt` by `model`, with the model's defaults.
    pub fn new(model: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            prompt: Some(prompt.into()),
            ..Self::default()
        }
    }

    /// The final of a completed draft of the same model: prompt, seed, references, length and size
    /// come from the draft; metadata and callback may differ.
    /// [`Client::final_of`](crate::Client::final_of) finds the model itself.
    pub fn final_of(model: impl Into<String>, draft_id: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            draft_task_id: Some(draft_id.into()),
            ..Self::default()
        }
    }

    /// Things to avoid.
    pub fn negative_prompt(mut self, text: impl Into<String>) -> Self {
        self.negative_prompt = Some(text.into());
        self
    }

    /// Length: a number of seconds, or [`Seconds::Auto`].
    pub fn seconds(mut self, seconds: impl Into<Seconds>) -> Self {
        self.seconds = Some(seconds.into());
        self
    }

    /// One of the model's sizes, `"WIDTHxHEIGHT"`.
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.size = Some(size.into());
        self
    }

    /// `"480p"`, `"720p"` or `"1080p"`, instead of a size.
    pub fn resolution(mut self, resolution: impl Into<String>) -> Self {
        self.resolution = Some(resolution.into());
        self
    }

    /// Such as `"16:9"` or `"adaptive"`, instead of a size.
    pub fn aspect_ratio(mut self, ratio: impl Into<String>) -> Self {
        self.aspect_ratio = Some(ratio.into());
        self
    }

    /// URL of the image that the video starts with.
    pub fn first_frame(mut self, url: impl Into<String>) -> Self {
        self.first_frame = Some(url.into());
        self
    }

    /// URL of the image that the video ends with; needs a first frame.
    pub fn last_frame(mut self, url: impl Into<String>) -> Self {
        self.last_frame = Some(url.into());
        self
    }

    /// Adds the URL of an image to show.
    pub fn reference_image(mut self, url: impl Into<String>) -> Self {
        self.reference_images.push(url.into());
        self
    }

    /// Adds the URL of a sound to hear.
    pub fn reference_audio(mut self, url: impl Into<String>) -> Self {
        self.reference_audios.push(url.into());
        self
    }

    /// Whether the result has a sound track, on models that make one.
    pub fn generate_audio(mut self, sound: bool) -> Self {
        self.generate_audio = Some(sound);
        self
    }

    /// The seed; without one the service chooses a random one and returns it.
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = Some(seed);
        self
    }

    /// A quick preview at 480p, which can be rendered as a final.
    pub fn draft(mut self, draft: bool) -> Self {
        self.draft = draft;
        self
    }

    /// `"low"`, `"normal"` or `"high"`: the order of the project's own waiting tasks.
    pub fn priority(mut self, priority: impl Into<String>) -> Self {
        self.priority = Some(priority.into());
        self
    }

    /// Adds a pair that the task object returns unchanged.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// URL to which the service posts a signed event when the task ends. The project needs a
    /// signing secret for callbacks, which an operator creates with `kinora webhooks add`;
    /// otherwise the service refuses the request.
    pub fn callback_url(mut self, url: impl Into<String>) -> Self {
        self.callback_url = Some(url.into());
        self
    }

    /// 1 to 255 visible ASCII characters: for 24 hours the same request with this key returns the
    /// same task, even from another process. Without it the client generates a key for each submit.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }
}

/// Length of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seconds {
    /// Whole seconds.
    Fixed(u32),
    /// The model chooses, if it can.
    Auto,
}

impl From<u32> for Seconds {
    fn from(seconds: u32) -> Self {
        Self::Fixed(seconds)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(seconds) => serializer.serialize_u32(*seconds),
            Self::Auto => serializer.serialize_str("auto"),
        }
    }
}

/// An edit of a completed video.
#[derive(Clone, Debug, Default, Serialize)]
#[must_use]
pub struct Edit {
    prompt: String,
    video: VideoRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    negative_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edit_strength: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reference_images: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback_url: Option<String>,
    #[serde(skip)]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct VideoRef {
    id: String,
}

impl Edit {
    /// The video of the task `id`, changed according to `prompt`, by the service's first model that
    /// supports edits.
    pub fn new(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            video: VideoRef { id: id.into() },
            ..Self::default()
        }
    }

    /// The model for the edit.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Things to avoid.
    pub fn negative_prompt(mut self, text: impl Into<String>) -> Self {
        self.negative_prompt = Some(text.into());
        self
    }

    /// 0.0 to 1.0: how far the result may depart from its source.
    pub fn strength(mut self, strength: f64) -> Self {
        self.edit_strength = Some(strength);
        self
    }

    /// The seed.
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Adds the URL of an image to show.
    pub fn reference_image(mut self, url: impl Into<String>) -> Self {
        self.reference_images.push(url.into());
        self
    }

    /// As [`NewVideo::priority`].
    pub fn priority(mut self, priority: impl Into<String>) -> Self {
        self.priority = Some(priority.into());
        self
    }

    /// Adds a pair that the task object returns unchanged.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// As [`NewVideo::callback_url`].
    pub fn callback_url(mut self, url: impl Into<String>) -> Self {
        self.callback_url = Some(url.into());
        self
    }

    /// As [`NewVideo::idempotency_key`].
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_asked_for_is_sent() {
        let plain = NewVideo::new("m", "p").idempotency_key("k");
        assert_eq!(
            serde_json::to_value(&plain).unwrap(),
            json!({"model": "m", "prompt": "p"})
        );
        let full = NewVideo::new("m", "p")
            .seconds(Seconds::Auto)
            .reference_image("http://a/1")
            .draft(true)
            .seed(7);
        assert_eq!(
            serde_json::to_value(&full).unwrap(),
            json!({"model": "m", "prompt": "p", "seconds": "auto", "draft": true, "seed": 7,
                   "reference_images": ["http://a/1"]})
        );
        let last = NewVideo::final_of("m", "video_x")
            .priority("low")
            .callback_url("https://a/1");
        assert_eq!(
            serde_json::to_value(&last).unwrap(),
            json!({"model": "m", "draft_task_id": "video_x", "priority": "low",
                   "callback_url": "https://a/1"})
        );
        let edit = Edit::new("video_x", "at night")
            .strength(0.5)
            .priority("high")
            .callback_url("https://a/2");
        assert_eq!(
            serde_json::to_value(&edit).unwrap(),
            json!({"prompt": "at night", "video": {"id": "video_x"}, "edit_strength": 0.5,
                   "priority": "high", "callback_url": "https://a/2"})
        );
    }
}
