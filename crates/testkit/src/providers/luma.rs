//! Luma's Dream Machine, as lumaai 1.21.0 describes it: no seed, pictures by address alone, lengths with their unit.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::Shape;

const KEYFRAME: Shape = Shape::Object(&[
    ("type", Must, Shape::OneOf(&["image"])),
    ("url", Must, Shape::WebUrl),
]);
const KEYFRAMES: Shape = Shape::Object(&[("frame0", May, KEYFRAME), ("frame1", May, KEYFRAME)]);
const RATIOS: &[&str] = &["1:1", "16:9", "9:16", "4:3", "3:4", "21:9", "9:21"];
const SUBMIT: Shape = Shape::Object(&[
    ("model", Must, Shape::OneOf(&["ray-2", "ray-flash-2"])),
    ("prompt", Must, Shape::Text),
    ("aspect_ratio", May, Shape::OneOf(RATIOS)),
    (
        "resolution",
        May,
        Shape::OneOf(&["540p", "720p", "1080p", "4k"]),
    ),
    ("duration", May, Shape::OneOf(&["5s", "9s"])),
    ("keyframes", May, KEYFRAMES),
    ("loop", May, Shape::Flag),
    ("generation_type", May, Shape::OneOf(&["video"])),
]);

/// The provider.
pub struct Luma;

impl Provider for Luma {
    fn base(&self) -> &'static str {
        "/dream-machine/v1"
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let id = call.path.strip_prefix("/generations/");
        match (call.method, call.path, id) {
            ("GET", "/credits", _) => Ok(Answer::json(200, &json!({"credit_balance": 1000.0}))),
            ("POST", "/generations/video", _) => {
                call.check(&SUBMIT)?;
                let id = world.begin(call, |nth| format!("1d7f2a6b-0000-4000-8000-{nth:012}"))?;
                Ok(Answer::json(201, &generation(&id, Stage::Queued, world)))
            }
            ("GET", _, Some(id)) => match world.look(id)? {
                Stage::Cancelled => Err(call.missing()),
                stage => Ok(Answer::json(200, &generation(id, stage, world))),
            },
            ("DELETE", _, Some(id)) => match world.cancel(id) {
                Ok(()) | Err(Problem::Conflict(_)) => Ok(Answer::empty(204)),
                Err(problem) => Err(problem),
            },
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, detail) = match problem {
            Problem::Unauthorized => (403, "Invalid API key".to_owned()),
            Problem::Missing(what) => (404, format!("Not found: {what}")),
            Problem::Invalid(at) => (400, format!("Invalid request: {at}")),
            Problem::Conflict(_) => (400, "Bad request".to_owned()),
            Problem::Moderated => (400, "Advanced prompt moderation failed".to_owned()),
            Problem::Busy => (429, "Too many concurrent generations".to_owned()),
        };
        Answer::json(status, &json!({ "detail": detail }))
    }
}

fn generation(id: &str, stage: Stage, world: &World) -> Value {
    let request = &world.job(id).expect("known").body;
    let (state, reason) = match stage {
        Stage::Queued => ("queued", None),
        Stage::Running => ("dreaming", None),
        Stage::Completed => ("completed", None),
        Stage::Failed | Stage::Cancelled => ("failed", Some("Job failed: an internal error")),
        Stage::Moderated => ("failed", Some("Advanced prompt moderation failed")),
    };
    let video = (stage == Stage::Completed).then(|| world.film_url(id));
    let assets = video.map(|video| json!({"video": video, "image": null, "progress_video": null}));
    json!({
        "id": id, "generation_type": "video", "state": state, "failure_reason": reason,
        "created_at": "2026-11-29T00:00:00Z", "assets": assets, "model": request["model"],
        "request": request,
    })
}
