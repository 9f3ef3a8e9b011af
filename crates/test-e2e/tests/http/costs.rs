//! Costs and budgets: what a model costs is shown before and after, a key spends no more than its budget, and a video that
//! was not made costs nothing.

use kinora_test_e2e::{Client, Server, keys};
use serde_json::{Value, json};

use crate::support::{cancel, quick, slow};

const PRICED: &str = r#"
[money]
currency = "EUR"
project_budget_per_day = 100.0
[[money.projects]]
name = "poor"
budget_per_month = 0.1

[[models]]
card = "kinora-a1"
id = "kinora-a1"
engine = "storyboard"
[models.prices]
per_second = { "480p" = 0.05, "720p" = 0.1, "1080p" = 0.2 }
per_clip = 0.02
per_input_image = 0.005

[[models]]
card = "kinora-b1"
id = "kinora-b1"
engine = "storyboard"
"#;

fn server() -> Server {
    crate::setup().config(PRICED).start()
}

fn create(server: &Server, name: &str, more: &[&str]) -> Client {
    let create = ["create", "--name", name, "--project", name];
    let printed = keys(server.data(), &[&create, more].concat()).ok();
    server.client_with(printed.trim_end())
}

fn euros(amount: f64, estimated: bool) -> Value {
    json!({"amount": amount, "currency": "EUR", "estimated": estimated})
}

#[test]
fn a_cost_is_shown_before_and_after_everywhere() {
    let server = server();
    let client = create(&server, "shop", &[]);
    let model = |id: &str| client.get(&format!("/v1/models/{id}")).ok();
    let expected = json!({
        "currency": "EUR", "per_second": {"480p": 0.05, "720p": 0.1, "1080p": 0.2},
        "per_clip": 0.02, "per_input_image": 0.005,
    });
    assert_eq!(model("kinora-a1")["prices"], expected);
    assert_eq!(model("kinora-b1").get("prices"), None);

    let video = client.submit(&quick("kinora-a1"));
    assert_eq!(video["cost"], euros(0.12, true));
    let video = client.wait_completed(video.id());
    assert_eq!(video["cost"], euros(0.12, false));
    let (_, listed) = client.get("/v1/videos").list();
    assert_eq!(listed[0]["cost"], video["cost"]);
    let free = client.submit(&quick("kinora-b1"));
    assert_eq!(free.get("cost"), None);

    let long = client.submit(&slow());
    assert_eq!(long["cost"], euros(0.77, true));
    cancel(&client, long.id());
    assert_eq!(client.video(long.id())["cost"], euros(0.0, false));

    let usage = client.get("/v1/usage").ok();
    assert_eq!(usage["currency"], "EUR");
    let cost = |row: &Value| row["cost"].as_f64().unwrap();
    let sum: f64 = usage["data"].as_array().unwrap().iter().map(cost).sum();
    assert!((sum - 0.12).abs() < 1e-9, "{usage:#}");
    let project = &usage["budgets"]["project"];
    assert_eq!(
        (&project["per_day"], &project["spent_today"]),
        (&json!(100.0), &json!(0.12))
    );
    assert_eq!(usage["budgets"]["key"]["per_day"], Value::Null);
    client
        .get("/v1/usage?since=2026-11-02&until=2026-11-01")
        .refused_for(400, "invalid_value", Some("since"));
    client
        .get("/v1/usage?day=1")
        .refused_for(400, "unknown_parameter", Some("day"));
    // Another project sees nothing of it.
    let other = create(&server, "lab", &[]).get("/v1/usage").ok();
    assert_eq!(other["data"], json!([]));
    assert_eq!(other["budgets"]["project"]["spent_today"], 0.0);
}

#[test]
fn p12_a_key_spends_its_budget_and_no_more() {
    let server = server();
    let client = create(&server, "shop", &["--budget-per-day", "1"]);
    let long = client.submit(&slow());
    let keyed = || {
        let submit = client
            .request("POST", "/v1/videos")
            .json(&quick("kinora-a1"));
        submit.header("idempotency-key", "one").send()
    };
    let first = keyed().video();
    // 0.11 are left, and a clip costs 0.12.
    let refused = client.submit_json(&quick("kinora-a1"));
    let error = refused.refused(429, "budget_exceeded");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("0.11 EUR left"), "{message}");
    assert!(message.contains("T00:00:00Z"), "{message}");
    let wait = refused.number("retry-after").unwrap();
    assert!((1..=86_400 + 11).contains(&wait), "{wait}");
    // What was accepted is answered as before, and another key of the project goes on.
    assert_eq!(keyed().video().id(), first.id());
    let other = keys(
        server.data(),
        &["create", "--name", "b", "--project", "shop"],
    )
    .ok();
    server
        .client_with(other.trim_end())
        .submit(&quick("kinora-a1"));
    // A model without prices needs no budget.
    client.submit(&quick("kinora-b1"));
    cancel(&client, long.id());
    client.submit(&quick("kinora-a1"));

    let mut dear = slow();
    dear["resolution"] = json!("1080p");
    let error = client.submit_json(&dear).refused(403, "budget_too_small");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("3.02 EUR") && message.contains("1.00 EUR per day"),
        "{message}"
    );
    let poor = create(&server, "poor", &[]);
    let error = poor
        .submit_json(&quick("kinora-a1"))
        .refused(403, "budget_too_small");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("this project is 0.10 EUR per month")
    );
}
