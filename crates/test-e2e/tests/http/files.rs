//! Uploaded files: a caller's own picture or sound becomes a reference, without a web server and without a
//! look at the network.

use std::io::Write;

use kinora_test_e2e::{Client, Form, Reply, raw, studio};
use serde_json::{Value, json};

use crate::support::{quick, shared};
use crate::tenancy::visible;

const NO_FILE: &str = "file_01k3v8r2n8p5c1w9g7d4x6m2ta";

fn picture() -> Vec<u8> {
    studio::picture("a.png", (300, 300), "red")
}

fn form(name: &str, bytes: &[u8]) -> Form {
    let part = format!("; name=\"file\"; filename=\"{name}\"");
    Form::default().part(&part, bytes)
}

fn send(client: &Client, form: &Form) -> Reply {
    client.request("POST", "/v1/files").form(form).send()
}

fn upload(client: &Client, bytes: &[u8]) -> Value {
    send(client, &form("a.png", bytes)).ok()
}

fn text<'v>(file: &'v Value, field: &str) -> &'v str {
    file[field].as_str().unwrap()
}

fn path(file: &Value) -> String {
    format!("/v1/files/{}", text(file, "id"))
}

fn with(field: &str, reference: impl Into<Value>) -> Value {
    let mut body = quick("kinora-a1");
    body[field] = reference.into();
    body
}

fn ids(list: &Value) -> Vec<&str> {
    let data = list["data"].as_array().unwrap();
    data.iter().map(|file| text(file, "id")).collect()
}

#[test]
fn an_upload_is_an_object_of_openai_s_shape_and_gives_its_bytes_back() {
    let (client, bytes) = (shared().newcomer(), picture());
    let sent = form("C:\\photos\\day 1.png", &bytes)
        .text("purpose", "vision")
        .text("expires_after[anchor]", "created_at")
        .text("expires_after[seconds]", "3600");
    let file = send(&client, &sent).ok();
    let url = text(&file, "url");
    let content = format!("{}{}/content?expires=", client.base_url(), path(&file));
    assert!(url.starts_with(&content), "{url}");
    let created = file["created_at"].as_u64().unwrap();
    assert_eq!(
        file,
        json!({
            "id": text(&file, "id"), "object": "file", "bytes": bytes.len(), "created_at": created,
            "expires_at": created + 3_600, "filename": "day 1.png", "purpose": "vision",
            "status": "processed", "url": url,
        })
    );
    assert_eq!(client.get(&path(&file)).ok(), file);
    let anonymous = shared().anonymous();
    for reply in [
        anonymous.get(url),
        client.get(&format!("{}/content", path(&file))),
    ] {
        assert_eq!(reply.status, 200, "{}", reply.shown());
        assert!(reply.body == bytes);
        assert_eq!(reply.header("content-type"), Some("image/png"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
    let part = anonymous.request("GET", url).header("range", "bytes=1-3");
    let part = part.send();
    assert_eq!((part.status, &*part.body), (206, &b"PNG"[..]));

    let deleted = client.delete(&path(&file)).ok();
    let expected = json!({"id": text(&file, "id"), "object": "file", "deleted": true});
    assert_eq!(deleted, expected);
    client.get(&path(&file)).refused(404, "file_not_found");
    client.delete(&path(&file)).refused(404, "file_not_found");
    anonymous.get(url).refused(404, "file_not_found");
}

#[test]
fn a_list_has_pages_an_order_and_a_purpose() {
    let (client, bytes) = (shared().newcomer(), picture());
    let purposes = ["vision", "user_data", "vision"];
    let made = purposes.map(|purpose| {
        let sent = form("a.png", &bytes).text("purpose", purpose);
        text(&send(&client, &sent).ok(), "id").to_owned()
    });
    let [first, second, third] = [&*made[0], &*made[1], &*made[2]];
    let list = |query: &str| client.get(&format!("/v1/files{query}")).ok();
    let all = list("");
    assert_eq!(ids(&all), [third, second, first]);
    assert_eq!(
        (&all["object"], &all["has_more"]),
        (&json!("list"), &json!(false))
    );
    assert_eq!(
        (&all["first_id"], &all["last_id"]),
        (&json!(third), &json!(first))
    );
    assert_eq!(ids(&list("?order=asc")), [first, second, third]);
    assert_eq!(ids(&list("?purpose=vision")), [third, first]);
    let page = list("?limit=1");
    assert_eq!((ids(&page), &page["has_more"]), (vec![third], &json!(true)));
    assert_eq!(
        ids(&list(&format!("?limit=2&after={third}"))),
        [second, first]
    );
    for (query, code, param) in [
        ("?limit=0", "invalid_value", "limit"),
        ("?after=video_1", "invalid_value", "after"),
        ("?page=2", "unknown_parameter", "page"),
    ] {
        let refused = client.get(&format!("/v1/files{query}"));
        refused.refused_for(400, code, Some(param));
    }
    let empty = shared().newcomer().get("/v1/files").ok();
    assert_eq!((ids(&empty).len(), &empty["last_id"]), (0, &Value::Null));
}

#[test]
fn p07_another_project_s_file_cannot_be_told_from_none() {
    let (owner, stranger) = (shared().newcomer(), shared().newcomer());
    let file = upload(&owner, &picture());
    for (method, path) in [
        ("GET", "/v1/files/{id}"),
        ("DELETE", "/v1/files/{id}"),
        ("GET", "/v1/files/{id}/content"),
        ("GET", "/v1/files?after={id}"),
    ] {
        let ask = |id: &str| {
            let reply = stranger.request(method, &path.replace("{id}", id)).send();
            visible(&reply, id)
        };
        assert_eq!(ask(text(&file, "id")), ask(NO_FILE), "{method} {path}");
    }
    // Not even by its address, which opens for everybody: a task would read it as its own.
    for reference in [json!(file["url"]), json!({"file_id": file["id"]})] {
        let refused = stranger.submit_json(&with("input_reference", reference));
        refused.refused_for(400, "invalid_url", Some("input_reference"));
    }
    assert_eq!(owner.get(&path(&file)).status, 200);
}

#[test]
fn a_file_is_a_reference_by_its_address_and_by_its_id() {
    let client = shared().newcomer();
    let image = upload(&client, &picture());
    let sound = send(&client, &form("a.wav", &studio::tone("a.wav", 440, 2.0))).ok();
    let mut both = with("reference_images", json!([image["url"]]));
    both["reference_audios"] = json!([sound["url"]]);
    let mut frames = with("first_frame", image["url"].clone());
    frames["last_frame"] = image["url"].clone();
    let id = json!({"file_id": image["id"]});
    let tasks = [
        both,
        frames,
        with("input_reference", image["url"].clone()),
        with("input_reference", json!({"image_url": image["url"]})),
        with("input_reference", id),
    ]
    .map(|body| client.submit(&body));
    let id = Form::of([("model", "kinora-a1"), ("prompt", "x"), ("seconds", "2")])
        .text("resolution", "480p")
        .text("input_reference[file_id]", text(&image, "id"));
    let by_form = client.submit_form(&id).video();
    // The bytes stay for tasks that were accepted with them.
    client.delete(&path(&image)).ok();
    for task in tasks.iter().chain([&by_form]) {
        client.wait_completed(task.id());
    }
    let late = client.submit_json(&with("first_frame", image["url"].clone()));
    let error = late.refused_for(400, "invalid_url", Some("first_frame"));
    assert!(
        text(&error, "message").contains("Upload it again"),
        "{error}"
    );
}

#[test]
fn p07_a_picture_of_a_result_is_a_reference_of_its_project_alone() {
    let (client, stranger) = (shared().newcomer(), shared().newcomer());
    let source = client.submit(&quick("kinora-a1"));
    let source = client.wait_completed(source.id());
    let address = |field: &str| source.text(field).to_owned();
    let last = address("last_frame_url");
    let going_on = [
        with("first_frame", last.clone()),
        with("input_reference", address("first_frame_url")),
        with(
            "reference_images",
            json!([last.clone(), address("thumbnail_url")]),
        ),
    ];
    for task in going_on.map(|body| client.submit(&body)) {
        client.wait_completed(task.id());
    }
    let flipped = last.replace("expires=1", "expires=2");
    let mut sound = with("reference_images", json!([last.clone()]));
    sound["reference_audios"] = json!([last.clone()]);
    for (body, code, param) in [
        (
            with("first_frame", address("result_url")),
            "unsupported_image",
            "first_frame",
        ),
        (with("first_frame", flipped), "invalid_url", "first_frame"),
        (sound, "unsupported_audio", "reference_audios[0]"),
    ] {
        client
            .submit_json(&body)
            .refused_for(400, code, Some(param));
    }
    let foreign = stranger.submit_json(&with("first_frame", last.clone()));
    foreign.refused_for(400, "invalid_url", Some("first_frame"));
    client.delete(&format!("/v1/videos/{}", source.id())).ok();
    let late = client.submit_json(&with("first_frame", last));
    late.refused_for(400, "invalid_url", Some("first_frame"));
}

#[test]
fn a_tampered_or_foreign_address_and_the_wrong_kind_are_refused_at_once() {
    let client = shared().newcomer();
    let image = upload(&client, &picture());
    let sound = send(&client, &form("a.wav", &studio::tone("a.wav", 440, 2.0))).ok();
    let url = text(&image, "url");
    let (plain, _) = url.split_once('?').unwrap();
    let flipped = format!(
        "{}{}",
        &url[..url.len() - 1],
        if url.ends_with('0') { "1" } else { "0" }
    );
    let later = url.replace("expires=1", "expires=2");
    for wrong in [plain, &flipped, &later] {
        let refused = client.submit_json(&with("first_frame", wrong));
        let error = refused.refused_for(400, "invalid_url", Some("first_frame"));
        assert!(text(&error, "message").contains("signature"), "{error}");
    }
    // Of no host of ours: an ordinary URL, which is fetched like any other.
    let elsewhere = flipped.replace(client.base_url(), "https://example.invalid");
    assert_eq!(
        client.submit_json(&with("first_frame", elsewhere)).status,
        200
    );
    // Behind any host of ours the signature counts.
    let proxied = url.replace(client.base_url(), "https://kinora.example.invalid/base");
    assert_eq!(
        client.submit_json(&with("first_frame", proxied)).status,
        200
    );
    let stored = format!("upload:uploads/{}", text(&image, "id"));
    let refused = client.submit_json(&with("first_frame", stored));
    refused.refused_for(400, "invalid_url", Some("first_frame"));

    let refused = client.submit_json(&with("first_frame", sound["url"].clone()));
    refused.refused_for(400, "unsupported_image", Some("first_frame"));
    let mut body = with("reference_images", json!([image["url"]]));
    body["reference_audios"] = json!([image["url"]]);
    let refused = client.submit_json(&body);
    refused.refused_for(400, "unsupported_audio", Some("reference_audios[0]"));
}

#[test]
fn what_is_no_usable_reference_is_refused_at_its_arrival_in_the_same_words() {
    let client = shared().newcomer();
    let wide = studio::picture("wide.png", (1200, 300), "red");
    let small = studio::picture("s.png", (255, 300), "red");
    for (bytes, code, says) in [
        (
            wide,
            "invalid_aspect_ratio",
            "file: the image is 1200x300 pixels;",
        ),
        (
            small,
            "image_too_small",
            "file: the image is 255x300 pixels;",
        ),
        (
            studio::tone("a.wav", 440, 0.5),
            "audio_too_short",
            "file: the sound lasts 0.5",
        ),
        (
            studio::tone("a.wav", 440, 17.0),
            "audio_too_long",
            "file: the sound lasts longer",
        ),
        (
            picture()[..900].to_vec(),
            "unsupported_image",
            "file: the end of the file is missing.",
        ),
        (
            b"%PDF-1.7 and more".to_vec(),
            "unsupported_file",
            "file: the file is a PDF; send JPEG",
        ),
        (
            b"hello".to_vec(),
            "unsupported_file",
            "file: the file is text; send JPEG",
        ),
        (Vec::new(), "unsupported_file", "file: the file is empty."),
    ] {
        let refused = send(&client, &form("a", &bytes));
        let error = refused.refused_for(400, code, Some("file"));
        assert!(text(&error, "message").starts_with(says), "{error}");
    }
    assert!(ids(&client.get("/v1/files").ok()).is_empty());
}

#[test]
fn wrong_forms_are_refused_by_name() {
    let client = shared().newcomer();
    let whole = form("a.png", b"x");
    for (sent, code, param) in [
        (
            Form::of([("purpose", "x")]),
            "missing_required_parameter",
            "file",
        ),
        (Form::of([("file", "x")]), "invalid_type", "file"),
        (whole.clone().text("size", "x"), "unknown_parameter", "size"),
        (
            whole.clone().text("purpose", &"p".repeat(65)),
            "invalid_value",
            "purpose",
        ),
        (
            whole.clone().part("; name=\"file\"; filename=\"b\"", b"x"),
            "invalid_value",
            "file",
        ),
        (
            whole.clone().part("; name=\"b\"; filename=\"b\"", b"x"),
            "unknown_parameter",
            "b",
        ),
    ] {
        send(&client, &sent).refused_for(400, code, Some(param));
    }
    let bytes = whole.bytes();
    for cut in [0, 10, 90, bytes.len() - 4] {
        let request = client.request("POST", "/v1/files");
        let refused = request.body(&Form::media_type(), &bytes[..cut]).send();
        refused.refused_for(400, "malformed_body", None);
    }
    let json = client.request("POST", "/v1/files").json(&json!({})).send();
    json.refused_for(415, "unsupported_media_type", Some("Content-Type"));
    shared()
        .anonymous()
        .request("POST", "/v1/files")
        .form(&whole)
        .send()
        .refused(401, "invalid_api_key");
}

#[test]
fn a_file_beyond_the_bound_is_refused_with_and_without_its_length() {
    let client = shared().newcomer();
    let noise = vec![0x89; 30_000_001];
    let refused = send(&client, &form("a.png", &noise));
    refused.refused_for(413, "request_too_large", Some("file"));
    let head = format!(
        "POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: {}\r\n\
         content-length: 99000000\r\n\r\n",
        client.key(),
        Form::media_type()
    );
    let reply = raw::exchange(shared().address(), head.as_bytes());
    reply.refused_for(413, "request_too_large", Some("file"));
    assert!(ids(&client.get("/v1/files").ok()).is_empty());
}

#[test]
fn an_upload_that_drips_ends() {
    let server = crate::setup().set("UPLOAD_SECONDS", 2).start();
    let client = server.client();
    let mut stream = raw::connect(server.address());
    let head = format!(
        "POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: {}\r\n\
         content-length: 100000\r\n\r\n",
        client.key(),
        Form::media_type()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
        .write_all(&form("a.png", b"x").bytes()[..90])
        .unwrap();
    let reply = raw::answer(&mut stream);
    reply.refused(408, "request_timeout");
}

#[test]
fn the_same_upload_again_under_its_key_is_the_same_file() {
    let (client, bytes) = (shared().newcomer(), picture());
    let send = |key: &str, form: &Form| {
        let request = client
            .request("POST", "/v1/files")
            .header("idempotency-key", key);
        request.form(form).send()
    };
    let first = send("k", &form("a.png", &bytes)).ok();
    let again = send("k", &form("a.png", &bytes));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.ok(), first);
    assert_ne!(send("l", &form("a.png", &bytes)).ok()["id"], first["id"]);
    let other = studio::picture("b.png", (300, 300), "blue");
    for changed in [
        form("b.png", &bytes),
        form("a.png", &other),
        form("a.png", &bytes).text("purpose", "vision"),
    ] {
        send("k", &changed).refused(422, "idempotency_key_reused");
    }
    assert_eq!(ids(&client.get("/v1/files").ok()).len(), 2);
}

#[test]
fn a_form_with_a_file_is_refused_with_what_to_do_unless_the_operator_allows_it() {
    let fields = [
        ("model", "kinora-a1"),
        ("prompt", "x"),
        ("seconds", "2"),
        ("resolution", "480p"),
    ];
    let file = "; name=\"input_reference\"; filename=\"a.png\"";
    let sent = Form::of(fields).part(file, &picture());
    let refused = shared().newcomer().submit_form(&sent);
    let error = refused.refused_for(400, "file_upload_unsupported", Some("input_reference"));
    let says = "'input_reference' is a file; upload it to /v1/files, then pass its `url`.";
    assert_eq!(error["message"], says);

    let server = crate::setup()
        .set("KINORA_FILES_FORM_UPLOADS", "true")
        .start();
    let client = server.client();
    let submit = |form: &Form| {
        let request = client
            .request("POST", "/v1/videos")
            .header("idempotency-key", "k");
        request.form(form).send()
    };
    let task = submit(&sent).video();
    assert_eq!(submit(&sent).video().id(), task.id());
    client.wait_completed(task.id());
    assert_eq!(ids(&client.get("/v1/files").ok()).len(), 1);

    let bad = Form::of(fields).part(file, b"hello");
    let refused = client.submit_form(&bad);
    refused.refused_for(400, "unsupported_file", Some("input_reference"));
    let stranger = Form::of(fields).part("; name=\"prompt2\"; filename=\"a\"", b"x");
    client
        .submit_form(&stranger)
        .refused(400, "file_upload_unsupported");
    let invalid = Form::of(fields).part(file, &picture()).text("seconds", "3");
    client.submit_form(&invalid).refused(400, "invalid_value");
    assert_eq!(ids(&client.get("/v1/files").ok()).len(), 1);
    let plain = client.submit_form(&Form::of(fields));
    client.wait_completed(plain.video().id());
}
