//! Gemini Omni, as google-genai 3.6.1 describes `interactions`: an answer of steps, one of which has the film's address;
//! a refusal of content that is `completed` with a text; and a job that nobody knows is an invalid name.

use serde_json::{Value, json};

use crate::http::{Answer, Request};
use crate::providers::provider::{Call, Problem, Provider, Stage, World, redirect};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::Shape;

const CONTENT: Shape = Shape::Either(&[
    Shape::Object(&[
        ("type", Must, Shape::OneOf(&["text"])),
        ("text", Must, Shape::Text),
    ]),
    Shape::Object(&[
        ("type", Must, Shape::OneOf(&["image"])),
        ("data", Must, Shape::Base64),
        (
            "mime_type",
            Must,
            Shape::OneOf(&["image/png", "image/jpeg"]),
        ),
    ]),
]);
/// As the SDK sends a list of content.
const STEP: Shape = Shape::Object(&[
    ("type", Must, Shape::OneOf(&["user_input"])),
    ("content", Must, Shape::List(&CONTENT, 4)),
]);
const FORMAT: Shape = Shape::Object(&[
    ("type", Must, Shape::OneOf(&["video"])),
    ("delivery", May, Shape::OneOf(&["inline", "uri"])),
    ("aspect_ratio", May, Shape::OneOf(&["16:9", "9:16"])),
    (
        "resolution",
        May,
        Shape::OneOf(&["360p", "720p", "1080p", "4k"]),
    ),
    ("duration", May, Shape::OneOf(SECONDS)),
]);
const SECONDS: &[&str] = &["3s", "4s", "5s", "6s", "7s", "8s", "9s", "10s"];
const TASKS: &[&str] = &["text_to_video", "image_to_video", "reference_to_video"];
const CONFIG: Shape = Shape::Object(&[(
    "video_config",
    May,
    Shape::Object(&[("task", May, Shape::OneOf(TASKS))]),
)]);
const SUBMIT: Shape = Shape::Object(&[
    ("model", Must, Shape::OneOf(&["gemini-omni-1.1-flash"])),
    (
        "input",
        Must,
        Shape::Either(&[Shape::Text, Shape::List(&CONTENT, 4), Shape::List(&STEP, 1)]),
    ),
    ("background", May, Shape::Flag),
    ("response_format", May, FORMAT),
    ("generation_config", May, CONFIG),
]);

/// The provider.
pub struct GeminiOmni;

impl Provider for GeminiOmni {
    fn base(&self) -> &'static str {
        "/v1beta"
    }

    fn is_authorized(&self, request: &Request, key: &str) -> bool {
        request.header("x-goog-api-key") == Some(key) && request.header("authorization").is_none()
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let job = call.path.strip_prefix("/interactions/");
        let stopped = job.and_then(|rest| rest.strip_suffix("/cancel"));
        match (call.method, call.path, job, stopped) {
            ("POST", "/interactions", ..) => {
                call.check(&SUBMIT)?;
                // Without these the answer comes minutes later, with the film in it.
                if call.body["background"] != true
                    || call.body["response_format"]["delivery"] != "uri"
                {
                    return Err(Problem::Invalid("background".to_owned()));
                }
                let id = world.begin(call, |nth| format!("v1_{nth}"))?;
                Ok(Answer::json(
                    200,
                    &json!({"id": id, "status": "in_progress"}),
                ))
            }
            ("POST", _, _, Some(id)) => {
                world.cancel(id)?;
                Ok(Answer::json(200, &json!({"id": id, "status": "cancelled"})))
            }
            ("GET", "/models?pageSize=1", ..) => Ok(Answer::json(200, &json!({"models": []}))),
            ("GET", _, Some(id), None) => {
                let id = id.strip_suffix("?stream=false").unwrap_or(id);
                let stage = world.look(id)?;
                Ok(Answer::json(200, &interaction(id, stage, world)))
            }
            ("GET", path, ..) => {
                let file = path.strip_prefix("/files/");
                let id = file.and_then(|file| file.strip_suffix(":download?alt=media"));
                let id = id.ok_or(call.missing())?;
                if world.behaviour.moves_films {
                    return Ok(redirect(&world.film_url(id)));
                }
                Ok(world.film())
            }
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, code, message) = match problem {
            Problem::Unauthorized => (400, "invalid_request", "API key not valid."),
            Problem::Missing(_) => (400, "invalid_request", "Invalid interaction name."),
            Problem::Invalid(_) => (400, "invalid_request", "Invalid argument."),
            Problem::Conflict(_) => (400, "invalid_request", "The interaction has ended."),
            Problem::Moderated => (
                400,
                "invalid_request",
                "The input was blocked for safety reasons.",
            ),
            Problem::Busy => (429, "resource_exhausted", "Quota exceeded."),
        };
        let error = json!({"code": code, "message": message});
        Answer::json(status, &json!({ "error": error }))
    }
}

fn interaction(id: &str, stage: Stage, world: &World) -> Value {
    let status = match stage {
        Stage::Queued => "queued",
        Stage::Running => "in_progress",
        Stage::Completed | Stage::Moderated => "completed",
        Stage::Failed => "failed",
        Stage::Cancelled => "cancelled",
    };
    let uri = format!(
        "{}/v1beta/files/{id}:download?alt=media",
        world.own_origin()
    );
    let content = match stage {
        Stage::Completed => json!([{"type": "video", "uri": uri, "mime_type": "video/mp4"}]),
        Stage::Moderated => json!([{"type": "text", "text": "I cannot make this video."}]),
        _ => json!([]),
    };
    let mut interaction = json!({"id": id, "status": status, "steps": [
        {"type": "thought", "signature": "x"},
        {"type": "model_output", "content": content},
    ]});
    if stage == Stage::Failed {
        interaction["errors"] = json!([{"code": "internal", "message": "Internal error."}]);
    }
    interaction
}
