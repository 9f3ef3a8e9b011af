//! API keys: made and revoked beside the running service, and what each may do.

use kinora_contract::KeyText;
use kinora_test_e2e::{Client, keys, raw};

use crate::support::{quick, shared};
use kinora_test_e2e::routes::{NO_TASK, ROUTES};

fn create(arguments: &[&str]) -> Client {
    let printed = keys(shared().data(), &[&["create"], arguments].concat()).ok();
    shared().client_with(printed.trim_end())
}

#[test]
fn a_key_does_only_what_its_scopes_say() {
    let reader = create(&[
        "--name",
        "r",
        "--project",
        "scopes",
        "--scopes",
        "videos:read",
    ]);
    let writer = create(&[
        "--name",
        "w",
        "--project",
        "scopes",
        "--scopes",
        "videos:write",
    ]);
    let video = writer.submit(&quick("kinora-b1"));
    let path = format!("/v1/videos/{}", video.id());
    assert_eq!(reader.video(video.id()).id(), video.id());
    reader
        .submit_json(&quick("kinora-b1"))
        .refused(403, "scope_missing");
    reader
        .post(&format!("{path}/cancel"))
        .refused(403, "scope_missing");
    reader.delete(&path).refused(403, "scope_missing");
    for target in [&path, "/v1/videos", "/v1/models", &video.content()] {
        writer.get(target).refused(403, "scope_missing");
    }
    writer.delete(&path).ok();
}

#[test]
fn a_key_sees_and_uses_only_its_models() {
    let client = create(&[
        "--name",
        "b",
        "--project",
        "only-b",
        "--models",
        "kinora-b1",
    ]);
    let models = client.get("/v1/models").ok();
    let ids: Vec<&str> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["kinora-b1"]);
    client.get("/v1/models/kinora-a1").refused(404, "not_found");
    assert_eq!(client.get("/v1/models/kinora-b1").ok()["object"], "model");
    let refused = client.submit_json(&quick("kinora-a1"));
    refused.refused_for(403, "model_not_allowed", Some("model"));
    let video = client.submit(&quick("kinora-b1"));
    client.delete(&format!("/v1/videos/{}", video.id())).ok();
}

#[test]
fn every_route_refuses_whoever_has_no_usable_key() {
    let own = shared().client().key().to_owned();
    let foreign = KeyText::from_random(&[7; 64]).unwrap();
    let foreign = foreign.reveal();
    let wrong: Vec<Vec<Vec<u8>>> = [
        vec![],
        vec![String::new()],
        vec!["Bearer".to_owned()],
        vec!["Bearer ".to_owned()],
        vec!["Bearer x".to_owned()],
        vec![own.clone()],
        vec![format!("Basic {own}")],
        vec![format!("Bearer {own}x")],
        vec![format!("Bearer {}", &own[..own.len() - 1])],
        vec![format!("Bearer {foreign}")],
        vec![format!("Bearer {own}"), format!("Bearer {own}")],
        vec![format!("Bearer {own}, Bearer {own}")],
    ]
    .into_iter()
    .map(|values| values.into_iter().map(String::into_bytes).collect())
    .chain([vec![b"Bearer \xff\xfe".to_vec()]])
    .collect();
    for route in ROUTES.iter().filter(|route| route.key) {
        for method in route.methods {
            for values in &wrong {
                let line = format!("{method} {} HTTP/1.1\r\nhost: x\r\n", route.with(NO_TASK));
                let mut request = line.into_bytes();
                for value in values {
                    request.extend([b"authorization: ", &**value, b"\r\n"].concat());
                }
                request.extend(b"\r\n");
                let reply = raw::exchange(shared().address(), &request);
                reply.refused_for(401, "invalid_api_key", None);
            }
        }
    }
}

#[test]
fn the_scheme_is_read_in_any_case() {
    let anonymous = shared().anonymous();
    let own = shared().client().key().to_owned();
    for value in [format!("bearer {own}"), format!("BEARER  {own}")] {
        let request = anonymous.request("GET", "/v1/models");
        request.header("authorization", value).send().ok();
    }
}
