//! Vidu, as platform.vidu.com describes it: an endpoint for each kind of input, each with fields of its own, and a
//! cancel that stops only what waits.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::{Field, Shape};

const TEXT_MODELS: Shape = Shape::OneOf(&["viduq3-turbo", "viduq3-pro", "viduq2", "viduq1"]);
const FRAME_MODELS: Shape =
    Shape::OneOf(&["viduq3-turbo", "viduq3-pro", "viduq2-pro", "viduq2-turbo"]);
const REFERENCE_MODELS: Shape = Shape::OneOf(&["viduq3-turbo", "viduq3", "viduq2", "viduq1"]);
const DURATION: Field = ("duration", May, Shape::Whole(1, 16));
const SEED: Field = ("seed", May, Shape::Whole(0, 2_147_483_647));
const RESOLUTION: Field = ("resolution", May, Shape::OneOf(&["540p", "720p", "1080p"]));
const RATIO: Field = (
    "aspect_ratio",
    May,
    Shape::OneOf(&["16:9", "9:16", "4:3", "3:4", "1:1"]),
);
const AUDIO: Field = ("audio", May, Shape::Flag);

const SHAPES: &[(&str, Shape)] = &[
    (
        "/text2video",
        Shape::Object(&[
            ("model", Must, TEXT_MODELS),
            ("prompt", Must, Shape::Text),
            DURATION,
            SEED,
            RATIO,
            RESOLUTION,
            AUDIO,
        ]),
    ),
    (
        "/img2video",
        Shape::Object(&[
            ("model", Must, FRAME_MODELS),
            ("images", Must, Shape::List(&Shape::Url, 1)),
            ("prompt", May, Shape::Text),
            DURATION,
            SEED,
            RESOLUTION,
            AUDIO,
        ]),
    ),
    (
        "/start-end2video",
        Shape::Object(&[
            ("model", Must, FRAME_MODELS),
            ("images", Must, Shape::List(&Shape::Url, 2)),
            ("prompt", May, Shape::Text),
            DURATION,
            SEED,
            RESOLUTION,
            AUDIO,
        ]),
    ),
    (
        "/reference2video",
        Shape::Object(&[
            ("model", Must, REFERENCE_MODELS),
            ("images", Must, Shape::List(&Shape::Url, 7)),
            ("prompt", Must, Shape::Text),
            DURATION,
            SEED,
            RATIO,
            RESOLUTION,
            AUDIO,
        ]),
    ),
];

/// The provider.
pub struct Vidu;

impl Provider for Vidu {
    fn base(&self) -> &'static str {
        "/ent/v2"
    }

    fn is_authorized(&self, request: &crate::http::Request, key: &str) -> bool {
        request.header("authorization") == Some(&format!("Token {key}"))
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let job = call.path.strip_prefix("/tasks/");
        let job = job.and_then(|rest| rest.split_once('/'));
        match (call.method, call.path, job) {
            ("GET", "/credits", _) => Ok(Answer::json(200, &json!({"remains": []}))),
            ("POST", path, None) => {
                let shape = SHAPES.iter().find(|(one, _)| *one == path);
                call.check(&shape.ok_or(call.missing())?.1)?;
                if path == "/start-end2video" && call.body["images"][1].is_null() {
                    return Err(Problem::Invalid("body.images".to_owned()));
                }
                let id = world.begin(call, |nth| format!("83464544839835{nth:04}"))?;
                let mut answer = call.body.clone();
                answer["task_id"] = json!(id);
                answer["state"] = json!("created");
                answer["credits"] = json!(20);
                Ok(Answer::json(200, &answer))
            }
            ("GET", _, Some((id, "creations"))) => {
                let stage = world.look(id)?;
                Ok(Answer::json(200, &creations(id, stage, world)))
            }
            ("POST", _, Some((id, "cancel"))) => {
                if call.body != &json!({ "id": id }) {
                    return Err(Problem::Invalid("body.id".to_owned()));
                }
                if world.stage(id)? != Stage::Queued {
                    let what = "task state is scheduled, can not cancel";
                    return Err(Problem::Conflict(what.to_owned()));
                }
                world.cancel(id)?;
                Ok(Answer::json(200, &json!({})))
            }
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (code, reason, message) = match problem {
            Problem::Unauthorized => (401, "Unauthorized", "unauthorized".to_owned()),
            Problem::Missing(_) => (404, "TaskNotFound", "task not found".to_owned()),
            Problem::Invalid(at) => (400, "FieldInvalid", format!("invalid field: {at}")),
            Problem::Conflict(what) => (400, "BadRequest", what.clone()),
            Problem::Moderated => (400, "AuditSubmitIllegal", "submit is illegal".to_owned()),
            Problem::Busy => (429, "QuotaExceeded", "quota exceeded".to_owned()),
        };
        let metadata = json!({"trace_id": "04e5c2fe159ff7c574acd0424e78c35f"});
        let body =
            json!({"code": code, "reason": reason, "message": message, "metadata": metadata});
        Answer::json(code, &body)
    }
}

fn creations(id: &str, stage: Stage, world: &World) -> Value {
    let (state, code) = match stage {
        Stage::Queued => ("queueing", ""),
        Stage::Running => ("processing", ""),
        Stage::Completed => ("success", ""),
        Stage::Failed => ("failed", "InternalServiceFailure"),
        Stage::Moderated => ("failed", "CreationPolicyViolation"),
        Stage::Cancelled => ("failed", "UserCancelled"),
    };
    let url = world.film_url(id);
    let films = match stage {
        Stage::Completed => {
            json!([{"id": "1", "url": url, "cover_url": url, "watermarked_url": ""}])
        }
        _ => json!([]),
    };
    json!({
        "id": id, "state": state, "err_code": code, "credits": 20, "payload": "", "bgm": false,
        "off_peak": false, "creations": films,
    })
}
