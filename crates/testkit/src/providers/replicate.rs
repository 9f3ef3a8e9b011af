//! Replicate, as replicate 1.0.7 describes predictions, with one model that takes first and last frames or
//! references: bytedance/seedance-1-lite.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::Shape;

const RATIOS: &[&str] = &["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "9:21"];
const INPUT: Shape = Shape::Object(&[
    ("prompt", Must, Shape::Text),
    ("image", May, Shape::Url),
    ("last_frame_image", May, Shape::Url),
    ("reference_images", May, Shape::List(&Shape::Url, 4)),
    ("duration", May, Shape::Whole(2, 12)),
    ("resolution", May, Shape::OneOf(&["480p", "720p", "1080p"])),
    ("aspect_ratio", May, Shape::OneOf(RATIOS)),
    ("fps", May, Shape::OneOfWhole(&[24])),
    ("camera_fixed", May, Shape::Flag),
    ("seed", May, Shape::Whole(0, 2_147_483_647)),
]);
const SUBMIT: Shape = Shape::Object(&[("input", Must, INPUT)]);

/// The provider.
pub struct Replicate;

impl Provider for Replicate {
    fn base(&self) -> &'static str {
        "/v1"
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let id = call.path.strip_prefix("/predictions/");
        let cancelled = id.and_then(|id| id.strip_suffix("/cancel"));
        match (call.method, call.path, id, cancelled) {
            ("GET", "/account", ..) => Ok(Answer::json(200, &json!({"type": "organization"}))),
            ("POST", "/models/bytedance/seedance-1-lite/predictions", ..) => {
                call.check(&SUBMIT)?;
                let input = &call.body["input"];
                if !input["reference_images"].is_null() && !input["image"].is_null() {
                    return Err(Problem::Invalid("input.reference_images".to_owned()));
                }
                let id = world.begin(call, |nth| format!("gm3qorzdhgbfurvjtvhg6dck{nth:02}"))?;
                Ok(Answer::json(201, &prediction(&id, Stage::Queued, world)))
            }
            ("GET", _, Some(id), _) => {
                let stage = world.look(id)?;
                Ok(Answer::json(200, &prediction(id, stage, world)))
            }
            ("POST", _, _, Some(id)) => {
                match world.cancel(id) {
                    Ok(()) | Err(Problem::Conflict(_)) => {}
                    Err(problem) => return Err(problem),
                }
                let stage = world.stage(id)?;
                Ok(Answer::json(200, &prediction(id, stage, world)))
            }
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, title, detail) = match problem {
            Problem::Unauthorized => (401, "Unauthenticated", "the token is not valid".to_owned()),
            Problem::Missing(_) => (404, "Not found", "The resource was not found.".to_owned()),
            Problem::Invalid(at) => (422, "Input validation failed", format!("- {at}")),
            Problem::Conflict(_) => (409, "Conflict", "Conflict".to_owned()),
            Problem::Moderated => (422, "Unprocessable", sensitive()),
            Problem::Busy => (429, "Throttled", "Request was throttled.".to_owned()),
        };
        Answer::json(
            status,
            &json!({"title": title, "detail": detail, "status": status}),
        )
    }
}

fn sensitive() -> String {
    "The input or output was flagged as sensitive. Please try again with different inputs. (E005)"
        .to_owned()
}

fn prediction(id: &str, stage: Stage, world: &World) -> Value {
    let (status, error) = match stage {
        Stage::Queued => ("starting", None),
        Stage::Running => ("processing", None),
        Stage::Completed => ("succeeded", None),
        Stage::Failed => (
            "failed",
            Some("Prediction failed for an unknown reason.".to_owned()),
        ),
        Stage::Moderated => ("failed", Some(sensitive())),
        Stage::Cancelled => ("canceled", None),
    };
    let output = (stage == Stage::Completed).then(|| world.film_url(id));
    let url = format!("{}/v1/predictions/{id}", world.own_origin());
    json!({
        "id": id, "model": "bytedance/seedance-1-lite", "version": "hidden", "status": status,
        "input": world.job(id).expect("known").body["input"], "output": output, "error": error,
        "logs": "", "metrics": {}, "data_removed": false, "created_at": "2026-11-29T00:00:00Z",
        "urls": {"get": url, "cancel": format!("{url}/cancel")},
    })
}
