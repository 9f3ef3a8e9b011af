//! MiniMax, as its video generation V2 reference describes it: an id at the top, a task nested below `task`, one list of
//! content with roles, and a `DELETE` that stops only what is still queued.

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
const RATIOS: &[&str] = &["16:9", "9:16", "1:1", "4:3", "3:4", "21:9", "adaptive"];
const SUBMIT: Shape = Shape::Object(&[
    (
        "model",
        Must,
        Shape::OneOf(&["MiniMax-H3", "MiniMax-H3-Max"]),
    ),
    ("content", Must, Shape::List(&CONTENT, 16)),
    ("resolution", Must, Shape::OneOf(&["480P", "768P", "2K"])),
    ("duration", Must, Shape::Whole(4, 15)),
    ("ratio", May, Shape::OneOf(RATIOS)),
    ("aigc_watermark", May, Shape::Flag),
]);

/// The provider.
pub struct MiniMax;

impl Provider for MiniMax {
    fn base(&self) -> &'static str {
        ""
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let job = call.path.strip_prefix("/v2/video_generation/");
        let query = call.path.strip_prefix("/v2/query/video_generation/");
        match (call.method, call.path, job, query) {
            ("POST", "/v2/video_generation", ..) => {
                call.check(&SUBMIT)?;
                check_content(&call.body["content"])?;
                let id = world.begin(call, |nth| format!("42401098573862{nth}"))?;
                Ok(Answer::json(200, &json!({ "task_id": id })))
            }
            ("GET", "/v2/query/video_generation?page_num=1&page_size=1", ..) => {
                Ok(Answer::json(200, &json!({"total": 0, "items": []})))
            }
            ("GET", _, _, Some(id)) => {
                let stage = world.look(id)?;
                Ok(Answer::json(200, &json!({"task": task(id, stage, world)})))
            }
            ("DELETE", _, Some(id), _) if world.stage(id)? == Stage::Running => Err(
                Problem::Conflict("a running task cannot be cancelled".to_owned()),
            ),
            ("DELETE", _, Some(id), _) => {
                world.cancel(id)?;
                let body = json!({"task_id": id, "action": "cancel", "status": "cancelled"});
                Ok(Answer::json(200, &body))
            }
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, kind, text) = match problem {
            Problem::Unauthorized => (401, "authorized_error", "login fail (1004)"),
            // As it really does: with an error of its own.
            Problem::Missing(_) => (500, "server_error", "record not found (1000)"),
            Problem::Invalid(_) => (400, "bad_request_error", "invalid params (2013)"),
            Problem::Conflict(_) => (400, "bad_request_error", "invalid status (2013)"),
            Problem::Moderated => (
                422,
                "unprocessable_entity_error",
                "video description contains sensitive content (1026)",
            ),
            Problem::Busy => (429, "rate_limit_error", "rate limit (1002)"),
        };
        let error = json!({"type": kind, "message": text, "http_code": status.to_string()});
        Answer::json(
            status,
            &json!({"type": "error", "error": error, "request_id": "0217"}),
        )
    }
}

/// One text; frames and references never go together; a sound needs a picture.
fn check_content(content: &Value) -> Result<(), Problem> {
    let items = content.as_array().expect("checked");
    let count = |key: &str, value: &str| items.iter().filter(|one| one[key] == value).count();
    let frames = count("role", "first_frame") + count("role", "last_frame");
    let (images, sounds) = (
        count("role", "reference_image"),
        count("role", "reference_audio"),
    );
    let is_fine = count("type", "text") == 1
        && (frames == 0 || images + sounds == 0)
        && (sounds == 0 || images > 0)
        && images <= 9
        && sounds <= 3;
    if is_fine {
        return Ok(());
    }
    Err(Problem::Invalid("content".to_owned()))
}

fn task(id: &str, stage: Stage, world: &World) -> Value {
    let (status, error) = match stage {
        Stage::Queued => ("queued", None),
        Stage::Running => ("running", None),
        Stage::Completed => ("succeeded", None),
        Stage::Cancelled => ("cancelled", None),
        Stage::Failed => ("failed", Some(("1000", "internal error"))),
        Stage::Moderated => (
            "failed",
            Some(("1027", "output video contains sensitive content")),
        ),
    };
    let mut task = json!({"id": id, "model": "MiniMax-H3", "status": status, "resolution": "768P"});
    if stage == Stage::Completed {
        task["content"] = json!({"url": world.film_url(id)});
    }
    if let Some((code, message)) = error {
        task["error"] = json!({"code": code, "message": message});
    }
    task
}
