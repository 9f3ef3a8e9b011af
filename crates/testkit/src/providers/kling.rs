//! Kling, as its API reference describes it: a path for each kind of input, which is also where a task is asked after;
//! a token signed anew; `code` 0 in everything that is no refusal; and no cancel.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::http::{Answer, Request};
use crate::providers::provider::{Call, Problem, Provider, Stage, World};
use crate::providers::shape::Need::{May, Must};
use crate::providers::shape::{Field, Shape};

const SECONDS: &[&str] = &[
    "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
];
const MODEL: Field = ("model_name", Must, Shape::Text);
const PROMPT: Field = ("prompt", Must, Shape::Text);
const NEGATIVE: Field = ("negative_prompt", May, Shape::Text);
const MODE: Field = ("mode", May, Shape::OneOf(&["std", "pro"]));
const RATIO: Field = ("aspect_ratio", May, Shape::OneOf(&["16:9", "9:16", "1:1"]));
const DURATION: Field = ("duration", May, Shape::OneOf(SECONDS));
const SOUND: Field = ("sound", May, Shape::OneOf(&["on", "off"]));
const OWN_ID: Field = ("external_task_id", May, Shape::Text);
/// A URL, or base64 without a prefix.
const PICTURE: Shape = Shape::Either(&[Shape::Base64, Shape::WebUrl]);

const TEXT: Shape = Shape::Object(&[
    MODEL, PROMPT, NEGATIVE, MODE, RATIO, DURATION, SOUND, OWN_ID,
]);
const FRAMES: Shape = Shape::Object(&[
    MODEL,
    ("image", Must, PICTURE),
    ("image_tail", May, PICTURE),
    ("prompt", May, Shape::Text),
    NEGATIVE,
    MODE,
    DURATION,
    SOUND,
    OWN_ID,
]);
/// The provider.
pub struct Kling;

impl Provider for Kling {
    fn base(&self) -> &'static str {
        ""
    }

    fn is_authorized(&self, request: &Request, key: &str) -> bool {
        let token = request.header("authorization");
        let token = token.and_then(|value| value.strip_prefix("Bearer "));
        token.is_some_and(|token| is_token(token, key))
    }

    fn answer(&self, call: &Call<'_>, world: &mut World) -> Result<Answer, Problem> {
        let rest = call.path.strip_prefix("/v1/videos/");
        let rest = rest.ok_or(call.missing())?;
        if let ("GET", "text2video?pageNum=1&pageSize=1") = (call.method, rest) {
            return Ok(envelope(0, "SUCCEED", json!([])));
        }
        let (kind, id) = match rest.split_once('/') {
            Some((kind, id)) => (kind, Some(id)),
            None => (rest, None),
        };
        let shape = match kind {
            "text2video" => &TEXT,
            "image2video" => &FRAMES,
            _ => return Err(call.missing()),
        };
        match (call.method, id) {
            ("POST", None) => {
                call.check(shape)?;
                let id = world.begin(call, |nth| format!("82295308940882743{nth}"))?;
                let data = json!({"task_id": id, "task_status": "submitted", "task_info": {}});
                Ok(envelope(0, "SUCCEED", data))
            }
            // A task of another kind is not found.
            ("GET", Some(id)) if world.job(id)?.line.ends_with(&format!("/{kind}")) => {
                let stage = world.look(id)?;
                Ok(envelope(0, "SUCCEED", task(id, stage, world)))
            }
            _ => Err(call.missing()),
        }
    }

    fn refuse(&self, problem: &Problem) -> Answer {
        let (status, code, text) = match problem {
            Problem::Unauthorized => (401, 1002, "Authorization is invalid"),
            Problem::Missing(_) => (404, 1203, "task not found"),
            Problem::Invalid(_) => (400, 1201, "Invalid parameters"),
            Problem::Conflict(_) => (400, 1201, "Invalid status"),
            Problem::Moderated => (
                400,
                1301,
                "Trigger the content security policy of the platform",
            ),
            Problem::Busy => (429, 1302, "The API request is too fast"),
        };
        let mut answer = envelope(code, text, Value::Null);
        answer.status = status;
        answer
    }
}

fn envelope(code: u32, message: &str, data: Value) -> Answer {
    let body = json!({"code": code, "message": message, "request_id": "8dde", "data": data});
    Answer::json(200, &body)
}

fn task(id: &str, stage: Stage, world: &World) -> Value {
    let (status, text) = match stage {
        Stage::Queued => ("submitted", ""),
        Stage::Running | Stage::Cancelled => ("processing", ""),
        Stage::Completed => ("succeed", ""),
        Stage::Failed => ("failed", "Generation timeout"),
        Stage::Moderated => ("failed", "Failure to pass the risk control system"),
    };
    let mut task = json!({
        "task_id": id, "task_status": status, "task_status_msg": text, "task_info": {},
        "task_result": {}, "created_at": 1_764_235_825_029_u64,
    });
    if stage == Stage::Completed {
        let film = json!({"id": "1", "url": world.film_url(id), "duration": "5.1"});
        task["task_result"] = json!({"videos": [film]});
    }
    task
}

/// Whether this is a JWT of `ACCESS:SECRET`, signed with HS256, with Kling's claims, for half an hour at most.
fn is_token(token: &str, key: &str) -> bool {
    let Some((access, secret)) = key.split_once(':') else {
        return false;
    };
    let Some((signed, signature)) = token.rsplit_once('.') else {
        return false;
    };
    let part = |text: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()
    };
    let Some((Some(head), Some(claims))) = signed
        .split_once('.')
        .map(|(head, claims)| (part(head), part(claims)))
    else {
        return false;
    };
    // The tests' clock may begin at 0, so what counts is the time for which it is valid.
    let (from, to) = (claims["nbf"].as_u64(), claims["exp"].as_u64());
    let seconds = from.zip(to).map(|(from, to)| to.saturating_sub(from));
    head == json!({"alg": "HS256", "typ": "JWT"})
        && claims["iss"] == access
        && seconds.is_some_and(|seconds| (60..=1810).contains(&seconds))
        && URL_SAFE_NO_PAD.decode(signature).ok() == Some(hmac(secret, signed))
}

/// HMAC-SHA256.
fn hmac(key: &str, message: &str) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let mut block = [0; 64];
    match key.len() {
        0..=64 => block[..key.len()].copy_from_slice(key.as_bytes()),
        _ => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message);
    let outer = Sha256::new().chain_update(pad(0x5c));
    outer.chain_update(inner.finalize()).finalize().to_vec()
}
