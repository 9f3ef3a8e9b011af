//! fal's queue, as fal-client 1.0.3 describes it, with the three endpoints of bytedance/seedance-2.0. A request that
//! failed is `COMPLETED` as one that succeeded; its fault is in the status or in the answer to the result's look-up.
//! The real queue takes any body and lets the request fail; this one refuses it at once, so that no test overlooks it.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::{Field, Shape};

const APP: &str = "/bytedance/seedance-2.0";
const PROMPT: Field = ("prompt", Must, Shape::Text);
const RESOLUTION: Field = ("resolution", May, Shape::OneOf(&["480p", "720p", "1080p"]));
const DURATION: Field = (
    "duration",
    May,
    Shape::OneOf(&[
        "auto", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
    ]),
);
const RATIO: Field = (
    "aspect_ratio",
    May,
    Shape::OneOf(&["auto", "21:9", "16:9", "4:3", "1:1", "3:4", "9:16"]),
);
const AUDIO: Field = ("generate_audio", May, Shape::Flag);
const SEED: Field = ("seed", May, Shape::Whole(-1, 2_147_483_647));

const SHAPES: &[(&str, Shape)] = &[
    (
        "text-to-video",
        Shape::Object(&[PROMPT, RESOLUTION, DURATION, RATIO, AUDIO, SEED]),
    ),
    (
        "image-to-video",
        Shape::Object(&[
            PROMPT,
            ("image_url", Must, Shape::Url),
            ("end_image_url", May, Shape::Url),
            RESOLUTION,
            DURATION,
            RATIO,
            AUDIO,
            SEED,
        ]),
    ),
    (
        "reference-to-video",
        Shape::Object(&[
            PROMPT,
            ("image_urls", May, Shape::List(&Shape::Url, 9)),
            ("audio_urls", May, Shape::List(&Shape::Url, 3)),
            RESOLUTION,
            DURATION,
            RATIO,
            AUDIO,
            SEED,
        ]),
    ),
];

/// The provider.
pub struct Fal;

impl Provider for Fal {
    fn base(&self) -> &'static str {
        ""
    }

    fn is_authorized(&self, request: &crate::http::Request, key: &str) -> bool {
        request.header("authorization") == Some(&format!("Key {key}"))
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let rest = call.path.strip_prefix(APP).ok_or(call.missing())?;
        let rest = rest.strip_prefix('/').ok_or(call.missing())?;
        if call.method == "POST" {
            let shape = SHAPES.iter().find(|(one, _)| *one == rest);
            call.check(&shape.ok_or(call.missing())?.1)?;
            let id = world.begin(call, |nth| format!("80e732af-660e-45cd-bd63-{nth:012}"))?;
            return Ok(Answer::json(200, &status(&id, Stage::Queued, world)));
        }
        let request = rest.strip_prefix("requests/").ok_or(call.missing())?;
        let (id, what) = request.split_once('/').unwrap_or((request, ""));
        match (call.method, what) {
            ("GET", "status") => {
                let stage = world.look(id)?;
                Ok(Answer::json(200, &status(id, stage, world)))
            }
            ("GET", "") => result(id, world),
            ("PUT", "cancel") => {
                world.cancel(id)?;
                Ok(Answer::json(
                    202,
                    &json!({"status": "CANCELLATION_REQUESTED"}),
                ))
            }
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, body) = match problem {
            Problem::Unauthorized => (
                401,
                json!({"detail": "No user found for Key ID and Secret"}),
            ),
            Problem::Missing(what) => (404, json!({"detail": format!("Path {what} not found")})),
            Problem::Invalid(at) => (422, fault(at, "Input should be valid", "value_error")),
            Problem::Conflict(_) => (400, json!({"status": "ALREADY_COMPLETED"})),
            Problem::Moderated => (422, moderated()),
            Problem::Busy => (429, json!({"detail": "Too many requests"})),
        };
        Answer::json(status, &body)
    }
}

fn fault(at: &str, message: &str, kind: &str) -> Value {
    let url = format!("https://docs.fal.ai/errors#{kind}");
    json!({"detail": [{"loc": ["body", at], "msg": message, "type": kind, "url": url}]})
}

fn moderated() -> Value {
    let message = "The content was flagged by a content checker.";
    fault("prompt", message, "content_policy_violation")
}

fn status(id: &str, stage: Stage, world: &World) -> Value {
    let url = format!("{}{APP}/requests/{id}", world.own_origin());
    let mut status = json!({
        "request_id": id, "response_url": url, "status_url": format!("{url}/status"),
        "cancel_url": format!("{url}/cancel"), "logs": null, "metrics": {},
    });
    status["status"] = match stage {
        Stage::Queued => json!("IN_QUEUE"),
        Stage::Running => json!("IN_PROGRESS"),
        _ => json!("COMPLETED"),
    };
    match stage {
        Stage::Queued => status["queue_position"] = json!(0),
        Stage::Failed => {
            status["error"] = json!("Request timed out");
            status["error_type"] = json!("request_timeout");
        }
        Stage::Cancelled => {
            status["error"] = json!("Request was cancelled");
            status["error_type"] = json!("client_cancelled");
        }
        _ => {}
    }
    status
}

fn result(id: &str, world: &World) -> Result<Answer, Problem> {
    let video = |url: String| json!({"url": url, "content_type": "video/mp4", "file_name": "video.mp4", "file_size": 12});
    match world.stage(id)? {
        Stage::Completed => {
            let video = video(world.film_url(id));
            Ok(Answer::json(200, &json!({"video": video, "seed": 7})))
        }
        Stage::Moderated => Ok(Answer::json(422, &moderated())),
        Stage::Failed => {
            let body = json!({"detail": "Request timed out", "error_type": "request_timeout"});
            Ok(Answer::json(504, &body))
        }
        _ => Ok(Answer::json(
            400,
            &json!({"detail": "Request is still in progress"}),
        )),
    }
}
