//! The page of gateways: its configurations start a service and do what it says. The gateway itself is not ours to
//! test: in front, a test sends the form that it sends, and behind, another service answers as it would.

use kinora_test_e2e::{Block, Form, Server, Setup, blocks, studio};
use serde_json::json;

const PAGE: &str = "docs/gateways.md";

/// The blocks of the page in this language, in its order.
fn of_page<const N: usize>(language: &str) -> [String; N] {
    let own = blocks(PAGE).into_iter();
    let own = own.filter(|block: &Block| block.language == language);
    let texts: Vec<String> = own.map(|block| block.text).collect();
    texts.try_into().unwrap()
}

/// What LiteLLM makes of OpenAI's fields: all of them in a form, the picture as a file.
#[test]
fn a_gateway_in_front_sends_a_form_with_a_picture() {
    let [front, _, _] = of_page("toml");
    let [gateway] = of_page("yaml");
    let model = gateway
        .lines()
        .find_map(|line| line.trim().strip_prefix("model: openai/"));
    let server = Setup::default().config(&front).start();
    let client = server.client();
    let picture = studio::picture("day.png", (640, 480), "red");
    let form = Form::of([
        ("model", model.unwrap()),
        ("prompt", "A boat"),
        ("seconds", "2"),
        ("size", "854x480"),
    ])
    .part("; name=\"input_reference\"; filename=\"day.png\"", &picture);
    let submit = || {
        let request = client.request("POST", "/v1/videos").form(&form);
        request.header("idempotency-key", "order-17").send().video()
    };
    let video = submit();
    assert_eq!(submit().id(), video.id());
    client.wait_completed(video.id());
}

#[test]
fn a_gateway_behind_makes_what_its_models_allow() {
    let [_, behind, _] = of_page("toml");
    let gateway = Server::start();
    let config = behind
        .replace("http://127.0.0.1:4000", &gateway.base_url())
        .replace("model = \"sora-2\"", "model = \"kinora-a1\"")
        .replace("= 5000", "= 200");
    let server = Setup::default()
        .config(&config)
        .set("GATEWAY_KEY", gateway.data().key().unwrap())
        .start();
    let client = server.client();
    let mut body = json!({"model": "sora-2", "prompt": "A boat", "seconds": 4, "size": "720x1280"});
    let video = client.submit(&body);
    let video = client.wait_completed(video.id());
    assert_eq!(video.text("size"), "720x1280");
    body["seconds"] = json!(5);
    client
        .submit_json(&body)
        .refused_for(400, "invalid_value", Some("seconds"));
    let (_, counted) = gateway.client().get("/v1/videos").list();
    assert_eq!(counted.len(), 1);
}

#[test]
fn a_hosted_provider_stands_beside_an_engine_of_one_s_own() {
    let [_, _, alone] = of_page("toml");
    let server = Setup::default()
        .config(&alone)
        .set("OPENAI_API_KEY", "a-key-that-nobody-is-asked-for")
        .start();
    let models = server.client().get("/v1/models").ok();
    let models = models["data"].as_array().unwrap().iter();
    let ids: Vec<&str> = models.map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["sora-2", "kinora-a1"]);
}
