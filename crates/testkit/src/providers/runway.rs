//! Runway, as runwayml 5.24.0 describes it: a shape of body for each model and endpoint, a version header, and a
//! `DELETE` that also removes the task.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::{Field, Shape};

const SEED: Field = ("seed", May, Shape::Whole(0, 4_294_967_295));
const PROMPT: Field = ("promptText", Must, Shape::Text);
const FIRST: Shape = Shape::Object(&[
    ("uri", Must, Shape::Url),
    ("position", Must, Shape::OneOf(&["first"])),
]);
const FRAME: Shape = Shape::Object(&[
    ("uri", Must, Shape::Url),
    ("position", Must, Shape::OneOf(&["first", "last"])),
]);
const SOUND: Shape = Shape::Object(&[
    ("type", Must, Shape::OneOf(&["audio"])),
    ("uri", Must, Shape::Url),
]);
const PICTURE: Shape = Shape::Object(&[("uri", Must, Shape::Url)]);
const WIDE: Shape = Shape::OneOf(&["1280:720", "720:1280"]);
const GEN4: Shape = Shape::OneOf(&[
    "1280:720", "720:1280", "1104:832", "960:960", "832:1104", "1584:672",
]);
const VEO: Shape = Shape::OneOf(&["1280:720", "720:1280", "1080:1920", "1920:1080"]);
const SEEDANCE: Shape = Shape::OneOf(&[
    "864:496",
    "496:864",
    "1470:630",
    "1280:720",
    "1112:834",
    "960:960",
    "834:1112",
    "720:1280",
    "1920:1080",
    "1080:1920",
]);
const VEO_SECONDS: Field = ("duration", May, Shape::OneOfWhole(&[4, 6, 8]));
const SEEDANCE_SECONDS: Field = ("duration", May, Shape::Whole(4, 15));
const GEN4_SECONDS: Shape = Shape::Whole(2, 10);

/// The endpoint, the model, and the other fields of a body.
const SHAPES: &[(&str, &str, Shape)] = &[
    (
        "/text_to_video",
        "gen4.5",
        Shape::Object(&[
            ("model", Must, Shape::Text),
            PROMPT,
            ("ratio", Must, WIDE),
            ("duration", Must, GEN4_SECONDS),
            SEED,
        ]),
    ),
    (
        "/image_to_video",
        "gen4.5",
        Shape::Object(&[
            ("model", Must, Shape::Text),
            PROMPT,
            ("promptImage", Must, Shape::List(&FIRST, 1)),
            ("ratio", Must, GEN4),
            ("duration", Must, GEN4_SECONDS),
            SEED,
        ]),
    ),
    (
        "/image_to_video",
        "gen4_turbo",
        Shape::Object(&[
            ("model", Must, Shape::Text),
            ("promptText", May, Shape::Text),
            ("promptImage", Must, Shape::List(&FIRST, 1)),
            ("ratio", Must, GEN4),
            ("duration", May, GEN4_SECONDS),
            SEED,
        ]),
    ),
    (
        "/text_to_video",
        "veo3.1",
        Shape::Object(&[
            ("model", Must, Shape::Text),
            PROMPT,
            ("negativePrompt", May, Shape::Text),
            ("ratio", Must, VEO),
            ("audio", May, Shape::Flag),
            VEO_SECONDS,
            SEED,
        ]),
    ),
    (
        "/image_to_video",
        "veo3.1",
        Shape::Object(&[
            ("model", Must, Shape::Text),
            ("promptText", May, Shape::Text),
            ("negativePrompt", May, Shape::Text),
            ("promptImage", Must, Shape::List(&FRAME, 2)),
            ("ratio", Must, VEO),
            ("audio", May, Shape::Flag),
            VEO_SECONDS,
            SEED,
        ]),
    ),
    (
        "/text_to_video",
        "seedance2",
        Shape::Object(&[
            ("model", Must, Shape::Text),
            PROMPT,
            ("ratio", May, SEEDANCE),
            ("audio", May, Shape::Flag),
            ("references", May, Shape::List(&PICTURE, 9)),
            ("referenceAudio", May, Shape::List(&SOUND, 3)),
            SEEDANCE_SECONDS,
            SEED,
        ]),
    ),
    (
        "/image_to_video",
        "seedance2",
        Shape::Object(&[
            ("model", Must, Shape::Text),
            ("promptText", May, Shape::Text),
            ("promptImage", Must, Shape::List(&FRAME, 2)),
            ("ratio", May, SEEDANCE),
            ("audio", May, Shape::Flag),
            SEEDANCE_SECONDS,
            SEED,
        ]),
    ),
];

/// The provider.
pub struct Runway;

impl Provider for Runway {
    fn base(&self) -> &'static str {
        "/v1"
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        if call.request.header("x-runway-version") != Some("2024-11-06") {
            return Err(Problem::Invalid("X-Runway-Version".to_owned()));
        }
        match (call.method, call.path, call.path.strip_prefix("/tasks/")) {
            ("GET", "/organization", _) => Ok(Answer::json(200, &json!({"creditBalance": 10}))),
            ("POST", _, None) => {
                call.check(shape(call)?)?;
                let id = world.begin(call, |nth| format!("17f20503-6c24-4c16-946b-{nth:012}"))?;
                let answer = json!({"id": id, "estimatedCost": {"credits": 60}});
                Ok(Answer::json(200, &answer))
            }
            ("GET", _, Some(id)) => match world.look(id)? {
                Stage::Cancelled => Err(call.missing()),
                stage => Ok(Answer::json(200, &task(id, stage, world))),
            },
            ("DELETE", _, Some(id)) => match world.cancel(id) {
                Ok(()) | Err(Problem::Conflict(_)) => Ok(Answer::empty(204)),
                Err(problem) => Err(problem),
            },
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, error) = match problem {
            Problem::Unauthorized => (401, "The API key is not valid.".to_owned()),
            Problem::Missing(what) => (404, format!("Not found: {what}")),
            Problem::Invalid(at) => (400, format!("Validation of body failed: {at}")),
            Problem::Conflict(_) | Problem::Moderated => (400, "Bad request".to_owned()),
            Problem::Busy => (429, "You have exceeded your rate limit.".to_owned()),
        };
        Answer::json(status, &json!({ "error": error }))
    }
}

fn shape(call: &Call<'_>) -> Result<&'static Shape, Problem> {
    if !SHAPES.iter().any(|(path, _, _)| *path == call.path) {
        return Err(call.missing());
    }
    let named = |(path, model, _): &&(&str, &str, Shape)| {
        *path == call.path && call.body["model"] == *model
    };
    let found = SHAPES.iter().find(named).map(|(_, _, shape)| shape);
    found.ok_or_else(|| Problem::Invalid("body.model".to_owned()))
}

fn task(id: &str, stage: Stage, world: &World) -> Value {
    let mut task = json!({"id": id, "createdAt": "2026-11-29T00:00:00.000Z"});
    let (status, more) = match stage {
        Stage::Queued => ("THROTTLED", json!({"estimatedCost": {"credits": 60}})),
        Stage::Running => (
            "RUNNING",
            json!({"progress": 0.4, "estimatedCost": {"credits": 60}}),
        ),
        Stage::Completed => {
            let output = [world.film_url(id)];
            (
                "SUCCEEDED",
                json!({"output": output, "cost": {"credits": 60}}),
            )
        }
        Stage::Cancelled => ("CANCELLED", json!({"cost": {"credits": 0}})),
        Stage::Failed => ("FAILED", failure("INTERNAL.BAD_OUTPUT.CODE01")),
        Stage::Moderated => ("FAILED", failure("SAFETY.INPUT.TEXT")),
    };
    task["status"] = json!(status);
    for (name, value) in more.as_object().expect("an object") {
        task[name] = value.clone();
    }
    task
}

fn failure(code: &str) -> Value {
    json!({"failure": "An unexpected error occurred.", "failureCode": code, "cost": {"credits": 0}})
}
