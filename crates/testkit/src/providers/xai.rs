//! xAI's Grok Imagine, as docs.x.ai and @ai-sdk/xai 5.0.12 describe it: one path for all kinds of input, no seed, no
//! cancel, an empty 202 while it works, and a finished video that may be withheld.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::Shape;

const LINK: Shape = Shape::Object(&[("url", Must, Shape::Url)]);
const RATIOS: &[&str] = &["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3"];
const SUBMIT: Shape = Shape::Object(&[
    (
        "model",
        Must,
        Shape::OneOf(&["grok-imagine-video", "grok-imagine-video-1.5"]),
    ),
    ("prompt", Must, Shape::Text),
    ("duration", May, Shape::Whole(1, 15)),
    ("aspect_ratio", May, Shape::OneOf(RATIOS)),
    ("resolution", May, Shape::OneOf(&["480p", "720p", "1080p"])),
    ("generate_audio", May, Shape::Flag),
    ("image", May, LINK),
    ("last_frame", May, LINK),
    ("reference_images", May, Shape::List(&LINK, 7)),
    ("reference_audios", May, Shape::List(&LINK, 3)),
]);

/// The provider.
pub struct Xai;

impl Provider for Xai {
    fn base(&self) -> &'static str {
        "/v1"
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let id = call.path.strip_prefix("/videos/");
        match (call.method, call.path, id) {
            ("GET", "/models", _) => Ok(Answer::json(200, &json!({"data": []}))),
            ("POST", "/videos/generations", _) => {
                call.check(&SUBMIT)?;
                check_inputs(call.body)?;
                let id = world.begin(call, |nth| format!("c0ffee00-0000-4000-8000-{nth:012}"))?;
                Ok(Answer::json(200, &json!({ "request_id": id })))
            }
            ("GET", _, Some(id)) => {
                let stage = world.look(id)?;
                Ok(video(id, stage, world))
            }
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, code, text) = match problem {
            Problem::Unauthorized => (400, "invalid-argument", "Incorrect API key provided"),
            Problem::Missing(_) => (404, "not-found", "The requested resource was not found"),
            Problem::Invalid(_) => (422, "invalid-argument", "Failed to deserialize the body"),
            Problem::Conflict(_) => (409, "conflict", "Conflict"),
            Problem::Moderated => (
                400,
                "invalid-argument",
                "The prompt was rejected by content moderation",
            ),
            Problem::Busy => (429, "resource-exhausted", "Too many requests"),
        };
        Answer::json(status, &json!({"code": code, "error": text}))
    }
}

/// Frames and references never go together, and the older model takes no last frame, sounds or sound switch.
fn check_inputs(body: &Value) -> Result<(), Problem> {
    let has = |field: &str| body.get(field).is_some();
    let references = has("reference_images") || has("reference_audios");
    let newer = has("last_frame") || has("reference_audios") || has("generate_audio");
    let is_wrong = references && (has("image") || has("last_frame"))
        || has("last_frame") && !has("image")
        || references && body["resolution"] == "1080p"
        || newer && body["model"] == "grok-imagine-video";
    if is_wrong {
        return Err(Problem::Invalid("inputs".to_owned()));
    }
    Ok(())
}

fn video(id: &str, stage: Stage, world: &World) -> Answer {
    let model = &world.job(id).expect("known").body["model"];
    let ended = |video: Value| {
        let usage = json!({"cost_in_usd_ticks": 3_500_000_000_u64});
        json!({"status": "done", "video": video, "model": model, "usage": usage, "progress": 100})
    };
    match stage {
        Stage::Queued => Answer::empty(202),
        Stage::Running => Answer::json(202, &json!({"status": "pending", "progress": 40})),
        Stage::Completed => {
            let url = world.film_url(id);
            let film = json!({"url": url, "duration": 5, "respect_moderation": true});
            Answer::json(200, &ended(film))
        }
        Stage::Moderated => {
            let withheld = json!({"url": null, "duration": 5, "respect_moderation": false});
            Answer::json(200, &ended(withheld))
        }
        Stage::Failed | Stage::Cancelled => {
            let error = json!({"code": "internal_error", "message": "Video generation failed"});
            Answer::json(200, &json!({"status": "failed", "error": error}))
        }
    }
}
