//! The contract's table of refused requests, sent over HTTP by JSON and by form: the exact code
//! and param, and nothing stored.

use kinora_test_e2e::{Client, Form, Reply};
use serde_json::{Value, json};

use crate::cases::{ACCEPTED, Case, Expected, REFUSALS, load};
use crate::support::{busy, shared};
use kinora_test_e2e::routes::NO_TASK;

/// Which column of the tables holds here; `GET /v1/models` says it.
fn expected(case: &Case, serves_all: bool) -> Option<Expected> {
    if serves_all {
        case.full()
    } else {
        case.text_only()
    }
}

/// Whether references are taken, or text only: the tables know these two deployments.
fn serves_all(client: &Client) -> bool {
    let models = client.get("/v1/models").ok();
    let flag = |name: &str| {
        let served = |card: &Value| card["capabilities"][name] == true;
        models["data"].as_array().unwrap().iter().any(served)
    };
    let some = [
        "first_frame",
        "last_frame",
        "auto_duration",
        "draft",
        "edit",
    ]
    .map(flag);
    assert!(
        some.iter().all(|one| *one == some[0]),
        "the tables need a further column"
    );
    some[0]
}

fn by_json(client: &Client, case: &Case) -> Option<Reply> {
    let body = case.json.clone()?;
    let request = client.request("POST", "/v1/videos");
    Some(request.body("application/json", body).send())
}

fn by_form(client: &Client, case: &Case) -> Option<Reply> {
    let parts = case.parts.as_ref()?;
    let form = Form::of(parts.iter().map(|(name, text)| (&**name, &**text)));
    Some(client.submit_form(&form))
}

#[test]
fn every_refused_request_is_refused_over_http_and_leaves_nothing() {
    let client = shared().newcomer();
    let serves_all = serves_all(&client);
    let (mut jsons, mut forms, mut wrong) = (0, 0, Vec::new());
    for case in load(REFUSALS) {
        let expected = expected(&case, serves_all).unwrap();
        let mut judge = |reply: &Reply, way: &str| {
            let error = reply.assert_envelope();
            let found = Expected {
                code: error["code"].as_str().unwrap().to_owned(),
                param: error["param"].as_str().map(str::to_owned),
            };
            if (reply.status, &found) != (400, &expected) {
                wrong.push(format!("{} ({way}): {} {found:?}", case.name, reply.status));
            }
        };
        if let Some(reply) = by_json(&client, &case) {
            judge(&reply, "json");
            jsons += 1;
        }
        if let Some(reply) = by_form(&client, &case) {
            judge(&reply, "form");
            forms += 1;
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(
        jsons >= 120 && forms >= 120,
        "{jsons} by JSON, {forms} by form"
    );
    assert!(client.get("/v1/videos").list().1.is_empty());
}

#[test]
fn every_request_at_a_limit_is_accepted_over_http() {
    let (server, _) = busy();
    let client = server.newcomer();
    let serves_all = serves_all(&client);
    let mut accepted = 0;
    for case in load(ACCEPTED) {
        // Finals and edits need an earlier task, which the table's do not have.
        let lineage = case.column("intent").is_some_and(|intent| intent != "new");
        // And no file has the id of the table's.
        let names_a_file = case.name.contains("file id");
        if lineage || names_a_file || expected(&case, serves_all).is_some() {
            continue;
        }
        for reply in [by_json(&client, &case), by_form(&client, &case)]
            .into_iter()
            .flatten()
        {
            let video = reply.video();
            // Where failing stores had it repeated, its references may have been looked for meanwhile.
            if reply.header("idempotent-replayed").is_none() {
                assert_eq!(video.status(), "queued", "{}", case.name);
            }
            client.delete(&format!("/v1/videos/{}", video.id())).ok();
            accepted += 1;
        }
    }
    assert!(accepted >= 60, "only {accepted}");
}

#[test]
fn openai_s_other_operations_are_refused_as_unsupported() {
    let client = shared().newcomer();
    for path in ["/v1/videos/extensions", "/v1/videos/characters"] {
        client.post(path).refused(400, "unsupported_operation");
        let body = json!({"prompt": "x", "video": {"id": NO_TASK}});
        let reply = client.request("POST", path).json(&body).send();
        reply.refused(400, "unsupported_operation");
    }
}
