//! The arguments of each tool. Their comments become descriptions in the JSON schemas, which teach a model what each may be.
//! Unknown arguments are refused.

use rmcp::model::JsonObject;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tool_error::ToolError;

/// Reads the arguments of a tool; a refusal names the one at fault.
pub(super) fn parse<A: DeserializeOwned>(given: &JsonObject) -> Result<A, ToolError> {
    let read = |given: &JsonObject| {
        let read = serde_json::from_value(Value::Object(given.clone()));
        read.map_err(|error: serde_json::Error| error.to_string())
    };
    let message = match read(given) {
        Ok(arguments) => return Ok(arguments),
        Err(message) => message,
    };
    // serde says what is wrong, and not where: it is the argument without which that is no longer wrong.
    let at_fault = given.keys().find(|name| {
        let mut rest = given.clone();
        rest.remove(*name);
        read(&rest).err().as_ref() != Some(&message)
    });
    let refused = ToolError::new("invalid_arguments", &message);
    Err(match at_fault {
        Some(name) => refused.with_param(name),
        None => refused,
    })
}

/// Arguments of `create_video`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateVideo {
    /// What the video shows: subject, action, place, light, style and camera, in a few sentences.
    pub(super) prompt: String,
    /// Id of a model from list_models. Omit it for the first model that supports all other arguments.
    pub(super) model: Option<String>,
    /// Length in whole seconds, from the model's seconds_min to its seconds_max. Omit it for the model's default.
    pub(super) seconds: Option<u32>,
    /// WIDTHxHEIGHT in pixels, such as "1280x720": one of the model's sizes. Not together with resolution or aspect_ratio.
    pub(super) size: Option<String>,
    /// "480p", "720p" or "1080p", as an alternative to size.
    pub(super) resolution: Option<String>,
    /// "16:9", "9:16", "1:1", "4:3", "3:4", "21:9", or "adaptive" for the shape of the first image; as an alternative to size.
    pub(super) aspect_ratio: Option<String>,
    /// The same request with the same seed makes a similar video again. Omit it for a random one.
    pub(super) seed: Option<u32>,
    /// What the video must not show. Only for models with the capability negative_prompt.
    pub(super) negative_prompt: Option<String>,
    /// Picture that the video starts with: path of a JPEG, PNG, WebP or GIF file on the user's machine, or an http or https URL that
    /// the service can read.
    pub(super) first_frame: Option<String>,
    /// Picture that the video ends with, given like first_frame. Needs first_frame.
    pub(super) last_frame: Option<String>,
    /// Pictures of what the video shows, such as a person or a product, each given like first_frame. Not together with first_frame.
    #[serde(default)]
    pub(super) reference_images: Vec<String>,
    /// Sounds for the sound track: paths of WAV, MP3, AAC, FLAC, Ogg, MP4 or WebM files on the user's machine, or URLs. Needs
    /// reference_images.
    #[serde(default)]
    pub(super) reference_audios: Vec<String>,
    /// false for a video without a sound track. Omit it for the model's default.
    pub(super) generate_audio: Option<bool>,
}

/// The argument of `get_video` and `cancel_video`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VideoId {
    /// Id of a video, "video_...".
    pub(super) id: String,
}

/// Arguments of `wait_for_video`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForVideo {
    /// Id of a video, "video_...".
    pub(super) id: String,
    /// Longest wait in seconds, 0 to 3600; 45 if omitted, because many clients end a call after a minute.
    pub(super) timeout_seconds: Option<u64>,
}

/// Arguments of `list_videos`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListVideos {
    /// Maximum number of videos, 1 to 100; 20 if omitted.
    pub(super) limit: Option<u32>,
    /// Id of the last video of the previous page, to continue after it.
    pub(super) after: Option<String>,
}

/// Arguments of `download_video`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DownloadVideo {
    /// Id of a completed video, "video_...".
    pub(super) id: String,
    /// Path for the file on the user's machine, ending in .mp4. Its folder must exist. Use an absolute path, or one that begins with ~/.
    pub(super) path: String,
    /// true replaces an existing file. Without it an existing file is never changed.
    #[serde(default)]
    pub(super) overwrite: bool,
}

/// `list_models` has no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListModels {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_names_the_argument_at_fault() {
        let refused = |given: Value| {
            let parsed = parse::<CreateVideo>(given.as_object().unwrap());
            serde_json::to_value(parsed.unwrap_err()).unwrap()
        };
        for (given, param) in [
            (json!({"prompt": "x", "seconds": "5"}), json!("seconds")),
            (
                json!({"prompt": "x", "length": 5, "model": "m"}),
                json!("length"),
            ),
            (json!({"prompt": 1, "size": "480x480"}), json!("prompt")),
            (json!({"prompt": "x", "seed": -1, "size": 1}), json!("seed")),
            (json!({"model": "m"}), Value::Null),
        ] {
            let error = refused(given);
            assert_eq!(error["code"], "invalid_arguments");
            assert_eq!(error["param"], param, "{error}");
        }
        let nulls = json!({"prompt": "x", "model": null, "seconds": null});
        assert!(parse::<CreateVideo>(nulls.as_object().unwrap()).is_ok());
    }
}
