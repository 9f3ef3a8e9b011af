//! Veo of the Gemini API, as google-genai 2.34.0 calls it: the job's id is a path, its end is `done`, pictures are
//! base64, and the film is under the server's own origin, needs the key, and redirects once.

use serde_json::{Value, json};

use crate::http::{Answer, Request};
use crate::providers::provider::{Call, Problem, Provider, Stage, World, redirect};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::Shape;

const IMAGE: Shape = Shape::Object(&[
    ("bytesBase64Encoded", Must, Shape::Base64),
    ("mimeType", Must, Shape::OneOf(&["image/png", "image/jpeg"])),
]);
const REFERENCE: Shape = Shape::Object(&[
    ("image", Must, IMAGE),
    ("referenceType", Must, Shape::OneOf(&["ASSET"])),
]);
const INSTANCE: Shape = Shape::Object(&[
    ("prompt", Must, Shape::Text),
    ("image", May, IMAGE),
    ("lastFrame", May, IMAGE),
    ("referenceImages", May, Shape::List(&REFERENCE, 3)),
]);
const PARAMETERS: Shape = Shape::Object(&[
    ("aspectRatio", May, Shape::OneOf(&["16:9", "9:16"])),
    ("resolution", May, Shape::OneOf(&["720p", "1080p", "4k"])),
    ("durationSeconds", May, Shape::OneOfWhole(&[4, 6, 8])),
    ("negativePrompt", May, Shape::Text),
    ("enhancePrompt", May, Shape::Flag),
    (
        "personGeneration",
        May,
        Shape::OneOf(&["allow_all", "allow_adult", "dont_allow"]),
    ),
    ("sampleCount", May, Shape::Whole(1, 1)),
]);
const SUBMIT: Shape = Shape::Object(&[
    ("instances", Must, Shape::List(&INSTANCE, 1)),
    ("parameters", May, PARAMETERS),
]);
const MODEL: &str = "/models/veo-3.1-generate-001";

/// The provider.
pub struct Veo;

impl Provider for Veo {
    fn base(&self) -> &'static str {
        "/v1beta"
    }

    fn is_authorized(&self, request: &Request, key: &str) -> bool {
        request.header("x-goog-api-key") == Some(key) && request.header("authorization").is_none()
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let rest = call.path.strip_prefix(MODEL);
        if let ("POST", Some(":predictLongRunning")) = (call.method, rest) {
            call.check(&SUBMIT)?;
            check_seconds(call.body)?;
            let id = world.begin(call, |nth| format!("op{nth}"))?;
            let name = format!("models/veo-3.1-generate-001/operations/{id}");
            return Ok(Answer::json(200, &json!({ "name": name })));
        }
        if call.method != "GET" {
            return Err(call.missing());
        }
        if let Some(id) = rest.and_then(|rest| rest.strip_prefix("/operations/")) {
            let stage = world.look(id)?;
            return Ok(Answer::json(200, &operation(id, stage, world)));
        }
        let file = call.path.strip_suffix(":download?alt=media");
        match file.map(|file| (file.strip_prefix("/files/"), file.strip_prefix("/moved/"))) {
            Some((Some(id), _)) if world.behaviour.moves_films => Ok(redirect(&world.film_url(id))),
            Some((Some(id), _)) => Ok(redirect(&format!(
                "{}/v1beta/moved/{id}:download?alt=media",
                world.own_origin()
            ))),
            Some((_, Some(_))) => Ok(world.film()),
            _ if call.path == "/models?pageSize=1" => Ok(Answer::json(
                200,
                &json!({"models": [{"name": &MODEL[1..]}]}),
            )),
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, word) = match problem {
            Problem::Unauthorized | Problem::Invalid(_) => (400, "INVALID_ARGUMENT"),
            Problem::Missing(_) => (404, "NOT_FOUND"),
            Problem::Conflict(_) => (409, "ABORTED"),
            Problem::Moderated => (400, "INVALID_ARGUMENT"),
            Problem::Busy => (429, "RESOURCE_EXHAUSTED"),
        };
        let message = match problem {
            Problem::Moderated => {
                "The prompt could not be submitted. It violates our usage guidelines.".to_owned()
            }
            problem => format!("{problem:?}"),
        };
        let error = json!({"code": status, "message": message, "status": word});
        Answer::json(status, &json!({ "error": error }))
    }
}

/// References and 1080p come in 8 seconds alone, and references without frames.
fn check_seconds(body: &Value) -> Result<(), Problem> {
    let (instance, parameters) = (&body["instances"][0], &body["parameters"]);
    let has_references = instance.get("referenceImages").is_some();
    let is_long =
        has_references || matches!(parameters["resolution"].as_str(), Some("1080p" | "4k"));
    if is_long && parameters["durationSeconds"] != 8 {
        return Err(Problem::Invalid("durationSeconds".to_owned()));
    }
    let has_frames = instance.get("image").is_some() || instance.get("lastFrame").is_some();
    if has_references && has_frames
        || instance.get("lastFrame").is_some() && instance.get("image").is_none()
    {
        return Err(Problem::Invalid("instances".to_owned()));
    }
    Ok(())
}

fn operation(id: &str, stage: Stage, world: &World) -> Value {
    let name = format!("models/veo-3.1-generate-001/operations/{id}");
    let uri = format!(
        "{}/v1beta/files/{id}:download?alt=media",
        world.own_origin()
    );
    let ended = |response: Value| json!({"name": name, "done": true, "response": {"generateVideoResponse": response}});
    match stage {
        Stage::Completed => ended(json!({"generatedSamples": [{"video": {"uri": uri}}]})),
        Stage::Moderated => ended(json!({
            "raiMediaFilteredCount": 1,
            "raiMediaFilteredReasons": ["The video was filtered out. You were not charged."],
        })),
        Stage::Failed => json!({
            "name": name, "done": true, "error": {"code": 13, "message": "Internal error."},
        }),
        Stage::Queued | Stage::Running | Stage::Cancelled => json!({ "name": name }),
    }
}
