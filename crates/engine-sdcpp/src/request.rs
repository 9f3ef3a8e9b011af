//! The bodies of the server's HTTP API (`examples/server/api.md`): a request for a video, and the
//! job that answers it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kinora_engine::{EngineError, JobControl, RgbPicture, WorkStage};
use png::{BitDepth, ColorType, Compression, Encoder};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::generation::Generation;
use crate::picture;
use crate::settings::{Lora, Sampler, Scheduler, Settings};

/// The body of `POST /sdcpp/v1/vid_gen`. The server takes `null` for an option as if it were left out.
///
/// # Errors
/// If a picture cannot be encoded, or the source cannot be played.
pub(crate) fn video_request(
    made: &Generation<'_>,
    settings: &Settings,
    job: &JobControl,
) -> Result<Vec<u8>, EngineError> {
    let mut sampling = sampling(settings, settings.guidance());
    sampling["sample_steps"] = json!(made.steps);
    let lora = |lora: &Lora| {
        json!({
            "path": lora.path,
            "multiplier": lora.weight,
            "is_high_noise": lora.high_noise,
        })
    };
    let picture = |picture| encode(made, picture);
    let mut body = json!({
        "prompt": made.prompt,
        "negative_prompt": made.negative_prompt,
        "width": made.rendered.width,
        "height": made.rendered.height,
        "video_frames": made.frames,
        "fps": made.fps,
        "seed": made.seed,
        // Given frames are followed closely; only LTX-2 supports less.
        "strength": 1.0,
        "vace_strength": made.control_strength,
        "moe_boundary": settings.moe_boundary(),
        "sample_params": sampling,
        // The number of steps for the other expert stays the server's: `moe_boundary` decides.
        "high_noise_sample_params": self::sampling(settings, settings.high_noise_guidance()),
        "vae_tiling_params": { "enabled": settings.vae_tiling },
        "lora": settings.loras.iter().map(lora).collect::<Vec<Value>>(),
        "init_image": made.initial.map(picture).transpose()?,
        "end_image": made.end.map(picture).transpose()?,
        // The only format that every build of the server writes.
        "output_format": "avi",
        "output_compression": 100,
    });
    // Moved, since they may have hundreds of megabytes.
    body["control_frames"] = control_frames(made, job)?.into();
    serde_json::to_vec(&body).map_err(|error| EngineError::Failed(error.to_string()))
}

fn sampling(settings: &Settings, guidance: f32) -> Value {
    json!({
        "guidance": { "txt_cfg": guidance },
        "flow_shift": settings.flow_shift,
        "sample_method": settings.sampler.map(Sampler::name),
        "scheduler": settings.scheduler.map(Scheduler::name),
    })
}

/// The frames of the video that controls the clip, at the clip's rate; none without one.
fn control_frames(made: &Generation<'_>, job: &JobControl) -> Result<Vec<String>, EngineError> {
    let Some(source) = made.control else {
        return Ok(Vec::new());
    };
    let broken = || EngineError::Failed("the source video ends early".to_owned());
    let mut playback = source.play()?;
    let mut frames: Vec<String> = Vec::with_capacity(made.frames as usize);
    let mut next = 0;
    for index in 0..made.frames {
        let wanted = made.control_frame(index, source.fps(), source.frames());
        if wanted < next {
            // This frame of the source covers more than one frame of the clip.
            frames.push(frames.last().ok_or_else(broken)?.clone());
            continue;
        }
        // Playback only goes forwards: skip the source frames between the last one used and this
        // one.
        let mut shown = None;
        while next <= wanted {
            shown = playback.next_frame()?;
            next += 1;
        }
        let picture = RgbPicture {
            size: source.size(),
            rgb: shown.ok_or_else(broken)?,
        };
        frames.push(encode(made, &picture)?);
        let share = f64::from(index + 1) / f64::from(made.frames);
        job.report(WorkStage::Preparing, share)?;
    }
    Ok(frames)
}

/// A picture at the rendered size, as PNG in Base64.
fn encode(made: &Generation<'_>, picture: &RgbPicture) -> Result<String, EngineError> {
    let picture = picture::fit(picture, made.crop, made.rendered)?;
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
    /// Checks that the server has a model's sampler and scheduler: it ignores names that it does not know.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] with the names that it has.
    pub(crate) fn check(&self, settings: &Settings) -> Result<(), EngineError> {
        let sampler = settings.sampler.map(Sampler::name);
        let scheduler = settings.scheduler.map(Scheduler::name);
        for (what, name, offered) in [
            ("sampler", sampler, &self.samplers),
            ("scheduler", scheduler, &self.schedulers),
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

#[cfg(test)]
mod tests {
    use kinora_contract::Size;
    use kinora_engine::{FrameCrop, FrameSelection, SourceVideo, VideoPlayback};

    use super::*;
    use crate::settings::tests::settings;

    const SIZE: Size = Size::new(16, 16);

    /// A second of three frames, each of its own grey.
    #[derive(Debug)]
    struct Greys;

    impl SourceVideo for Greys {
        fn size(&self) -> Size {
            SIZE
        }
        fn fps(&self) -> u32 {
            3
        }
        fn frames(&self) -> u32 {
            3
        }
        fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
            Ok(Box::new(Playback(vec![200, 100, 0])))
        }
    }

    struct Playback(Vec<u8>);

    impl VideoPlayback for Playback {
        fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
            Ok(self.0.pop().map(|grey| vec![grey; 16 * 16 * 3]))
        }
    }

    #[test]
    fn every_frame_of_a_clip_has_a_control_frame_of_its_time() {
        let made = Generation {
            prompt: "a fox".to_owned(),
            negative_prompt: String::new(),
            rendered: SIZE,
            crop: FrameCrop::middle(SIZE, SIZE),
            frames: 5,
            keep: FrameSelection::First(5),
            fps: 5,
            steps: 4,
            seed: 7,
            initial: None,
            end: None,
            control: Some(&Greys),
            control_strength: 0.8,
            audio: false,
        };
        let settings = settings(&json!({"family": "wan-vace", "sampler": "lcm"}));
        let request = |made: &Generation<'_>| -> Value {
            let body = video_request(made, &settings, &JobControl::default()).unwrap();
            serde_json::from_slice(&body).unwrap()
        };
        let body = request(&made);
        let control = body["control_frames"].as_array().unwrap();
        // At 0.0, 0.2, ... 0.8 s: the first frame, the second, the second, the third, the third.
        assert_eq!(control.len(), 5);
        assert!(control[1] == control[2] && control[2] != control[3]);
        assert_eq!(body["sample_params"]["sample_method"], "lcm");
        assert_eq!(body["sample_params"]["sample_steps"], 4);
        assert_eq!(body["init_image"], Value::Null);
        let free = Generation {
            control: None,
            ..made
        };
        assert_eq!(request(&free)["control_frames"], json!([]));
    }
}
