//! Requests: the fields of a submit and of an edit. Nothing is validated here; the service refuses
//! unsupported fields by name.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// The fields that a caller has set, as they are sent.
#[derive(Clone, Debug, Default, Serialize)]
struct RequestFields(Map<String, Value>);

impl RequestFields {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn text(&mut self, name: &str, text: impl Into<String>) {
        self.set(name, text.into());
    }

    fn push(&mut self, list: &str, item: String) {
        if let Value::Array(items) = self.0.entry(list).or_insert_with(|| json!([])) {
            items.push(item.into());
        }
    }

    fn add_metadata(&mut self, key: String, value: String) {
        let pairs = self.0.entry("metadata").or_insert_with(|| json!({}));
        pairs[key] = value.into();
    }
}

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
    #[serde(flatten)]
    fields: RequestFields,
    #[serde(skip)]
    pub(crate) idempotency_key: Option<String>,
}

impl NewVideo {
    /// A video of `prompt` by `model`, with the model's defaults.
    pub fn new(model: impl Into<String>, prompt: impl Into<String>) -> Self {
        let mut video = Self::default();
        video.fields.text("model", model);
        video.fields.text("prompt", prompt);
        video
    }

    /// The final of a completed draft of the same model: prompt, seed, references, length and size
    /// come from the draft; metadata and callback may differ.
    /// [`Client::final_of`](crate::Client::final_of) finds the model itself.
    pub fn final_of(model: impl Into<String>, draft_id: impl Into<String>) -> Self {
        let mut video = Self::default();
        video.fields.text("model", model);
        video.fields.text("draft_task_id", draft_id);
        video
    }

    /// Things to avoid.
    pub fn negative_prompt(mut self, text: impl Into<String>) -> Self {
        self.fields.text("negative_prompt", text);
        self
    }

    /// Length: a number of seconds, or [`Seconds::Auto`].
    pub fn seconds(mut self, seconds: impl Into<Seconds>) -> Self {
        let seconds: Seconds = seconds.into();
        self.fields.set("seconds", json!(seconds));
        self
    }

    /// One of the model's sizes, `"WIDTHxHEIGHT"`.
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.fields.text("size", size);
        self
    }

    /// `"480p"`, `"720p"` or `"1080p"`, instead of a size.
    pub fn resolution(mut self, resolution: impl Into<String>) -> Self {
        self.fields.text("resolution", resolution);
        self
    }

    /// Such as `"16:9"` or `"adaptive"`, instead of a size.
    pub fn aspect_ratio(mut self, ratio: impl Into<String>) -> Self {
        self.fields.text("aspect_ratio", ratio);
        self
    }

    /// URL of the image that the video starts with.
    pub fn first_frame(mut self, url: impl Into<String>) -> Self {
        self.fields.text("first_frame", url);
        self
    }

    /// URL of the image that the video ends with; needs a first frame.
    pub fn last_frame(mut self, url: impl Into<String>) -> Self {
        self.fields.text("last_frame", url);
        self
    }

    /// Adds the URL of an image to show.
    pub fn reference_image(mut self, url: impl Into<String>) -> Self {
        self.fields.push("reference_images", url.into());
        self
    }

    /// Adds the URL of a sound to hear.
    pub fn reference_audio(mut self, url: impl Into<String>) -> Self {
        self.fields.push("reference_audios", url.into());
        self
    }

    /// Whether the result has a sound track, on models that make one.
    pub fn generate_audio(mut self, sound: bool) -> Self {
        self.fields.set("generate_audio", sound);
        self
    }

    /// The seed; without one the service chooses a random one and returns it.
    pub fn seed(mut self, seed: u32) -> Self {
        self.fields.set("seed", seed);
        self
    }

    /// A quick preview at 480p, which can be rendered as a final.
    pub fn draft(mut self, draft: bool) -> Self {
        self.fields.0.remove("draft");
        if draft {
            self.fields.set("draft", true);
        }
        self
    }

    /// `"low"`, `"normal"` or `"high"`: the order of the project's own waiting tasks.
    pub fn priority(mut self, priority: impl Into<String>) -> Self {
        self.fields.text("priority", priority);
        self
    }

    /// Adds a pair that the task object returns unchanged.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.add_metadata(key.into(), value.into());
        self
    }

    /// URL to which the service posts a signed event when the task ends. The project needs a
    /// signing secret for callbacks, which an operator creates with `kinora webhooks add`;
    /// otherwise the service refuses the request.
    pub fn callback_url(mut self, url: impl Into<String>) -> Self {
        self.fields.text("callback_url", url);
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
    #[serde(flatten)]
    fields: RequestFields,
    #[serde(skip)]
    pub(crate) idempotency_key: Option<String>,
}

impl Edit {
    /// The video of the task `id`, changed according to `prompt`, by the service's first model that
    /// supports edits.
    pub fn new(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        let (mut edit, id): (Self, String) = (Self::default(), id.into());
        edit.fields.text("prompt", prompt);
        edit.fields.set("video", json!({ "id": id }));
        edit
    }

    /// The model for the edit.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.fields.text("model", model);
        self
    }

    /// Things to avoid.
    pub fn negative_prompt(mut self, text: impl Into<String>) -> Self {
        self.fields.text("negative_prompt", text);
        self
    }

    /// 0.0 to 1.0: how far the result may depart from its source.
    pub fn strength(mut self, strength: f64) -> Self {
        self.fields.set("edit_strength", strength);
        self
    }

    /// The seed.
    pub fn seed(mut self, seed: u32) -> Self {
        self.fields.set("seed", seed);
        self
    }

    /// Adds the URL of an image to show.
    pub fn reference_image(mut self, url: impl Into<String>) -> Self {
        self.fields.push("reference_images", url.into());
        self
    }

    /// As [`NewVideo::priority`].
    pub fn priority(mut self, priority: impl Into<String>) -> Self {
        self.fields.text("priority", priority);
        self
    }

    /// Adds a pair that the task object returns unchanged.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.add_metadata(key.into(), value.into());
        self
    }

    /// As [`NewVideo::callback_url`].
    pub fn callback_url(mut self, url: impl Into<String>) -> Self {
        self.fields.text("callback_url", url);
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
