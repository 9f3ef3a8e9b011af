//! OpenRouter's videos, as openrouter 1.3.84 describes them: JSON, sizes as `1280x720`, films at an address that needs
//! the key, a cost in dollars, and no way to cancel.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::Shape;

const LINK: Shape = Shape::Object(&[("url", Must, Shape::Url)]);
const FRAME: Shape = Shape::Object(&[
    ("type", Must, Shape::OneOf(&["image_url"])),
    ("image_url", Must, LINK),
    (
        "frame_type",
        Must,
        Shape::OneOf(&["first_frame", "last_frame"]),
    ),
]);
const REFERENCE: Shape = Shape::Either(&[
    Shape::Object(&[
        ("type", Must, Shape::OneOf(&["image_url"])),
        ("image_url", Must, LINK),
    ]),
    Shape::Object(&[
        ("type", Must, Shape::OneOf(&["audio_url"])),
        ("audio_url", Must, LINK),
    ]),
]);
const SIZES: &[&str] = &[
    "864x496",
    "496x864",
    "1280x720",
    "720x1280",
    "1920x1080",
    "1080x1920",
];
const SUBMIT: Shape = Shape::Object(&[
    (
        "model",
        Must,
        Shape::OneOf(&["bytedance/seedance-2.0", "google/veo-3.1"]),
    ),
    ("prompt", Must, Shape::Text),
    ("duration", May, Shape::Whole(4, 15)),
    ("size", May, Shape::OneOf(SIZES)),
    ("seed", May, Shape::Whole(0, 4_294_967_295)),
    ("generate_audio", May, Shape::Flag),
    ("frame_images", May, Shape::List(&FRAME, 2)),
    ("input_references", May, Shape::List(&REFERENCE, 12)),
]);

/// The provider.
pub struct OpenRouter;

impl Provider for OpenRouter {
    fn base(&self) -> &'static str {
        "/api/v1"
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let id = call.path.strip_prefix("/videos/");
        let content = id.and_then(|id| id.strip_suffix("/content"));
        match (call.method, call.path, id, content) {
            ("GET", "/key", ..) => Ok(Answer::json(200, &json!({"data": {"label": "test"}}))),
            ("POST", "/videos", ..) => {
                call.check(&SUBMIT)?;
                let id = world.begin(call, |nth| format!("gen-vid-1764000000-{nth:020}"))?;
                Ok(Answer::json(202, &job(&id, Stage::Queued, world)))
            }
            ("GET", _, _, Some(id)) if world.stage(id)? == Stage::Completed => Ok(world.film()),
            ("GET", _, Some(id), None) => {
                let stage = world.look(id)?;
                Ok(Answer::json(200, &job(id, stage, world)))
            }
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let flagged = "Your chosen model requires moderation and your input was flagged";
        let (code, message) = match problem {
            Problem::Unauthorized => (401, "User not found.".to_owned()),
            Problem::Missing(_) => (404, "Job not found".to_owned()),
            Problem::Invalid(at) => (400, format!("Invalid request: {at}")),
            Problem::Conflict(_) => (409, "Conflict".to_owned()),
            Problem::Moderated => (403, flagged.to_owned()),
            Problem::Busy => (429, "Rate limit exceeded".to_owned()),
        };
        let error = json!({"code": code, "message": message, "metadata": null});
        Answer::json(code, &json!({ "error": error }))
    }
}

fn job(id: &str, stage: Stage, world: &World) -> Value {
    let mut job = json!({"id": id, "polling_url": format!("/api/v1/videos/{id}")});
    match stage {
        Stage::Queued => job["status"] = json!("pending"),
        Stage::Running => job["status"] = json!("in_progress"),
        Stage::Completed => {
            let url = format!("{}/api/v1/videos/{id}/content?index=0", world.own_origin());
            job["status"] = json!("completed");
            job["unsigned_urls"] = json!([url]);
            job["usage"] = json!({"cost": 1.512, "is_byok": false});
        }
        Stage::Cancelled => job["status"] = json!("cancelled"),
        Stage::Failed => {
            job["status"] = json!("failed");
            job["error"] = json!("The provider could not generate the video");
        }
        Stage::Moderated => {
            job["status"] = json!("failed");
            job["error"] = json!("The request was rejected: content policy");
        }
    }
    job
}
