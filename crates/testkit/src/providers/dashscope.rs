//! DashScope, as dashscope 2.0.2 describes `video-synthesis`: everything is in `output`, a size is a resolution and a
//! ratio, and a task that nobody knows is `UNKNOWN` with status 200.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::Shape;

const TYPES: &[&str] = &[
    "first_frame",
    "last_frame",
    "reference_image",
    "reference_audio",
];
const MEDIUM: Shape = Shape::Object(&[
    ("type", Must, Shape::OneOf(TYPES)),
    ("url", Must, Shape::Url),
]);
const INPUT: Shape = Shape::Object(&[
    ("prompt", Must, Shape::Text),
    ("negative_prompt", May, Shape::Text),
    ("extend_prompt", May, Shape::Flag),
    ("function", May, Shape::OneOf(&["video-synthesis"])),
    ("media", May, Shape::List(&MEDIUM, 15)),
]);
const PARAMETERS: Shape = Shape::Object(&[
    ("resolution", May, Shape::OneOf(&["480P", "720P", "1080P"])),
    (
        "ratio",
        May,
        Shape::OneOf(&["16:9", "9:16", "1:1", "4:3", "3:4"]),
    ),
    (
        "duration",
        May,
        Shape::Either(&[Shape::Whole(-1, -1), Shape::Whole(2, 15)]),
    ),
    ("seed", May, Shape::Whole(0, 2_147_483_647)),
    ("audio", May, Shape::Flag),
    ("prompt_extend", May, Shape::Flag),
    ("watermark", May, Shape::Flag),
]);
const SUBMIT: Shape = Shape::Object(&[
    ("model", Must, Shape::Text),
    ("input", Must, INPUT),
    ("parameters", May, PARAMETERS),
]);

/// The provider.
pub struct DashScope;

impl Provider for DashScope {
    fn base(&self) -> &'static str {
        "/api/v1"
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        if call.path == "/services/aigc/video-generation/video-synthesis" && call.method == "POST" {
            if call.request.header("x-dashscope-async") != Some("enable") {
                let text = "current user api does not support synchronous calls";
                return Err(Problem::Invalid(text.to_owned()));
            }
            call.check(&SUBMIT)?;
            check_media(&call.body["input"]["media"])?;
            let id = world.begin(call, |nth| format!("0385dc79-5ff8-4d82-bcb6-{nth:012}"))?;
            return Ok(output(json!({"task_id": id, "task_status": "PENDING"})));
        }
        let rest = call.path.strip_prefix("/tasks/").ok_or(call.missing())?;
        match (call.method, rest.strip_suffix("/cancel")) {
            ("GET", None) => Ok(output(task(rest, world))),
            ("POST", Some(id)) if world.stage(id)? == Stage::Queued => {
                world.cancel(id)?;
                Ok(Answer::json(200, &json!({"request_id": REQUEST})))
            }
            ("POST", Some(id)) => Err(Problem::Conflict(id.to_owned())),
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, code) = match problem {
            Problem::Unauthorized => (401, "InvalidApiKey"),
            Problem::Missing(_) => (404, "NotFound"),
            Problem::Invalid(_) => (400, "InvalidParameter"),
            Problem::Conflict(_) => (400, "UnsupportedOperation"),
            Problem::Moderated => (400, "DataInspectionFailed"),
            Problem::Busy => (429, "Throttling.RateQuota"),
        };
        let message = format!("{problem:?}");
        let body = json!({"code": code, "message": message, "request_id": REQUEST});
        Answer::json(status, &body)
    }
}

const REQUEST: &str = "c1209113-8437-424f-a386-000000000000";

fn output(output: Value) -> Answer {
    Answer::json(200, &json!({"output": output, "request_id": REQUEST}))
}

/// At most one frame of a kind, and no frames beside references.
fn check_media(media: &Value) -> Result<(), Problem> {
    let media = media.as_array().map(Vec::as_slice).unwrap_or_default();
    let count = |kind: &str| media.iter().filter(|one| one["type"] == kind).count();
    let frames = count("first_frame") + count("last_frame");
    let is_mixed = frames > 0 && media.len() > frames;
    if is_mixed || count("first_frame") > 1 || count("last_frame") > 1 {
        return Err(Problem::Invalid("input.media".to_owned()));
    }
    Ok(())
}

fn task(id: &str, world: &mut World) -> Value {
    let word = match world.look(id) {
        Err(_) => "UNKNOWN",
        Ok(Stage::Queued) => "PENDING",
        Ok(Stage::Running) => "RUNNING",
        Ok(Stage::Cancelled) => "CANCELED",
        Ok(Stage::Completed) => {
            return json!({
                "task_id": id, "task_status": "SUCCEEDED", "orig_prompt": "x",
                "submit_time": "2026-11-29 09:00:00.000", "video_url": world.film_url(id),
            });
        }
        Ok(stage) => {
            let code = match stage {
                Stage::Moderated => "DataInspectionFailed",
                _ => "InternalError.Algo",
            };
            return json!({
                "task_id": id, "task_status": "FAILED", "code": code, "message": "It failed.",
            });
        }
    };
    json!({"task_id": id, "task_status": word})
}
