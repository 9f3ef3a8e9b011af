//! The bodies of the server's HTTP API (`examples/server/api.md`): a request for a video, and the
//! job that answers it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kinora_engine::{EngineError, RgbPicture};
use png::{BitDepth, ColorType, Compression, Encoder};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::generation::Generation;
use crate::inputs::Pictures;
use crate::settings::{Sampler, Scheduler};

/// The body of `POST /sdcpp/v1/vid_gen`.
///
/// # Errors
/// If a picture cannot be encoded.
pub(crate) fn video_request(
    made: &Generation,
    pictures: &Pictures,
) -> Result<Vec<u8>, EngineError> {
    let mut sampling = sampling(made, made.guidance);
    sampling["sample_steps"] = json!(made.steps);
    let loras: Vec<Value> = made
        .loras
        .iter()
        .map(|lora| {
            json!({
                "path": lora.path,
                "multiplier": lora.weight,
                "is_high_noise": lora.high_noise,
            })
        })
        .collect();
    let mut body = json!({
        "prompt": made.prompt,
        "negative_prompt": made.negative_prompt,
        "width": made.rendered.width,
        "height": made.rendered.height,
        "video_frames": made.frames,
        "fps": made.fps,
        "seed": made.seed,
        "strength": made.strength,
        "vace_strength": made.control_strength,
        "moe_boundary": made.moe_boundary,
        "sample_params": sampling,
        // The number of steps for the other expert stays the server's: `moe_boundary` decides.
        "high_noise_sample_params": self::sampling(made, made.high_noise_guidance),
        "vae_tiling_params": { "enabled": made.vae_tiling },
        "lora": loras,
        // The only format that every build of the server writes.
        "output_format": "avi",
        "output_compression": 100,
    });
    let picture = |given: &Option<RgbPicture>| given.as_ref().map(encode).transpose();
    if let Some(initial) = picture(&pictures.initial)? {
        body["init_image"] = Value::String(initial);
    }
    if let Some(end) = picture(&pictures.end)? {
        body["end_image"] = Value::String(end);
    }
    if !pictures.control.is_empty() {
        let frames: Result<Vec<String>, EngineError> =
            pictures.control.iter().map(encode).collect();
        body["control_frames"] = json!(frames?);
    }
    serde_json::to_vec(&body).map_err(|error| EngineError::Failed(error.to_string()))
}

fn sampling(made: &Generation, guidance: f32) -> Value {
    let mut params = json!({ "guidance": { "txt_cfg": guidance } });
    if let Some(shift) = made.flow_shift {
        params["flow_shift"] = json!(shift);
    }
    if let Some(sampler) = made.sampler {
        params["sample_method"] = json!(sampler.name());
    }
    if let Some(scheduler) = made.scheduler {
        params["scheduler"] = json!(scheduler.name());
    }
    params
}

/// A picture as PNG in Base64.
fn encode(picture: &RgbPicture) -> Result<String, EngineError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, picture.size.width, picture.size.height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&picture.rgb))
        .map_err(|error| EngineError::Failed(format!("a picture cannot be encoded: {error}")))?;
    Ok(BASE64_STANDARD.encode(&bytes))
}

/// What the server can do, from `GET /sdcpp/v1/capabilities`.
#[derive(Debug, Deserialize)]
pub(crate) struct Capabilities {
    pub supported_modes: Vec<String>,
    pub samplers: Vec<String>,
    pub schedulers: Vec<String>,
}

impl Capabilities {
    /// Checks that the server has a sampler and a scheduler: it ignores names that it does not know.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] with the names that it has.
    pub(crate) fn check(
        &self,
        sampler: Option<Sampler>,
        scheduler: Option<Scheduler>,
    ) -> Result<(), EngineError> {
        for (what, name, offered) in [
            ("sampler", sampler.map(Sampler::name), &self.samplers),
            (
                "scheduler",
                scheduler.map(Scheduler::name),
                &self.schedulers,
            ),
        ] {
            if let Some(name) = name.filter(|name| offered.iter().all(|one| one != name)) {
                let names = offered.join(", ");
                return Err(EngineError::Unsupported(format!(
                    "the server has no {what} {name}; it has {names}"
                )));
            }
        }
        Ok(())
    }
}

/// The answer to a request that was accepted.
#[derive(Debug, Deserialize)]
pub(crate) struct AcceptedJob {
    pub id: String,
}

/// A job, from `GET /sdcpp/v1/jobs/ID`.
#[derive(Debug, Deserialize)]
pub(crate) struct ServerJob<'a> {
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    #[serde(borrow)]
    pub result: Option<JobFilm<'a>>,
    pub error: Option<JobFailure>,
}

/// The film of a completed job.
#[derive(Debug, Deserialize)]
pub(crate) struct JobFilm<'a> {
    /// Borrowed: a film may have hundreds of megabytes.
    #[serde(borrow)]
    b64_json: Cow<'a, str>,
}

impl JobFilm<'_> {
    /// The film itself.
    pub(crate) fn decode(&self) -> Result<Vec<u8>, EngineError> {
        let decoded = BASE64_STANDARD.decode(self.b64_json.as_bytes());
        decoded.map_err(|error| EngineError::Failed(format!("the server's film: {error}")))
    }
}

/// Why a job failed.
#[derive(Debug, Deserialize)]
pub(crate) struct JobFailure {
    pub message: String,
}

/// The reason in the body of a refusal: `{"error": "..."}`, at times with `message`.
pub(crate) fn refusal(body: &[u8]) -> String {
    let read: Option<Value> = serde_json::from_slice(body).ok();
    let text = |key| read.as_ref()?.get(key)?.as_str().map(str::to_owned);
    match (text("error"), text("message")) {
        (Some(error), Some(message)) => format!("{error}: {message}"),
        (Some(error), None) => error,
        _ => String::from_utf8_lossy(body).chars().take(200).collect(),
    }
}
