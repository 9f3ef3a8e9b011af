//! The OpenAPI document: what is served is what `docs/openapi.json` says, and it names every
//! route with its refusals. `KINORA_UPDATE_DOCS=1` writes the file anew.

use std::collections::BTreeSet;

use kinora_test_e2e::{DataFolder, Receiver};
use serde_json::{Value, json};

use crate::support::{shared, slow, square};
use crate::webhooks::{add, end, serve};

fn document() -> Value {
    shared().anonymous().get("/openapi.json").ok()
}

#[test]
fn the_document_describes_the_events_that_are_posted() {
    let (data, receiver) = (DataFolder::default(), Receiver::start());
    let server = serve(&data).start();
    add(&data, &["--url", &receiver.url("hook")]);
    let client = server.client();
    let made = client.submit(&square("kinora-a1"));
    client.wait_completed(made.id());
    receiver.wait_for(1);
    end(&server, &slow());
    let document = document();
    let fields = |schema: &Value| -> BTreeSet<String> {
        schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    let video = fields(&document["components"]["schemas"]["Video"]);
    let kinds: Vec<String> = receiver
        .wait_for(2)
        .iter()
        .map(|posted| {
            let event = posted.event();
            let kind = event["type"].as_str().unwrap();
            let described = &document["webhooks"][kind]["post"];
            for header in described["parameters"].as_array().unwrap() {
                posted.header(header["name"].as_str().unwrap());
            }
            let body = &described["requestBody"]["content"]["application/json"]["schema"];
            let name = body["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
            let schema = document.pointer(name).unwrap();
            let sent = event.as_object().unwrap().keys().cloned();
            assert_eq!(sent.collect::<BTreeSet<_>>(), fields(schema), "{kind}");
            for name in ["type", "object"] {
                assert_eq!(schema["properties"][name]["enum"], json!([event[name]]));
            }
            let told = event["data"].as_object().unwrap().keys();
            let unknown: Vec<&String> = told.filter(|name| !video.contains(*name)).collect();
            assert_eq!(unknown, [""; 0], "{kind}");
            kind.to_owned()
        })
        .collect();
    let described = document["webhooks"].as_object().unwrap().keys();
    assert!(described.eq(&kinds), "{kinds:?}");
}
