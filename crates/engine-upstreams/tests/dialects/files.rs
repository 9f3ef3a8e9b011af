//! Dialects of servers that are nothing like `/v1/videos`, read from a text as an operator would write it: what is
//! sent, what the answers mean, and where a film may come from.

use std::sync::{Arc, Mutex};

use kinora_contract::{FailureCode, Size};
use kinora_engine_upstreams::dialects::{
    CallError, ExchangeWatcher, KeySource, RemoteOptions, ServerDialect, UpstreamError,
    WatchedExchange,
};
use serde_json::{Value, json};

use crate::common::{MP4, frames, references};
use crate::server::{Seen, Server, Step, answer};
use crate::support::{Stage, is_absent, request};

const OWN: &str = "upload:uploads/file_01k3v8r2n8p5c1w9g7d4x6m2ta";

pub(crate) const TASKS: &str = r#"
title = "Tasks"
source = "this test"
headers = { x-version = "2026-11" }

[auth]
header = "x-key"
value = "Token {key}"

[submit]
path = "text"
headers = { x-task = "{key}" }

[submit.body]
model = "{model}"
content = [
  { type = "text", text = "{prompt}" },
  { for_each = "images", type = "image", image = { url = "{image}" }, role = "reference" },
  { for_each = "audios", type = "audio", data = "{sound:base64}", of = "{sound:media_type}" },
]
options = { negative = "{negative_prompt}", sound = "{audio@switch}" }
ratio = "{ratio}"
tier = "{tier:upper}"
seconds = "{seconds}s"
seed = "{seed:31}"

[submit.inputs.first_frame]
path = "models/{model:2}/frames"
[submit.inputs.first_frame.body]
prompt = "{prompt}"
image = "{first_frame}"
size = "{size@sizes}"

[poll]
path = "{path}/{id}"
forgotten = ["lost"]

[answer]
id = ["/data/task_id", "/task_id"]
status = "/data/state"
progress = "/data/step"
progress_max = 20
result = ["/data/films/0/url", "/data/film"]
error_code = "/code"
error_message = "/data/reason"
success = { pointer = "/code", equals = 0, busy = ["1302"], denied = ["1001"] }
cost = { pointer = "/data/ticks", currency = "USD", per_unit = 1e-6 }

[statuses]
queued = ["1"]
running = ["2"]
completed = ["3"]
failed = ["4"]
cancelled = ["5"]

[failures]
content_policy = ["1301", "sensitive"]
unsupported_image = ["/data/bad_image"]

[limits]
images = 2
audios = 1

[lookup.switch]
true = "on"
false = "off"

[lookup.sizes]
"1280x720" = "wide"
"#;

fn dialect(text: &str) -> Arc<ServerDialect> {
    Arc::new(ServerDialect::read(text).unwrap())
}

fn stage(text: &str, server: &Server) -> Stage {
    Stage::of(dialect(text), &[server], |_| {})
}

fn with_key(
    text: &str,
    server: &Server,
    key: &'static str,
    change: impl FnOnce(&mut RemoteOptions),
) -> Stage {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), key).unwrap();
    Stage::of(dialect(text), &[server], |options| {
        options.servers.key = KeySource::File(file.path().to_owned());
        change(options);
    })
}

/// What reached the worker of the charge.
fn charged(stage: &Stage) -> Option<String> {
    let charged = stage.control.reported_cost();
    charged.map(|charged| charged.to_string())
}

fn says(body: &Value) -> Vec<Step> {
    answer(200, "", body.to_string())
}

/// A server of [`TASKS`] whose task `7` ends as `end` says.
async fn tasks(end: Value) -> Server {
    Server::start(move |seen, before| match (seen.line.as_str(), before) {
        // Some servers send back what they got.
        (line, _) if line.starts_with("POST ") => {
            let echo = seen.header("x-key");
            says(&json!({"code": 0, "data": {"task_id": 7}, "echo": echo}))
        }
        (line, 0) if line.ends_with("/7") => {
            says(&json!({"code": 0, "data": {"task_id": "7", "state": 2, "step": 5}}))
        }
        (line, _) if line.ends_with("/7") => says(&end),
        _ => answer(200, "content-type: video/mp4\r\n", MP4),
    })
    .await
}

fn done(fields: &Value) -> Value {
    let mut data = json!({"task_id": 7, "state": "3"});
    let fields = fields.as_object().unwrap().clone();
    data.as_object_mut().unwrap().extend(fields);
    json!({"code": 0, "message": "SUCCEED", "data": data})
}

#[tokio::test]
async fn a_template_says_what_the_request_has_and_nothing_else() {
    let server = tasks(done(
        &json!({"films": [{"url": "/v1/film"}], "ticks": 250_000}),
    ))
    .await;
    let stage = stage(TASKS, &server);
    let mut text = request();
    text.spec.seed = u32::MAX;
    stage.run_request(&text, None).await.unwrap();
    assert_eq!(std::fs::read(stage.result()).unwrap(), MP4);
    let submit = &server.seen()[0];
    assert_eq!(submit.line, "POST /v1/text");
    assert_eq!(submit.header("x-version"), Some("2026-11"));
    assert_eq!(submit.header("x-task"), Some("video_0001"));
    assert_eq!(
        submit.json(),
        json!({
            "model": "wan-2.2", "content": [{"type": "text", "text": "A boat \"on\" a lake"}],
            "ratio": "16:9", "tier": "720P", "seconds": "5s", "seed": 0x7fff_ffff_u32,
        })
    );
    assert_eq!(
        server.lines()[1..],
        ["GET /v1/text/7", "GET /v1/text/7", "GET /v1/film"]
    );
    let fraction = stage.control.progress.fraction();
    assert!((fraction - (0.05 + 0.25 * 0.93)).abs() < 1e-6);
    assert_eq!(charged(&stage).as_deref(), Some("0.25 USD"));

    let mut several = request();
    several.audio_switch = true;
    several.spec.negative_prompt = Some("rain".to_owned());
    several.spec.inputs = references(&["https://e.org/1.png", OWN], &["https://e.org/2.wav"]);
    several.references = vec![
        stage.reference("1", "image/png", b"one"),
        stage.reference("2", "image/png", b"two"),
        stage.reference("3", "audio/wav", b"sound"),
    ];
    let _job = stage.remote.submit(&several).await.unwrap();
    let sent = server.seen().last().unwrap().json();
    assert_eq!(
        sent["content"].as_array().unwrap()[1..],
        [
            json!({"type": "image", "image": {"url": "https://e.org/1.png"}, "role": "reference"}),
            json!({"type": "image", "image": {"url": "data:image/png;base64,dHdv"}, "role": "reference"}),
            json!({"type": "audio", "data": "c291bmQ=", "of": "audio/wav"}),
        ]
    );
    assert_eq!(sent["options"], json!({"negative": "rain", "sound": "off"}));
}

#[tokio::test]
async fn a_kind_of_input_has_a_path_and_a_body_of_its_own_and_a_table_that_refuses() {
    let server = tasks(done(&json!({"film": "/v1/film"}))).await;
    let stage = stage(TASKS, &server);
    let mut framed = request();
    framed.model = Some("a/b c/d".to_owned());
    framed.spec.inputs = frames("https://e.org/1.png", None);
    framed.references = vec![stage.reference("1", "image/png", b"one")];
    stage.run_request(&framed, None).await.unwrap();
    let submit = &server.seen()[0];
    let body =
        json!({"prompt": "A boat \"on\" a lake", "image": "https://e.org/1.png", "size": "wide"});
    assert_eq!(
        (submit.line.as_str(), submit.json()),
        ("POST /v1/models/a/b%20c/frames", body)
    );
    assert_eq!(server.lines()[1], "GET /v1/models/a/b%20c/frames/7");
    let kept = serde_json::to_value(stage.shelf.last()).unwrap();
    assert_eq!(
        kept,
        json!({"upstream": "a", "id": "7", "path": "models/a/b%20c/frames"})
    );

    let count = server.seen().len();
    framed.spec.frame = kinora_contract::FrameSize::Fixed(Size::new(720, 1280));
    let refused = stage.remote.submit(&framed).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("720x1280, which is not in its table sizes"),
        "{refused}"
    );
    // The submit of a first frame says no seed, which alone may be left out, and no sound.
    framed.audio_switch = true;
    let refused = stage.remote.submit(&framed).await.unwrap_err();
    assert!(
        matches!(refused, UpstreamError::Unsupported(_)),
        "{refused}"
    );
    assert_eq!(server.seen().len(), count);
}

#[tokio::test]
async fn a_ticket_of_before_is_followed_and_one_that_lacks_its_path_is_not() {
    let old = serde_json::from_str(r#"{"upstream":"a","id":"t"}"#).unwrap();
    let server = Server::well("t", MP4).await;
    let stage = Stage::new("openai", &[&server]);
    stage.run_request(&request(), Some(old)).await.unwrap();
    let old = serde_json::from_str(r#"{"upstream":"a","id":"7"}"#).unwrap();
    let server = tasks(done(&json!({}))).await;
    let stage = self::stage(TASKS, &server);
    let error = stage.run_request(&request(), Some(old)).await.unwrap_err();
    assert!(error.to_string().contains("{path} has no value"), "{error}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn an_end_is_what_the_words_of_the_dialect_say() {
    let failed = |reason: &str| json!({"code": 0, "data": {"state": 4, "reason": reason}});
    for (end, code) in [
        (failed("x"), FailureCode::GenerationFailed),
        (failed("Too SENSITIVE for us"), FailureCode::ContentPolicy),
        (
            json!({"code": 1301, "data": {}}),
            FailureCode::ContentPolicy,
        ),
        (
            done(&json!({"bad_image": 1})),
            FailureCode::UnsupportedImage,
        ),
        (
            json!({"code": 0, "data": {"state": "4", "bad_image": ["a"]}}),
            FailureCode::UnsupportedImage,
        ),
    ] {
        let server = tasks(end.clone()).await;
        let stage = stage(TASKS, &server);
        let error = stage.run().await.unwrap_err();
        assert!(
            matches!(error, UpstreamError::Failed { .. }),
            "{end}: {error:?}"
        );
        assert_eq!(error.code(), code, "{end}");
    }
    let server = tasks(json!({"code": 0, "data": {"state": 5}})).await;
    let error = stage(TASKS, &server).run().await.unwrap_err();
    assert!(matches!(error, UpstreamError::Ended(_)), "{error:?}");
    let server = tasks(done(&json!({}))).await;
    let error = stage(TASKS, &server).run().await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::NoResult(CallError::NoAddress)),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_refusal_is_read_whatever_its_status() {
    let ask = async |status: u16, body: Value| {
        let other = tasks(done(&json!({"film": "/v1/film"}))).await;
        let server = Server::start(move |_, _| answer(status, "", body.to_string())).await;
        let stage = Stage::of(dialect(TASKS), &[&server, &other], |_| {});
        let ended = stage.run().await;
        (ended, server.seen().len(), other.count("POST /v1/text"))
    };
    for (status, body) in [
        (200, json!({"code": 1301, "message": "no"})),
        (400, json!({"code": 1301})),
        (403, json!({"code": 9, "data": {"reason": "Sensitive."}})),
        (200, json!({"data": {"reason": "Sensitive."}})),
    ] {
        let (ended, asked, others) = ask(status, body).await;
        assert_eq!(ended.unwrap_err().code(), FailureCode::ContentPolicy);
        assert_eq!((asked, others), (1, 0));
    }
    // About the key and the account, whatever the words are.
    for status in [401, 402] {
        let (ended, asked, others) = ask(status, json!({"code": 1301})).await;
        ended.unwrap();
        assert_eq!((asked, others), (1, 1));
    }
    let (ended, asked, others) = ask(200, json!({"code": 1201})).await;
    assert!(matches!(ended.unwrap_err(), UpstreamError::Refused(_)));
    assert_eq!((asked, others), (1, 0));
    for body in [json!({"code": 1302}), json!({"code": 1001})] {
        let (ended, asked, others) = ask(200, body).await;
        ended.unwrap();
        assert_eq!((asked, others), (1, 1));
    }
}

#[tokio::test]
async fn a_forgotten_job_is_known_by_its_words() {
    for lost in [
        says(&json!({"code": 0, "data": {"state": "lost"}})),
        answer(
            500,
            "",
            json!({"data": {"reason": "the record is lost"}}).to_string(),
        ),
    ] {
        let server = Server::start(move |seen, before| match (seen.line.as_str(), before) {
            ("POST /v1/text", _) => says(&json!({"code": 0, "data": {"task_id": 7 + before}})),
            ("GET /v1/text/7", _) => lost.clone(),
            ("GET /v1/text/8", _) => says(&done(&json!({"task_id": "8", "film": "/v1/film"}))),
            _ => answer(200, "", MP4),
        })
        .await;
        let free = TASKS.replace("[submit]", "[submit]\nrepeat = \"freely\"");
        stage(&free, &server).run().await.unwrap();
        assert_eq!(server.count("GET /v1/text/7"), 2);
    }
}

/// A gateway, or a server that refuses the key, knows nothing about the job.
#[tokio::test]
async fn words_of_who_cannot_know_do_not_mean_that_a_job_is_forgotten() {
    for status in [401, 403, 429, 502, 503] {
        let server = Server::start(move |seen, before| match (seen.line.as_str(), before) {
            ("POST /v1/text", _) => says(&json!({"code": 0, "data": {"task_id": 7}})),
            ("GET /v1/text/7", 0..3) => answer(status, "", r#"{"data": {"reason": "lost"}}"#),
            ("GET /v1/text/7", _) => says(&done(&json!({"film": "/v1/film"}))),
            _ => answer(200, "", MP4),
        })
        .await;
        stage(TASKS, &server).run().await.unwrap();
        assert_eq!(server.count("POST /v1/text"), 1, "{status}");
    }
}

#[tokio::test]
async fn a_film_that_is_withheld_is_charged() {
    let text = TASKS.replace(
        "denied = [\"1001\"]",
        "denied = [\"1001\"], failure = \"content_policy\"",
    );
    let server = tasks(json!({"code": 9, "data": {"state": "3", "ticks": 1_500_000}})).await;
    let stage = stage(&text, &server);
    let error = stage.run().await.unwrap_err();
    assert_eq!(error.code(), FailureCode::ContentPolicy, "{error:?}");
    assert_eq!(charged(&stage).as_deref(), Some("1.50 USD"));
}

#[tokio::test]
async fn a_cancel_is_refused_by_a_status_of_success_but_not_by_a_plain_one() {
    let text = format!("{TASKS}\n[cancel]\npath = \"stop/{{id}}\"");
    for (status, is_stopped) in [(200, false), (400, true)] {
        let server = Server::start(move |seen, _| match seen.line.as_str() {
            "POST /v1/stop/7" => answer(status, "", r#"{"code": 1199}"#),
            _ => says(&json!({"code": 0, "data": {"task_id": 7}})),
        })
        .await;
        let job = stage(&text, &server).remote.submit(&request()).await;
        let cancelled = job.unwrap().cancel().await;
        assert_eq!(cancelled.is_ok(), is_stopped, "{cancelled:?}");
    }
}

#[tokio::test]
async fn a_header_has_one_line_of_plain_text() {
    let text = TASKS.replace("x-task = \"{key}\"", "x-task = \"{prompt}\"");
    let server = tasks(done(&json!({}))).await;
    for prompt in ["two\nlines", "caf\u{e9}"] {
        let mut wrong = request();
        wrong.spec.prompt = prompt.to_owned();
        let refused = stage(&text, &server).remote.submit(&wrong).await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, UpstreamError::Unsupported(_)),
            "{refused}"
        );
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_key_that_a_server_sends_back_is_in_no_error() {
    let signed = TASKS.replace(
        "value = \"Token {key}\"",
        "value = \"Bearer {key}\"\nsigner = \"jwt-hs256\"",
    );
    for text in [TASKS, &signed] {
        for (submit, poll) in [(400, 200), (200, 200), (200, 400)] {
            let server = Server::start(move |seen, _| {
                let key = seen.header("x-key").unwrap();
                let told = json!({"data": {"state": "4", "reason": format!("no: {key}")}});
                match seen.line.starts_with("POST") {
                    true if submit == 200 => says(&json!({"data": {"task_id": 7}})),
                    true => answer(submit, "", told.to_string()),
                    false => answer(poll, "", told.to_string()),
                }
            })
            .await;
            let stage = with_key(text, &server, "access-1:marked-secret", |_| {});
            let error = format!("{:?}", stage.run().await.unwrap_err());
            assert!(error.contains("***"), "{submit} {poll}: {error}");
            let is_clean = !error.contains("marked-secret") && !error.contains("eyJ");
            assert!(is_clean, "{submit} {poll}: {error}");
        }
    }
}

/// A server that names operations by paths, says `done`, and has the film behind a second request.
const OPERATIONS: &str = r#"
title = "Operations"
source = "this test"
auth = { header = "x-goog-api-key", value = "{key}" }
submit = { path = "models/{model}:run", body = { prompt = "{prompt}", first = { data = "{first_frame:base64}", type = "{first_frame:media_type}" } } }
poll = { path = "poll", method = "POST", body = { name = "{id}", constant = 1 } }
cancel = { path = "{id:path}:cancel", body = { reason = "stopped" } }
probe = { path = "models/{model}" }
answer = { id = "/name", done = "/done", result = "/video/uri", error_code = "/error/status", error_message = ["/error/message", "/detail/0/msg"] }
failures = { content_policy = ["safety"] }
result = { lookup = "{id:path}/film", redirects = true }
"#;

const OPERATION: &str = "models/m-1/operations/o";

/// Its operation ends; `more` answers the rest.
async fn operations(more: impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static) -> Server {
    Server::start(move |seen, before| match (seen.line.as_str(), before) {
        ("POST /v1/models/wan-2.2:run", _) => says(&json!({"name": OPERATION})),
        ("POST /v1/poll", 0) => answer(202, "", ""),
        ("POST /v1/poll", 1) => says(&json!({"name": OPERATION})),
        ("POST /v1/poll", _) => says(&json!({"name": OPERATION, "done": true})),
        _ => more(seen).unwrap_or_else(|| answer(200, "", "{}")),
    })
    .await
}

fn film_at(url: String) -> impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static {
    move |seen| match seen.line.as_str() {
        "GET /v1/models/m-1/operations/o/film" => Some(says(&json!({"video": {"uri": url}}))),
        "GET /v1/moved" => Some(answer(302, "location: /v1/media\r\n", "")),
        "GET /v1/media" => Some(answer(200, "", MP4)),
        "GET /v1/around" => Some(answer(307, "location: around\r\n", "")),
        _ => None,
    }
}

#[tokio::test]
async fn an_operation_is_polled_by_its_path_and_its_film_is_asked_for_and_moves() {
    let server = operations(film_at("/v1/moved".to_owned())).await;
    let stage = with_key(OPERATIONS, &server, "sk-marked", |_| {});
    let mut framed = request();
    framed.spec.inputs = frames("https://e.org/1.png", None);
    framed.references = vec![stage.reference("1", "image/png", b"one")];
    stage.run_request(&framed, None).await.unwrap();
    assert_eq!(std::fs::read(stage.result()).unwrap(), MP4);
    let seen = server.seen();
    assert_eq!(
        seen[0].json()["first"],
        json!({"data": "b25l", "type": "image/png"})
    );
    assert_eq!(seen[1].json(), json!({"name": OPERATION, "constant": 1}));
    assert_eq!(
        server.lines()[4..],
        [
            "GET /v1/models/m-1/operations/o/film",
            "GET /v1/moved",
            "GET /v1/media"
        ]
    );
    assert!(
        seen.iter()
            .all(|one| one.header("x-goog-api-key") == Some("sk-marked"))
    );
    assert!(seen.iter().all(|one| one.header("authorization").is_none()));
    let job = stage.remote.submit(&request()).await.unwrap();
    job.cancel().await.unwrap();
    let cancel = server.seen().pop().unwrap();
    assert_eq!(cancel.line, "POST /v1/models/m-1/operations/o:cancel");
    assert_eq!(cancel.json(), json!({"reason": "stopped"}));
}

#[tokio::test]
async fn a_look_up_that_is_refused_ends_the_job_and_is_not_repeated() {
    for (status, message, code) in [
        (422, "violates safety rules", FailureCode::ContentPolicy),
        (403, "violates safety rules", FailureCode::ContentPolicy),
        (400, "odd", FailureCode::GenerationFailed),
    ] {
        let body = json!({"detail": [{"msg": message}]}).to_string();
        let server = operations(move |_| Some(answer(status, "", &body))).await;
        let stage = stage(OPERATIONS, &server);
        let error = stage.run().await.unwrap_err();
        assert!(matches!(error, UpstreamError::Failed { .. }), "{error:?}");
        assert_eq!(error.code(), code);
        assert_eq!(server.count("GET /v1/models/m-1/operations/o/film"), 1);
    }
}

/// The answer is about one job: the next one is sent without asking whether the server is there.
#[tokio::test]
async fn a_look_up_that_fails_does_not_count_against_the_server() {
    let server = operations(|seen| seen.line.ends_with("/film").then(|| answer(503, "", ""))).await;
    let stage = stage(OPERATIONS, &server);
    let error = stage.run().await.unwrap_err();
    assert!(matches!(error, UpstreamError::NoResult(_)), "{error:?}");
    stage.remote.submit(&request()).await.unwrap();
    assert_eq!(server.count("GET /v1/models/wan-2.2"), 0);
}

#[tokio::test]
async fn an_operation_that_is_done_with_an_error_failed() {
    let server = Server::start(|seen, _| match seen.line.as_str() {
        "POST /v1/poll" => {
            says(&json!({"done": true, "error": {"status": 3, "message": "Safety."}}))
        }
        _ => says(&json!({"name": OPERATION})),
    })
    .await;
    let error = stage(OPERATIONS, &server).run().await.unwrap_err();
    assert_eq!(error.code(), FailureCode::ContentPolicy);
}

/// A server whose film has moved to `url`.
async fn moving(url: &str) -> Server {
    let (film, head) = (
        film_at("/v1/hop".to_owned()),
        format!("location: {url}\r\n"),
    );
    let server = operations(move |seen| match seen.line.as_str() {
        "GET /v1/hop" => Some(answer(302, &head, "")),
        _ => film(seen),
    });
    server.await
}

#[tokio::test]
async fn a_film_comes_from_a_known_origin_alone_however_it_moves() {
    let bucket = Server::start(|_, _| answer(200, "", MP4)).await;
    let origin = format!("http://{}", bucket.address);
    let film = format!("{origin}/film.mp4?signature=1");
    let server = moving(&film).await;
    let known = origin.clone();
    let stage = with_key(OPERATIONS, &server, "sk-marked", |options| {
        options.result_origins = vec![known];
    });
    stage.run().await.unwrap();
    assert_eq!(std::fs::read(stage.result()).unwrap(), MP4);
    let [seen] = &bucket.seen()[..] else { panic!() };
    assert_eq!(
        (seen.header("x-goog-api-key"), seen.line.as_str()),
        (None, "GET /film.mp4?signature=1")
    );

    for target in [
        film.as_str(),
        "https://127.0.0.1/film",
        "https://[::ffff:10.0.0.1]/film",
        "https://2130706433/film",
        "file:///etc/passwd",
        "data:video/mp4,x",
    ] {
        let server = moving(target).await;
        let stage = with_key(OPERATIONS, &server, "sk-marked", |options| {
            options.result_origins = vec!["https://*".to_owned()];
        });
        let error = stage.run().await.unwrap_err();
        assert!(
            matches!(error, UpstreamError::ForeignResult(_)),
            "{target}: {error:?}"
        );
        assert!(is_absent(&stage.result()));
    }
    assert_eq!(bucket.seen().len(), 1);

    // The name of a public origin that resolves to this machine is not dialled.
    let server = operations(film_at("https://localhost/film".to_owned())).await;
    let stage = Stage::of(dialect(OPERATIONS), &[&server], |options| {
        options.result_origins = vec!["https://*".to_owned()];
    });
    let UpstreamError::NoResult(cause) = stage.run().await.unwrap_err() else {
        panic!()
    };
    let chain = format!("{cause:?}");
    assert!(chain.contains("localhost has no public address"), "{chain}");
    // That is not the server's fault.
    stage.remote.submit(&request()).await.unwrap();
    assert_eq!(server.count("GET /v1/models/wan-2.2"), 0);
}

#[tokio::test]
async fn a_film_does_not_come_back_to_the_server_and_not_for_ever() {
    // Another server must not choose what is asked with the key.
    let back = Arc::new(std::sync::OnceLock::<String>::new());
    let location = back.clone();
    let bucket = Server::start(move |_, _| answer(302, location.get().unwrap(), "")).await;
    let origin = format!("http://{}", bucket.address);
    let server = moving(&format!("{origin}/film")).await;
    back.set(format!("location: http://{}/v1/media\r\n", server.address))
        .unwrap();
    let stage = with_key(OPERATIONS, &server, "sk-marked", |options| {
        options.result_origins = vec![origin];
    });
    let error = stage.run().await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::ForeignResult(_)),
        "{error:?}"
    );
    assert_eq!(server.count("GET /v1/media"), 0);

    let server = operations(film_at("/v1/around".to_owned())).await;
    let error = self::stage(OPERATIONS, &server).run().await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::NoResult(CallError::Redirects(5))),
        "{error:?}"
    );
    assert_eq!(server.count("GET /v1/around"), 6);
}

#[tokio::test]
async fn a_signed_key_is_a_fresh_token_and_a_key_of_one_part_is_refused() {
    let text = TASKS.replace(
        "value = \"Token {key}\"",
        "value = \"Bearer {key}\"\nsigner = \"jwt-hs256\"",
    );
    let server = tasks(done(&json!({"film": "/v1/film"}))).await;
    let stage = with_key(&text, &server, "access:marked-secret", |_| {});
    stage.run().await.unwrap();
    for seen in server.seen() {
        let token = seen
            .header("x-key")
            .unwrap()
            .strip_prefix("Bearer ")
            .unwrap();
        assert_eq!(token.split('.').count(), 3);
        assert!(!token.contains("marked-secret"));
    }
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        with_key(&text, &server, "one-part", |_| {})
    }));
    assert!(refused.is_err());
}

/// Remembers every exchange.
#[derive(Debug, Default)]
struct Exchanges(Mutex<Vec<WatchedExchange>>);

impl ExchangeWatcher for Exchanges {
    fn exchanged(&self, exchange: &WatchedExchange) {
        self.0.lock().unwrap().push(exchange.clone());
    }
}

#[tokio::test]
async fn every_exchange_is_shown_without_the_key_and_without_the_bytes_of_media() {
    let watcher = Arc::new(Exchanges::default());
    let server = tasks(done(&json!({"film": "/v1/film"}))).await;
    let shown = watcher.clone();
    let stage = with_key(TASKS, &server, "sk-marked", |options| {
        options.servers.watcher = Some(shown);
    });
    let mut framed = request();
    framed.spec.inputs = frames(OWN, None);
    framed.references = vec![stage.reference("1", "image/png", &[7; 3_000])];
    stage.run_request(&framed, None).await.unwrap();
    let all = watcher.0.lock().unwrap().clone();
    let calls: Vec<String> = all
        .iter()
        .map(|one| format!("{} {}", one.method, one.url))
        .collect();
    assert_eq!(calls.len(), 4, "{calls:?}");
    assert!(calls[0].starts_with("POST http://127.0.0.1:"), "{calls:?}");
    assert!(
        all[0]
            .headers
            .contains(&("x-key".to_owned(), "***".to_owned()))
    );
    assert!(all[0].body.contains("data:image/png;base64,") && all[0].body.contains("characters)"));
    let answers: Vec<_> = all.iter().map(|one| one.answer.as_ref().unwrap()).collect();
    assert!(answers[0].body.contains("task_id") && answers[3].body.is_empty());
    assert!(!format!("{all:?}").contains("sk-marked"));
    assert_eq!(server.seen()[0].header("x-key"), Some("Token sk-marked"));
}

/// A charge is told for a task that ended.
#[tokio::test]
async fn a_failed_task_may_cost_as_well() {
    let end = json!({"code": 0, "data": {"state": 4, "ticks": "1500000"}});
    let server = tasks(end).await;
    let stage = stage(TASKS, &server);
    stage.run().await.unwrap_err();
    assert_eq!(charged(&stage).as_deref(), Some("1.50 USD"));
}
