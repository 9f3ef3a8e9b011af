//! The operator's policy service: what it refuses is no task or no result, and nothing passes that it was not asked
//! about, whoever hurries, hangs or dies.

use std::sync::Mutex;
use std::thread;

use kinora_test_e2e::{Answer, Client, Host, Judge, Server, Setup, kinora, run, studio, until};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{assert_plays, reaching_from, square};

const NO: &str = "No paper boats here.";

fn under(judge: &Judge) -> Setup {
    on(Setup::default(), judge)
}

fn on(setup: Setup, judge: &Judge) -> Setup {
    setup.set("KINORA_POLICY_URL", judge.url())
}

/// Refuses prompts that say so, and lets all results pass.
fn by_words(question: &Value) -> Answer {
    let prompt = question["prompt"].as_str().unwrap_or_default();
    match prompt.contains("forbidden") {
        true => Answer::Refuse(NO.to_owned()),
        false => Answer::Allow,
    }
}

fn about(prompt: &str) -> Value {
    let mut body = square("kinora-a1");
    body["prompt"] = json!(prompt);
    body
}

fn has_no_tasks(client: &Client) {
    assert!(client.get("/v1/videos").list().1.is_empty());
}

#[test]
fn a_request_that_is_refused_is_no_task_and_the_reason_is_public() {
    let judge = Judge::start(by_words);
    let host = Host::start();
    let server = on(reaching_from(Setup::default()), &judge)
        .set("MARKED", "marked-secret-token")
        .set("KINORA_POLICY_TOKEN_VARIABLE", "MARKED")
        .start();
    let client = server.newcomer();
    let image = host.serve("a.png", studio::picture("a.png", (320, 256), "teal"));
    let mut body = about("A forbidden boat");
    body["first_frame"] = json!(image);
    body["metadata"] = json!({"user": "u1"});
    let refused = client
        .submit_json(&body)
        .refused_for(400, "content_policy", None);
    assert_eq!(refused["message"], NO);
    has_no_tasks(&client);
    // What is wrong with a request is told without a question.
    body["seconds"] = json!(99);
    client.submit_json(&body).refused(400, "invalid_value");
    let asked = judge.asked();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    for (name, expected) in [
        ("stage", json!("request")),
        ("model", json!("kinora-a1")),
        ("prompt", json!("A forbidden boat")),
        ("seconds", json!(2)),
        ("size", json!("480x480")),
        ("references", json!([image])),
        ("metadata", json!({"user": "u1"})),
        ("edit_task_id", Value::Null),
    ] {
        assert_eq!(asked[0][name], expected, "{name}");
    }
    assert!(
        asked[0]["project"]
            .as_str()
            .unwrap()
            .starts_with("newcomer-")
    );
    let bearer = Some("Bearer marked-secret-token".to_owned());
    assert_eq!(judge.tokens(), [bearer]);
    assert!(!server.log().contains("marked-secret"));
    assert_eq!(host.asked_for("a.png"), 0);
}

#[test]
fn edits_and_finals_are_asked_about_in_every_spelling() {
    let judge = Judge::start(by_words);
    let server = under(&judge).start();
    let client = server.newcomer();
    let mut body = about("A boat");
    body["draft"] = json!(true);
    let source = client.wait_completed(client.submit(&body).id());
    let id = source.id();
    let words = json!({"prompt": "A forbidden sea", "video": {"id": id}});
    let edit = json!({"model": "kinora-b1", "prompt": "A forbidden sea", "edit_task_id": id});
    let remix = json!({"prompt": "A forbidden sea"});
    for (path, body) in [
        ("/v1/videos".to_owned(), edit),
        ("/v1/videos/edits".to_owned(), words),
        (format!("/v1/videos/{id}/remix"), remix),
    ] {
        let reply = client.request("POST", &path).json(&body).send();
        assert_eq!(
            reply.refused(400, "content_policy")["message"],
            NO,
            "{path}"
        );
    }
    let final_of = json!({"model": "kinora-a1", "draft_task_id": id});
    client.wait_completed(client.submit(&final_of).id());
    let asked = judge.asked_at("request");
    assert_eq!(asked.len(), 5, "{asked:#?}");
    assert!(asked[1..4].iter().all(|one| one["edit_task_id"] == id));
    assert_eq!(
        (&asked[4]["prompt"], &asked[4]["draft_task_id"]),
        (&json!("A boat"), &json!(id))
    );
}

#[test]
fn a_refusal_is_not_remembered_and_does_not_revoke_an_accepted_task() {
    let verdicts = Mutex::new(vec![true, false, true, false]);
    let judge = Judge::start(move |question| match question["stage"] == "request" {
        true if verdicts.lock().unwrap().pop().unwrap() => Answer::Allow,
        true => Answer::Refuse(NO.to_owned()),
        false => Answer::Allow,
    });
    let server = under(&judge).start();
    let client = server.newcomer();
    let submit = || {
        let request = client
            .request("POST", "/v1/videos")
            .header("idempotency-key", "k");
        request.json(&about("A boat")).send()
    };
    submit().refused(400, "content_policy");
    let accepted = submit().video();
    let again = submit();
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.video().id(), accepted.id());
}

#[test]
fn a_result_that_is_refused_fails_its_task_and_leaves_no_file() {
    let seen = std::sync::Arc::new(Mutex::new(None));
    let seen_by_judge = seen.clone();
    let judge = Judge::start(move |question| {
        if question["stage"] != "result" {
            return Answer::Allow;
        }
        // The file is there for the service to look at, while it is asked.
        let file = std::fs::read(question["path"].as_str().unwrap()).unwrap();
        let sha256 = Sha256::digest(&file);
        let sha256: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        *seen_by_judge.lock().unwrap() = Some((file.len() as u64, sha256));
        Answer::Refuse(format!("{NO}\nSecond line."))
    });
    let server = under(&judge).start();
    let client = server.newcomer();
    let id = client.submit(&about("A boat")).id().to_owned();
    let failed = client.wait_for(&id, "failed");
    let reason = format!("{NO} Second line.");
    assert_eq!(failed["error"]["code"], "content_policy");
    assert_eq!(
        (&failed["error"]["message"], &failed["fail_reason"]),
        (&json!(reason), &json!(reason))
    );
    let asked = judge.asked_at("result");
    assert_eq!(asked.len(), 1, "{asked:#?}");
    assert_eq!(asked[0]["task_id"], *id);
    let (bytes, sha256) = seen.lock().unwrap().take().unwrap();
    assert_eq!(
        (asked[0]["bytes"].as_u64(), &asked[0]["sha256"]),
        (Some(bytes), &json!(sha256))
    );
    for (name, magic) in [("thumbnail", "UklGR"), ("spritesheet", "/9j/")] {
        assert!(
            asked[0][name].as_str().unwrap().starts_with(magic),
            "{name}"
        );
    }
    let data = server.data().clone();
    until("its files to be gone", || {
        let left = [data.files_of_tasks(), data.files("work/")].concat();
        left.iter()
            .all(|path| !path.to_string_lossy().contains(&id))
            .then_some(())
    });
}

#[test]
fn without_an_answer_no_request_passes_unless_the_operator_wants_it() {
    let elsewhere = Judge::start(|_| Answer::Allow);
    let redirect = format!("Location: {}\r\n", elsewhere.url());
    let answers = [
        Answer::Head(500, String::new()),
        Answer::Head(204, String::new()),
        Answer::Head(307, redirect.clone()),
        Answer::Head(302, redirect),
        Answer::Body("yes".to_owned()),
        Answer::Body(r#"{"allow": "true"}"#.to_owned()),
        Answer::Body(format!(
            r#"{{"allow": true, "more": "{}"}}"#,
            "x".repeat(70_000)
        )),
        Answer::Endless,
        Answer::Held,
    ];
    let count = answers.len();
    let left = Mutex::new([answers.to_vec(), answers.to_vec()].concat());
    let judge = Judge::start(move |question| match question["stage"] == "request" {
        true => left.lock().unwrap().remove(0),
        false => Answer::Allow,
    });
    let start = |on_timeout: &str| {
        let setup = under(&judge).set("KINORA_POLICY_TIMEOUT_SECONDS", 1);
        setup.set("KINORA_POLICY_ON_TIMEOUT", on_timeout).start()
    };
    let strict = start("refuse");
    let client = strict.newcomer();
    for _ in 0..count {
        let reply = client.submit_json(&about("A boat"));
        reply.refused(503, "policy_unavailable");
        assert_eq!(reply.number("retry-after"), Some(5));
    }
    has_no_tasks(&client);
    let lenient = start("allow");
    let client = lenient.newcomer();
    for _ in 0..count {
        client.submit(&about("A boat"));
    }
    let allowed = "policy service did not answer; allowed";
    until("each to be logged", || {
        (lenient.logged(&[allowed]) == count).then_some(())
    });
    assert!(elsewhere.asked().is_empty(), "a redirect was followed");
    // Nobody listens any more.
    drop(judge);
    let reply = strict.newcomer().submit_json(&about("A boat"));
    reply.refused(503, "policy_unavailable");
}

#[test]
fn a_result_is_asked_about_until_there_is_an_answer() {
    let failures = Mutex::new(2);
    let judge = Judge::start(move |question| {
        let mut failures = failures.lock().unwrap();
        match question["stage"] == "result" && *failures > 0 {
            true => {
                *failures -= 1;
                Answer::Head(503, String::new())
            }
            false => Answer::Allow,
        }
    });
    let server = under(&judge).start();
    let client = server.newcomer();
    let video = client.wait_completed(client.submit(&about("A boat")).id());
    assert_plays(&client, &video);
    assert_eq!(judge.asked_at("result").len(), 3);
}

#[test]
fn a_death_before_the_answer_asks_again_and_publishes_nothing_unasked() {
    let judge = Judge::start(|question| match question["stage"] == "result" {
        true => Answer::Held,
        false => Answer::Allow,
    });
    // Patient enough for any machine: the question is held while the service dies.
    let patient = |setup: Setup| on(setup, &judge).set("KINORA_POLICY_TIMEOUT_SECONDS", 60);
    let server = patient(Setup::default()).start();
    let data = server.data().clone();
    let id = server.client().submit(&about("A boat")).id().to_owned();
    until("the question", || (judge.held() == 1).then_some(()));
    assert!(data.files_of_tasks().is_empty(), "published unasked");
    server.kill();
    let server = patient(Setup::on(&data)).start();
    let client = server.client();
    until("the second question", || {
        (judge.asked_at("result").len() == 2).then_some(())
    });
    assert_eq!(client.video(&id).status(), "in_progress");
    assert!(data.files_of_tasks().is_empty(), "published unasked");
    judge.release();
    assert_plays(&client, &client.wait_completed(&id));
}

#[test]
fn a_cancel_does_not_wait_for_the_answer() {
    let judge = Judge::start(|question| match question["stage"] == "result" {
        true => Answer::Held,
        false => Answer::Allow,
    });
    let server = under(&judge)
        .set("KINORA_POLICY_TIMEOUT_SECONDS", 60)
        .start();
    let client = server.newcomer();
    let id = client.submit(&about("A boat")).id().to_owned();
    until("the question", || (judge.held() == 1).then_some(()));
    let reply = client.post(&format!("/v1/videos/{id}/cancel"));
    assert_eq!(reply.video()["error"]["code"], "cancelled");
    server.wait_for_log(&["run stopped"]);
    assert!(server.data().files_of_tasks().is_empty());
}

#[test]
fn p15_a_project_whose_questions_hang_delays_no_other_project_and_gets_past_nothing() {
    let judge = Judge::start(|question| match question["prompt"] == "Hang" {
        true => Answer::Held,
        false => Answer::Allow,
    });
    let server = under(&judge)
        .set("KINORA_POLICY_TIMEOUT_SECONDS", 60)
        .set("KINORA_POLICY_ON_TIMEOUT", "allow")
        .start();
    let (hostile, polite) = (server.newcomer(), server.newcomer());
    thread::scope(|scope| {
        let greedy: Vec<_> = (0..24)
            .map(|_| scope.spawn(|| hostile.submit_json(&about("Hang"))))
            .collect();
        until("its share", || (judge.held() == 8).then_some(()));
        // All of these are answered although none of those is.
        for _ in 0..10 {
            polite.submit(&about("A boat"));
        }
        // Without a turn a request does not pass, whatever happens to one without an answer.
        let waited = |reply: &kinora_test_e2e::Reply| reply.status == 429;
        until("the others to be sent away", || {
            (greedy.iter().filter(|one| one.is_finished()).count() == 16).then_some(())
        });
        assert_eq!(judge.held(), 8);
        judge.release();
        let replies: Vec<_> = greedy.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(replies.iter().filter(|reply| waited(reply)).count(), 16);
        for reply in replies.iter().filter(|reply| waited(reply)) {
            reply.refused(429, "rate_limit_exceeded");
        }
    });
    assert_eq!(hostile.get("/v1/videos").list().1.len(), 8);
}

fn doctor(server: &Server, url: &str) -> String {
    let mut command = kinora();
    command.args(["doctor", "--data"]).arg(server.data().path());
    command.env("KINORA_POLICY_URL", url);
    let report = run(command).stdout;
    let line = report
        .lines()
        .find(|line| line[4..].trim_start().starts_with("policy "));
    line.unwrap_or_else(|| panic!("{report}")).to_owned()
}

#[test]
fn the_doctor_asks_the_service_and_metrics_count_its_answers() {
    let judge = Judge::start(by_words);
    let server = under(&judge)
        .set("KINORA_METRICS_LISTEN", "127.0.0.1:0")
        .start();
    assert!(doctor(&server, &judge.url()).starts_with("ok "));
    assert_eq!(judge.asked(), [json!({"stage": "check"})]);
    let client = server.newcomer();
    client
        .submit_json(&about("forbidden"))
        .refused(400, "content_policy");
    client.wait_completed(client.submit(&about("A boat")).id());
    let metrics = crate::metrics::scraped(&server);
    for (stage, answer) in [
        ("request", "refused"),
        ("request", "allowed"),
        ("result", "allowed"),
    ] {
        let series =
            format!("kinora_policy_answers_total{{stage=\"{stage}\",answer=\"{answer}\"}}");
        assert_eq!(
            crate::metrics::value(&metrics, &series),
            Some(1.0),
            "{metrics}"
        );
    }
    let url = judge.url();
    drop(judge);
    let bad = doctor(&server, &url);
    assert!(bad.starts_with("BAD"), "{bad}");
}
