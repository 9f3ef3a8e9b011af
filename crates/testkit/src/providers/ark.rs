//! Volcengine Ark, as volcengine-ark-runtime 5.0.54 describes `contents/generations/tasks`: one list of content with
//! roles, size by resolution and ratio, and a `DELETE` that stops only what is still queued.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::Shape;

const LINK: Shape = Shape::Object(&[("url", Must, Shape::Url)]);
const CONTENT: Shape = Shape::Either(&[
    Shape::Object(&[
        ("type", Must, Shape::OneOf(&["text"])),
        ("text", Must, Shape::Text),
    ]),
    Shape::Object(&[
        ("type", Must, Shape::OneOf(&["image_url"])),
        ("image_url", Must, LINK),
        (
            "role",
            Must,
            Shape::OneOf(&["first_frame", "last_frame", "reference_image"]),
        ),
    ]),
    Shape::Object(&[
        ("type", Must, Shape::OneOf(&["audio_url"])),
        ("audio_url", Must, LINK),
        ("role", Must, Shape::OneOf(&["reference_audio"])),
    ]),
]);
const RATIOS: &[&str] = &["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"];
const SUBMIT: Shape = Shape::Object(&[
    ("model", Must, Shape::Text),
    ("content", Must, Shape::List(&CONTENT, 50)),
    (
        "resolution",
        May,
        Shape::OneOf(&["480p", "720p", "1080p", "4k"]),
    ),
    ("ratio", May, Shape::OneOf(RATIOS)),
    (
        "duration",
        May,
        Shape::Either(&[Shape::Whole(-1, -1), Shape::Whole(2, 30)]),
    ),
    ("seed", May, Shape::Whole(-1, 4_294_967_295)),
    ("generate_audio", May, Shape::Flag),
    ("watermark", May, Shape::Flag),
    ("camera_fixed", May, Shape::Flag),
]);
const TASKS: &str = "/contents/generations/tasks";

/// The provider.
pub struct Ark;

impl Provider for Ark {
    fn base(&self) -> &'static str {
        "/api/v3"
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let rest = call.path.strip_prefix(TASKS).ok_or(call.missing())?;
        match (call.method, rest, rest.strip_prefix('/')) {
            ("POST", "", _) => {
                call.check(&SUBMIT)?;
                check_roles(&call.body["content"])?;
                let id = world.begin(call, |nth| format!("cgt-20261129-{nth}"))?;
                Ok(Answer::json(200, &json!({ "id": id })))
            }
            ("GET", "?page_size=1", _) => Ok(Answer::json(200, &json!({"total": 0, "items": []}))),
            ("GET", _, Some(id)) => {
                let stage = world.look(id)?;
                Ok(Answer::json(200, &task(id, stage, world)))
            }
            ("DELETE", _, Some(id)) if world.stage(id)? == Stage::Running => Err(
                Problem::Conflict("a running task cannot be deleted".to_owned()),
            ),
            ("DELETE", _, Some(id)) => {
                world.cancel(id)?;
                Ok(Answer::json(200, &json!({})))
            }
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, code) = match problem {
            Problem::Unauthorized => (401, "AuthenticationError"),
            Problem::Missing(_) => (404, "ResourceNotFound"),
            Problem::Invalid(_) => (400, "InvalidParameter"),
            Problem::Conflict(_) => (409, "InvalidAction.RunningTaskDeletion"),
            Problem::Moderated => (400, "InputTextSensitiveContentDetected"),
            Problem::Busy => (429, "RateLimitExceeded.EndpointRPMExceeded"),
        };
        let message = format!("The request failed: {problem:?}. Request id: 0217");
        let error = json!({"code": code, "message": message, "param": "", "type": "BadRequest"});
        Answer::json(status, &json!({ "error": error }))
    }
}

/// Frames and references never go together.
fn check_roles(content: &Value) -> Result<(), Problem> {
    let items = content.as_array().expect("checked");
    let has = |words: &[&str]| {
        let role = |item: &Value| words.contains(&item["role"].as_str().unwrap_or_default());
        items.iter().any(role)
    };
    let (frames, references) = (
        &["first_frame", "last_frame"][..],
        &["reference_image", "reference_audio"][..],
    );
    if has(frames) && has(references) || has(&["last_frame"]) && !has(&["first_frame"]) {
        return Err(Problem::Invalid("content[].role".to_owned()));
    }
    Ok(())
}

fn task(id: &str, stage: Stage, world: &World) -> Value {
    let mut task = json!({
        "id": id, "model": world.job(id).expect("known").body["model"],
        "created_at": 1_764_000_000, "updated_at": 1_764_000_100,
    });
    let error =
        |code: &str| json!({"code": code, "message": "The request failed. Request id: 0217"});
    match stage {
        Stage::Queued => task["status"] = json!("queued"),
        Stage::Running => task["status"] = json!("running"),
        Stage::Cancelled => task["status"] = json!("cancelled"),
        Stage::Completed => {
            task["status"] = json!("succeeded");
            task["content"] = json!({"video_url": world.film_url(id)});
            task["usage"] = json!({"completion_tokens": 108_900, "total_tokens": 108_900});
        }
        Stage::Failed => {
            task["status"] = json!("failed");
            task["error"] = error("InternalServiceError");
        }
        Stage::Moderated => {
            task["status"] = json!("failed");
            task["error"] = error("OutputVideoSensitiveContentDetected");
        }
    }
    task
}
