//! Webhooks: the end of a task is told to the receivers of its project, signed so that the official SDK believes it,
//! at least once, whatever dies meanwhile, and to nobody else.

use std::collections::BTreeSet;
use std::process::Command;

use kinora_contract::webhook::pause_ms;
use kinora_test_e2e::{
    DataFolder, Hold, Posted, Receiver, Server, Setup, WallClock, keys, run, until, webhooks,
    workspace,
};
use serde_json::{Value, json};

use crate::support::{narrow_on, quick, reaching_from, slow};

/// A service that posts to this machine as well.
pub(crate) fn serve(data: &DataFolder) -> Setup {
    reaching_from(Setup::on(data))
}

/// Adds a webhook; returns its id and its secret.
pub(crate) fn add(data: &DataFolder, more: &[&str]) -> (String, String) {
    let known = list(data);
    let secret = webhooks(data, &[&["add"], more].concat()).ok();
    let secret = secret.trim().to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    let is_new = |one: &&Value| !known.contains(one);
    let now = list(data);
    let id = now.iter().find(is_new).unwrap()["id"].as_str();
    (id.unwrap().to_owned(), secret)
}

fn json_of(data: &DataFolder, arguments: &[&str]) -> Vec<Value> {
    let printed = webhooks(data, &[arguments, &["--json"]].concat()).ok();
    assert!(!printed.contains("whsec_"), "a secret is shown once");
    serde_json::from_str(&printed).unwrap()
}

pub(crate) fn list(data: &DataFolder) -> Vec<Value> {
    json_of(data, &["list"])
}

pub(crate) fn log(data: &DataFolder, id: &str) -> Vec<Value> {
    json_of(data, &["deliveries", id])
}

/// Waits until the newest delivery to a webhook is so.
pub(crate) fn wait_logged(data: &DataFolder, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until("a delivery in the log", || {
        let newest = log(data, id).into_iter().next()?;
        is_so(&newest).then_some(newest)
    })
}

/// Submits a task that takes long, and cancels it: it ends at once.
pub(crate) fn end(server: &Server, body: &Value) -> String {
    let client = server.client();
    let video = client.submit(body);
    let cancelled = client.post(&format!("/v1/videos/{}/cancel", video.id()));
    assert_eq!(cancelled.status, 200, "{}", cancelled.shown());
    video.id().to_owned()
}

/// Whether the OpenAI SDK and the Standard Webhooks library believe it.
pub(crate) fn verifies(posted: &Posted, secret: &str) -> bool {
    let python = workspace().join(".venv/bin/python");
    assert!(python.exists(), "./test installs the SDK");
    let mut command = Command::new(python);
    command
        .arg(workspace().join("crates/test-e2e/python/webhook.py"))
        .env("SECRET", secret)
        .env("HEADERS", json!(posted.headers).to_string())
        .env("BODY", &posted.body)
        .env_remove("OPENAI_API_KEY");
    let done = run(command);
    let passed = done.status.success() && done.stdout == "all passed\n";
    assert!(
        passed || done.stderr.contains("VerificationError") || done.stderr.contains("Signature"),
        "{}",
        done.stderr
    );
    passed
}

#[test]
fn what_a_task_has_cost_is_told() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let priced = "[[models]]\ncard = \"kinora-b1\"\nid = \"kinora-b1\"\nengine = \"storyboard\"\n\
                  [models.prices]\nper_clip = 0.25\n";
    let server = serve(&data).config(priced).start();
    add(&data, &["--url", &receiver.url("hook")]);
    let client = server.client();
    let made = client.submit(&quick("kinora-b1"));
    let made = client.wait_completed(made.id());
    let told = receiver.wait_for(1)[0].event();
    let cost = json!({"amount": 0.25, "currency": "USD", "estimated": false});
    assert_eq!((&told["data"]["cost"], &made["cost"]), (&cost, &cost));
}

#[test]
fn the_end_of_a_task_is_told_signed_as_the_openai_sdk_verifies_it() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let server = serve(&data).start();
    let (_, own) = add(&data, &["--url", &receiver.url("hook?shop=1")]);
    let (_, of_callbacks) = add(&data, &[]);
    add(
        &data,
        &["--url", &receiver.url("other"), "--project", "other"],
    );
    let mut body = quick("kinora-b1");
    body["callback_url"] = json!(receiver.url("callback"));
    let client = server.client();
    let made = client.submit(&body);
    let made = client.wait_completed(made.id());
    let mut posted = receiver.wait_for(2);
    posted.sort_by(|one, other| one.line.cmp(&other.line));
    for (one, (line, secret)) in posted.iter().zip([
        ("POST /callback", &of_callbacks),
        ("POST /hook?shop=1", &own),
    ]) {
        assert_eq!(one.line, line);
        assert_eq!(one.header("content-type"), "application/json");
        let event = one.event();
        assert_eq!(event["type"], "video.completed");
        assert_eq!(event["data"]["id"], made.id());
        assert_eq!(event["data"]["status"], "completed");
        assert_eq!(event["data"]["result_url"], made["result_url"]);
        assert_eq!(event["created_at"], made["completed_at"]);
        assert!(verifies(one, secret), "{one:#?}");
    }
    assert!(!verifies(&posted[0], &own), "another's secret");
    assert_eq!(
        posted[0].header("webhook-id"),
        posted[1].header("webhook-id")
    );
    let failed = end(&server, &slow());
    let event = receiver.wait_for(3)[2].event();
    assert_eq!(event["type"], "video.failed");
    assert_eq!(event["data"]["id"], json!(failed));
    assert_eq!(event["data"]["error"]["code"], "cancelled");
    assert_eq!(receiver.posted().len(), 3, "another project hears nothing");
}

#[test]
fn an_event_outlives_a_kill_before_and_after_its_delivery() {
    for (point, times) in [("api.before_delivery", 1), ("api.delivered", 2)] {
        let (data, receiver) = (DataFolder::default(), Receiver::start());
        let server = serve(&data).set("CRASH_AT", format!("{point}:1")).start();
        let (id, _) = add(&data, &["--url", &receiver.url("hook")]);
        let task = end(&server, &slow());
        server.wait();
        assert_eq!(receiver.posted().len(), times - 1, "{point}");
        let server = serve(&data).start();
        let posted = receiver.wait_for(times);
        let ids: Vec<&str> = posted.iter().map(|one| one.header("webhook-id")).collect();
        assert!(ids.iter().all(|one| *one == ids[0]), "{ids:?}");
        assert_eq!(posted[times - 1].event()["data"]["id"], json!(task));
        let settled = wait_logged(&data, &id, |one| one["state"] == "delivered");
        assert_eq!(settled["status"], 200);
        drop(server);
    }
}

#[test]
fn a_receiver_that_is_away_for_an_hour_gets_its_event() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let clock = WallClock::ahead_by(0);
    let server = clock.start(serve(&data));
    let (id, _) = add(&data, &["--url", &receiver.url("hook")]);
    receiver.answer(503);
    end(&server, &slow());
    let first = wait_logged(&data, &id, |one| {
        one["state"] == "pending" && one["last_at"].is_u64()
    });
    assert_eq!(
        (&first["status"], &first["error"]),
        (&json!(503), &Value::Null)
    );
    clock.jump_to(3600);
    let an_hour_later = first["last_at"].as_u64().unwrap() + 3600;
    wait_logged(&data, &id, |one| {
        one["last_at"].as_u64() >= Some(an_hour_later)
    });
    receiver.answer(204);
    clock.jump_to(7200);
    let last = wait_logged(&data, &id, |one| one["state"] == "delivered");
    let posted = receiver.posted();
    // One more where the second came before the clock was put on.
    assert!((3..=4).contains(&posted.len()), "{posted:#?}");
    assert_eq!(last["attempts"], posted.len());
    let at = |one: &Posted| one.header("webhook-timestamp").parse::<u64>().unwrap();
    assert!(
        at(posted.last().unwrap()) >= at(&posted[0]) + 3600,
        "signed at the time of each attempt"
    );
    assert!(
        posted
            .iter()
            .all(|one| one.header("webhook-id") == posted[0].header("webhook-id"))
    );
}

#[test]
fn a_receiver_at_a_private_address_gets_no_packet() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let server = Setup::on(&data).start();
    let (id, _) = add(&data, &["--url", &receiver.url("hook")]);
    let (of_callbacks, _) = add(&data, &[]);
    let tested = webhooks(&data, &["test", &id]);
    assert!(!tested.status.success(), "{}", tested.stdout);
    assert!(tested.stderr.contains("not allowed"), "{}", tested.stderr);
    let mut body = slow();
    body["callback_url"] = json!(receiver.url("callback"));
    end(&server, &body);
    let tried = wait_logged(&data, &of_callbacks, |one| one["error"].is_string());
    assert_eq!(
        (&tried["state"], &tried["status"]),
        (&json!("pending"), &Value::Null)
    );
    assert_eq!(receiver.connections(), 0);
}

#[test]
fn a_callback_url_that_cannot_be_used_is_refused_at_once() {
    let data = DataFolder::default();
    let server = Setup::on(&data).start();
    let refused = |url: &str| {
        let mut body = slow();
        body["callback_url"] = json!(url);
        let reply = server.client().submit_json(&body);
        assert_eq!(reply.status, 400, "{}", reply.shown());
        let error: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(error["error"]["param"], "callback_url");
        error["error"]["code"].as_str().unwrap().to_owned()
    };
    let good = "https://example.com/callback";
    assert_eq!(
        refused(good),
        "unsupported_parameter",
        "nobody could verify it"
    );
    add(&data, &["--project", "another"]);
    assert_eq!(refused(good), "unsupported_parameter");
    add(&data, &[]);
    for bad in [
        "ftp://example.com/",
        "https://a:b@example.com/",
        "http://example.com:25/",
        "x",
    ] {
        assert_eq!(refused(bad), "invalid_url", "{bad}");
    }
    let mut body = slow();
    body["callback_url"] = json!(good);
    server.client().submit(&body);
    let twin = webhooks(&data, &["add"]);
    assert!(twin.stderr.contains("already"), "{}", twin.stderr);
}

#[test]
fn a_receiver_that_hangs_holds_up_no_other_project() {
    let (data, hanging, polite) = (DataFolder::default(), Receiver::start(), Receiver::start());
    let server = serve(&data).start();
    hanging.hang();
    add(&data, &["--url", &hanging.url("hook")]);
    add(
        &data,
        &["--url", &polite.url("hook"), "--project", "polite"],
    );
    let create = ["create", "--name", "polite", "--project", "polite"];
    let key = keys(&data, &create).ok().trim().to_owned();
    for _ in 0..12 {
        end(&server, &slow());
    }
    hanging.wait_for(4);
    let client = server.client_with(&key);
    let video = client.submit(&slow());
    client.post(&format!("/v1/videos/{}/cancel", video.id()));
    let posted = polite.wait_for(1);
    assert_eq!(posted[0].event()["data"]["id"], video.id());
    assert!(hanging.connections() < 12, "after all that hang");
    assert!(hanging.open_max() <= 4, "{}", hanging.open_max());
}

/// The receiver that fails is a third party: many events do not become many posts to it.
#[test]
fn p08_a_receiver_that_keeps_failing_gets_a_probe_until_it_is_back() {
    const EVENTS: usize = 60;
    let (data, failing, polite) = (DataFolder::default(), Receiver::start(), Receiver::start());
    let server = serve(&data).start();
    failing.answer(500);
    let (id, _) = add(&data, &["--url", &failing.url("hook")]);
    add(&data, &["--url", &polite.url("hook")]);
    for _ in 0..EVENTS {
        end(&server, &slow());
    }
    polite.wait_for(EVENTS);
    let refused = failing.posted().len();
    assert!((5..EVENTS / 2).contains(&refused), "{refused} posts");
    let waits = log(&data, &id);
    let untried = waits.iter().filter(|one| one["attempts"] == 0).count();
    assert!(untried > 0, "those that wait lose no attempt: {waits:#?}");
    failing.answer(200);
    until("everything that waited", || {
        let posted = failing.posted();
        let ids: BTreeSet<&str> = posted[refused..]
            .iter()
            .map(|one| one.header("webhook-id"))
            .collect();
        (ids.len() >= EVENTS).then_some(())
    });
}

#[test]
fn a_redirect_is_not_followed_and_a_receiver_that_is_gone_gets_nothing_more() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let server = serve(&data).start();
    let (id, _) = add(&data, &["--url", &receiver.url("hook")]);
    receiver.answer(302);
    end(&server, &slow());
    let tried = wait_logged(&data, &id, |one| one["status"] == 302);
    assert_eq!(tried["state"], "pending");
    let number = |name: &str| tried[name].as_u64().unwrap();
    let next_s = number("next_at") - number("last_at");
    let pause_s = pause_ms(number("attempts").try_into().unwrap()).unwrap() / 1_000;
    assert!(next_s.abs_diff(pause_s) <= 1, "{tried:#}");
    receiver.answer(410);
    end(&server, &slow());
    until("the webhook to be disabled", || {
        (list(&data)[0]["state"] == "disabled").then_some(())
    });
    assert!(log(&data, &id).iter().all(|one| one["state"] == "failed"));
    let before = receiver.posted().len();
    end(&server, &slow());
    assert!(!webhooks(&data, &["test", &id]).status.success());
    assert_eq!(receiver.posted().len(), before);
    assert!(receiver.posted().iter().all(|one| one.line == "POST /hook"));
}

#[test]
fn a_replaced_secret_signs_beside_the_new_one() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let _server = serve(&data).start();
    let (id, old) = add(&data, &["--url", &receiver.url("hook")]);
    let new = webhooks(&data, &["rotate", &id]).ok().trim().to_owned();
    assert!(list(&data)[0]["old_secret_until"].is_u64());
    let tested = webhooks(&data, &["test", &id]).ok();
    assert!(tested.contains("answered 200"), "{tested}");
    let posted = &receiver.posted()[0];
    assert_eq!(posted.event()["type"], "webhook.test");
    assert_eq!(posted.header("webhook-signature").split(' ').count(), 2);
    assert!(verifies(posted, &old) && verifies(posted, &new));
    let number = log(&data, &id)[0]["number"].to_string();
    webhooks(&data, &["redeliver", &number]).ok();
    let again = &receiver.wait_for(2)[1];
    assert_eq!(again.header("webhook-id"), posted.header("webhook-id"));
    webhooks(&data, &["remove", &id]).ok();
    assert!(list(&data).is_empty());
    assert!(!webhooks(&data, &["deliveries", &id]).status.success());
}

/// It is told once the task has ended, and never before: also where the two are far apart.
#[test]
fn a_callback_waits_for_the_end_of_its_task_over_a_restart() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let hold = Hold::at("worker.claimed", 1);
    let server = hold.over(reaching_from(narrow_on(&data))).start();
    let (id, _) = add(&data, &[]);
    let mut body = quick("kinora-b1");
    body["callback_url"] = json!(receiver.url("callback"));
    let video = server.client().submit(&body);
    hold.wait();
    assert_eq!(log(&data, &id)[0]["state"], "waiting");
    server.kill();
    let server = serve(&data).start();
    server.client().wait_completed(video.id());
    let posted = receiver.wait_for(1);
    assert_eq!(posted[0].event()["data"]["id"], video.id());
}
