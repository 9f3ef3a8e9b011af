//! The OpenAPI document: what is served is what `docs/openapi.json` says, and it names every
//! route with its refusals. `KINORA_UPDATE_DOCS=1` writes the file anew.

use std::collections::{BTreeMap, BTreeSet};

use kinora_contract::built_in_cards;
use kinora_test_e2e::{kinora, run, workspace};
use serde_json::{Value, json};

use crate::support::shared;
use kinora_test_e2e::routes::ROUTES;

fn document() -> Value {
    shared().anonymous().get("/openapi.json").ok()
}

#[test]
fn the_served_document_is_the_one_in_docs() {
    let served = shared().anonymous().get("/openapi.json");
    served.ok();
    let mut command = kinora();
    command.arg("openapi");
    let printed = run(command).ok();
    assert_eq!(printed.trim_end().as_bytes(), served.body.trim_ascii_end());

    let path = workspace().join("docs/openapi.json");
    if std::env::var_os("KINORA_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == printed,
        "docs/openapi.json differs from what is served; if the change is wanted, run this test \
         with KINORA_UPDATE_DOCS=1 and look at the difference"
    );
}

#[test]
fn a_known_document_is_not_sent_again() {
    let client = shared().anonymous();
    let etag = client
        .get("/openapi.json")
        .header("etag")
        .unwrap()
        .to_owned();
    let known = client
        .request("GET", "/openapi.json")
        .header("if-none-match", &etag)
        .send();
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(known.header("etag"), Some(&*etag));
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let document = document();
    let described: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(|method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let routes: BTreeSet<(String, String)> = ROUTES
        .iter()
        .filter(|route| route.described)
        .flat_map(|route| {
            route
                .methods
                .iter()
                .map(|one| (route.path.into(), (*one).into()))
        })
        .collect();
    assert_eq!(described, routes);
}

#[test]
fn every_operation_has_a_name_of_its_own_and_its_refusals() {
    let document = document();
    let mut names = BTreeSet::new();
    for route in ROUTES.iter().filter(|route| route.described) {
        for method in route.methods {
            let operation = &document["paths"][route.path][method.to_lowercase()];
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} twice");
            assert!(
                operation["summary"]
                    .as_str()
                    .is_some_and(|text| text.len() > 5),
                "{name}"
            );
            assert!(operation["responses"]["200"].is_object(), "{name}");
            if !route.key {
                continue;
            }
            assert_eq!(
                operation["security"][0]["bearer"],
                serde_json::json!([]),
                "{name}"
            );
            let about_one = route.path.contains("{id}").then_some("404");
            let always = ["400", "401", "403", "429", "500", "503"];
            for status in always.into_iter().chain(about_one) {
                let refusal = &operation["responses"][status];
                let schema = &refusal["content"]["application/json"]["schema"]["$ref"];
                assert_eq!(schema, "#/components/schemas/ErrorBody", "{name} {status}");
            }
        }
    }
}

#[test]
fn an_operation_claims_only_the_refusals_that_it_can_give() {
    let document = document();
    let codes = |path: &str, method: &str| {
        let responses = document["paths"][path][method]["responses"].as_object();
        let texts = responses.unwrap().values();
        let texts = texts.map(|one| one["description"].as_str().unwrap_or_default());
        texts.collect::<Vec<_>>().join(" ")
    };
    for (path, method, never) in [
        ("/v1/models", "get", "invalid_json"),
        ("/v1/models", "get", "video_not_found"),
        ("/v1/videos", "get", "queue_full"),
        ("/v1/videos", "post", "video_not_ready"),
        ("/v1/videos/{id}", "get", "not_cancellable"),
        ("/v1/videos/{id}", "delete", "model_not_found"),
        ("/v1/videos/{id}/content", "get", "idempotency_key_reused"),
        ("/healthz", "get", "invalid_api_key"),
    ] {
        let given = codes(path, method);
        assert!(given.contains("internal_error"), "{method} {path}: {given}");
        assert!(!given.contains(never), "{method} {path}: {given}");
    }
    assert!(codes("/v1/videos", "post").contains("`malformed_body`"));
    assert!(codes("/v1/videos/{id}/remix", "post").contains("`video_not_found`"));
}

#[test]
fn the_document_lists_what_a_request_may_say() {
    let document = document();
    let fields = &document["components"]["schemas"]["SubmitRequest"]["properties"];
    let models: Vec<String> = built_in_cards().into_iter().map(|card| card.id).collect();
    assert_eq!(fields["model"]["enum"], json!(models));
    assert_eq!(fields["seed"]["format"], "int64");
    assert_eq!(fields["seed"]["maximum"], 4_294_967_295_u64);
    let listed = |name: &str| fields[name]["enum"].as_array().unwrap().len();
    // With `null`, which means absent.
    assert_eq!((listed("size"), listed("resolution")), (19, 4));
    assert_eq!(listed("aspect_ratio"), 8);
    assert_eq!(document["servers"][0]["url"], "/");
    let parameters = |path: &str, method: &str| {
        let all = document["paths"][path][method]["parameters"].as_array();
        let named = all.unwrap().iter().map(|one| {
            let name = one["name"].as_str().unwrap().to_owned();
            (name, one["schema"].clone())
        });
        named.collect::<BTreeMap<String, Value>>()
    };
    let list = parameters("/v1/videos", "get");
    assert_eq!(list["order"]["enum"], json!(["asc", "desc"]));
    assert!(list["after"]["pattern"].is_string());
    let content = parameters("/v1/videos/{id}/content", "get");
    assert_eq!(content["variant"]["enum"].as_array().unwrap().len(), 5);
    assert!(content["id"]["pattern"].is_string());
    let submit = parameters("/v1/videos", "post");
    assert!(submit["Idempotency-Key"]["pattern"].is_string());
}

/// Every `$ref` under `value`.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            found.extend(
                object
                    .get("$ref")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            object.values().for_each(|inner| references(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| references(inner, found)),
        _ => {}
    }
}

#[test]
fn the_document_is_whole() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(
        document["components"]["securitySchemes"]["bearer"]["scheme"],
        "bearer"
    );
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.contains("#/components/schemas/Video"), "{found:?}");
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(
            document.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
    }
}

#[test]
fn the_document_describes_the_object_that_is_sent() {
    let properties = document();
    let properties = properties["components"]["schemas"]["Video"]["properties"]
        .as_object()
        .unwrap();
    for name in [
        "id",
        "status",
        "result_url",
        "url",
        "fail_reason",
        "error",
        "thumbnail_url",
        "first_frame_url",
        "last_frame_url",
    ] {
        assert!(properties.contains_key(name), "{name}");
    }
    for name in ["code", "data", "works"] {
        assert!(!properties.contains_key(name), "{name}");
    }
}
