//! Models of an operator's own: a card in the configuration with sizes, lengths and features that no built-in
//! card has is served, shown, documented and made by the real binary; what it lacks is refused.

use kinora_test_e2e::{Client, DataFolder, Host, Server, Setup, media, studio};
use serde_json::{Value, json};

use crate::support::{Download, quick, reaching_from};

/// A third model beside the two built-in ones, one that leaves out nearly everything, and one of sizes that are
/// all its own with a draft.
const MODELS: &str = r#"
[[models]]
card = "kinora-a1"
id = "kinora-a1"
engine = "storyboard"

[[models]]
card = "kinora-b1"
id = "kinora-b1"
engine = "storyboard"

[[models]]
id = "house-1"
aliases = ["house"]
engine = "storyboard"
sizes = ["1152x640", "640x1152", "512x512"]
seconds = [2, 3, 7]
seconds_default = 3
[models.features]
text_to_video = true
first_frame = true
audio_output = true

[[models]]
id = "plain"
engine = "storyboard"

[[models]]
id = "upright"
engine = "storyboard"
sizes = ["640x1152", "256x256"]
seconds = [2]
[models.features]
text_to_video = true
draft = true
"#;

fn server() -> Server {
    reaching_from(Setup::default()).config(MODELS).start()
}

fn body(model: &str, more: Value) -> Value {
    let mut body = json!({"model": model, "prompt": "A kite over a beach", "seed": 3});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body
}

/// Makes a video, and asserts that the file is what was asked for.
fn assert_made(client: &Client, body: &Value, size: (u64, u64), seconds: u64) -> String {
    let video = client.submit(body);
    let video = client.wait_completed(video.id());
    assert_eq!(video.text("seconds"), seconds.to_string());
    let file = Download::of(client, &video.content());
    let probe = media::probe(&file.path());
    assert_eq!(probe.video["width"], size.0, "{body}");
    assert_eq!(probe.video["height"], size.1, "{body}");
    assert_eq!(probe.video["nb_read_frames"], (seconds * 24).to_string());
    assert_eq!(video["duration"], seconds as f64);
    video.id().to_owned()
}

#[test]
fn a_model_with_sizes_and_lengths_of_its_own_is_served() {
    let server = server();
    let client = server.client();
    let host = Host::start();
    let first = host.serve("teal.png", studio::picture("teal.png", (640, 360), "teal"));
    // What is not asked for is the card's: its first size, its default length.
    assert_made(&client, &body("house-1", json!({})), (1152, 640), 3);
    let longest = json!({"size": "1152x640", "seconds": 7});
    assert_made(&client, &body("house", longest), (1152, 640), 7);
    let tall = json!({"size": "640x1152", "seconds": "2", "first_frame": first});
    assert_made(&client, &body("house-1", tall), (640, 1152), 2);
    // The smallest frame that any card may have.
    assert_made(
        &client,
        &body("upright", json!({"size": "256x256"})),
        (256, 256),
        2,
    );

    let shown = client.get("/v1/models/house-1").ok();
    let can = &shown["capabilities"];
    assert_eq!(shown["aliases"], json!(["house"]));
    assert_eq!(can["sizes"], json!(["1152x640", "640x1152", "512x512"]));
    assert_eq!(can["seconds"], json!([2, 3, 7]));
    let bounds = [
        &can["seconds_min"],
        &can["seconds_max"],
        &can["seconds_default"],
    ];
    assert_eq!(bounds.map(Value::as_u64), [Some(2), Some(7), Some(3)]);
    assert_eq!(
        (&can["first_frame"], &can["edit"]),
        (&json!(true), &json!(false))
    );
    let usual = client.get("/v1/models/kinora-a1").ok();
    assert_eq!(usual["capabilities"].get("seconds"), None);
    // What a record leaves out is what its engine can do.
    let plain = client.get("/v1/models/plain").ok();
    assert_eq!(plain["capabilities"]["edit"], true);
    assert_eq!(
        plain["capabilities"]["sizes"],
        usual["capabilities"]["sizes"]
    );
    let document = client.get("/openapi.json").ok();
    let fields = &document["components"]["schemas"]["SubmitRequest"]["properties"];
    for (field, value) in [("model", "house"), ("size", "1152x640")] {
        let known = fields[field]["enum"].as_array().unwrap();
        assert!(known.contains(&json!(value)), "{value}: {known:?}");
    }
}

#[test]
fn a_draft_of_a_size_of_its_own_is_small_and_its_final_has_the_size() {
    let server = server();
    let client = server.client();
    let draft = body("upright", json!({"draft": true}));
    let draft = assert_made(&client, &draft, (480, 864), 2);
    let last = json!({"model": "upright", "draft_task_id": draft});
    assert_made(&client, &last, (640, 1152), 2);
}

#[test]
fn what_a_card_of_its_own_lacks_is_refused() {
    let server = server();
    let client = server.client();
    let url = "https://example.com/a.png";
    for (more, code, param) in [
        (json!({"size": "1280x720"}), "invalid_value", "size"),
        (json!({"seconds": 5}), "invalid_value", "seconds"),
        (json!({"seconds": 8}), "invalid_value", "seconds"),
        (json!({"seconds": "auto"}), "unsupported_value", "seconds"),
        (
            json!({"resolution": "720p"}),
            "unsupported_value",
            "resolution",
        ),
        (
            json!({"aspect_ratio": "16:9"}),
            "unsupported_value",
            "aspect_ratio",
        ),
        (
            json!({"aspect_ratio": "adaptive", "first_frame": url}),
            "unsupported_value",
            "aspect_ratio",
        ),
        (
            json!({"last_frame": url}),
            "unsupported_parameter",
            "last_frame",
        ),
        (
            json!({"reference_images": [url]}),
            "unsupported_parameter",
            "reference_images",
        ),
        (
            json!({"negative_prompt": "fog"}),
            "unsupported_parameter",
            "negative_prompt",
        ),
        (json!({"draft": true}), "unsupported_parameter", "draft"),
    ] {
        let reply = client.submit_json(&body("house-1", more));
        let error = reply.refused_for(400, code, Some(param));
        if param == "seconds" && code == "invalid_value" {
            assert_eq!(error["message"], "'seconds' must be one of 2, 3, 7.");
        }
    }
    assert!(client.get("/v1/videos").list().1.is_empty());
    // The others are as they were.
    client.submit(&quick("kinora-a1"));
}

#[test]
fn a_card_that_contradicts_itself_or_its_engine_stops_the_start() {
    for (more, named) in [
        (
            "id = \"plain\"\nengine = \"storyboard\"",
            "\"plain\" is used twice",
        ),
        (
            "id = \"x\"\naliases = [\"house\"]\nengine = \"storyboard\"",
            "\"house\" is used twice",
        ),
        (
            "id = \"x\"\nengine = \"steam\"",
            "There is no engine 'steam'",
        ),
        (
            "id = \"x\"\nengine = \"storyboard\"\nsizes = [\"4096x2160\"]",
            "The model 'x': the size 4096x2160 cannot be served",
        ),
        (
            "id = \"x\"\nengine = \"storyboard\"\nfeatures = { text_to_video = true, reference_images_max = 10 }",
            "its engine 'storyboard' cannot do what the features say: reference_images_max",
        ),
    ] {
        let config = format!("{MODELS}\n[[models]]\n{more}\n");
        let started = Setup::on(&DataFolder::default())
            .config(&config)
            .try_start();
        let Err(finished) = started else {
            panic!("{more}: it started");
        };
        assert!(
            finished.stderr.contains(named),
            "{more}: {}",
            finished.stderr
        );
    }
}
