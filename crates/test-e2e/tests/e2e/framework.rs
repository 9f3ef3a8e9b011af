//! Refusals that no endpoint makes: paths, methods, bodies and heads that never reach one. They
//! come in the same envelope.

use std::collections::{BTreeSet, HashSet};

use kinora_test_e2e::{Form, Reply, Setup, raw};

use crate::support::shared;
use kinora_test_e2e::routes::{NO_TASK, ROUTES};

const BODY_BYTES_MAX: usize = 1 << 20;

#[test]
fn an_unknown_path_is_404() {
    let client = shared().newcomer();
    for method in ["POST", "DELETE"] {
        client.request(method, "/").send().refused(404, "not_found");
    }
    for path in [
        "/v1",
        "/nope",
        "/v1/videos/",
        "/v2/videos",
        "/v1/videos/a/b/c",
        "//",
        "/%2e",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            client
                .request(method, path)
                .send()
                .refused(404, "not_found");
        }
    }
}

#[test]
fn a_slash_too_many_is_named() {
    let client = shared().newcomer();
    for (path, says) in [
        ("/v1/videos/", "without the slash at the end: /v1/videos."),
        ("/v1/models//", "without the slash at the end: /v1/models."),
        ("/v1//models", "without the doubled slash: /v1/models."),
        ("//v1/videos/", "without the doubled slash: /v1/videos."),
        ("/nope/", "see /openapi.json."),
    ] {
        let refused = client.get(path);
        let said = refused.refused(404, "not_found").to_string();
        assert!(said.contains(says), "{path}: {said}");
    }
}

#[test]
fn the_bare_address_names_the_rest() {
    let told = shared().anonymous().get("/").ok();
    for (name, path) in [("openapi", "/openapi.json"), ("models", "/v1/models")] {
        assert_eq!(told[name], path, "{told}");
        shared().newcomer().get(path).ok();
    }
}

#[test]
fn a_path_that_is_no_id_is_an_unknown_video() {
    let client = shared().newcomer();
    for id in [
        "x",
        "%ff",
        "%zz",
        "%",
        "%00",
        "video_",
        "VIDEO_01k3v8r2n8p5c1w9g7d4x6m2ta",
        "%2e%2e",
    ] {
        let path = format!("/v1/videos/{id}");
        client.get(&path).refused(404, "video_not_found");
        client.delete(&path).refused(404, "video_not_found");
        client
            .post(&format!("{path}/cancel"))
            .refused(404, "video_not_found");
        client
            .get(&format!("{path}/content"))
            .refused(404, "video_not_found");
    }
    for name in ["x", "%ff", "%zz", "%00"] {
        client
            .get(&format!("/v1/models/{name}"))
            .refused(404, "not_found");
    }
}

#[test]
fn every_route_refuses_every_other_method_and_names_its_own() {
    let client = shared().newcomer();
    for route in ROUTES {
        let mut own: BTreeSet<&str> = route.methods.iter().copied().collect();
        if own.contains("GET") {
            own.insert("HEAD");
        }
        for method in [
            "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
        ] {
            if own.contains(method) {
                continue;
            }
            let reply = client.request(method, &route.with(NO_TASK)).send();
            reply.refused(405, "method_not_allowed");
            let allow: BTreeSet<&str> = reply
                .header("allow")
                .unwrap()
                .split(',')
                .map(str::trim)
                .collect();
            assert_eq!(allow, own, "{method} {}", route.path);
        }
    }
}

fn submit_raw(head: &str, body: &[u8]) -> Reply {
    let key = shared().client();
    let head = format!(
        "POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n{head}\r\n",
        key.key()
    );
    raw::exchange(shared().address(), &[head.as_bytes(), body].concat())
}

#[test]
fn p08_a_body_over_the_limit_is_413_declared_or_not() {
    let json = "content-type: application/json\r\n";
    // Nothing but the head is sent: it is refused for what it announces.
    let declared = format!("{json}content-length: {}\r\n", BODY_BYTES_MAX + 1);
    submit_raw(&declared, b"").refused(413, "request_too_large");
    submit_raw(&format!("{json}content-length: 999999999999\r\n"), b"")
        .refused(413, "request_too_large");

    let chunk = [b"8000\r\n", &[b' '; 0x8000][..], b"\r\n"].concat();
    let streamed = [chunk.repeat(33), b"0\r\n\r\n".to_vec()].concat();
    let reply = submit_raw(&format!("{json}transfer-encoding: chunked\r\n"), &streamed);
    reply.refused(413, "request_too_large");

    let client = shared().newcomer();
    let full = vec![b' '; BODY_BYTES_MAX];
    let request = client.request("POST", "/v1/videos");
    request
        .body("application/json", full)
        .send()
        .refused(400, "invalid_json");
}

#[test]
fn a_body_of_another_type_is_415() {
    let client = shared().newcomer();
    for media_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/mixed; boundary=x",
        "application/jsonp",
        "",
        "\u{fc}",
    ] {
        let request = client.request("POST", "/v1/videos");
        let reply = request.body(media_type, "{}").send();
        reply.refused_for(415, "unsupported_media_type", Some("Content-Type"));
    }
    for charset in ["utf-16", "iso-8859-1", "\"utf-7\"", "x"] {
        let request = client.request("POST", "/v1/videos");
        let media_type = format!("application/json; charset={charset}");
        let reply = request.body(&media_type, "{}").send();
        reply.refused_for(415, "unsupported_encoding", Some("Content-Type"));
    }
    for encoding in ["gzip", "br", "identity, gzip", "x"] {
        let request = client.request("POST", "/v1/videos");
        let request = request.header("content-encoding", encoding);
        let reply = request.body("application/json", "{}").send();
        reply.refused_for(415, "unsupported_encoding", Some("Content-Encoding"));
    }
    client
        .post("/v1/videos")
        .refused(415, "unsupported_media_type");
    for media_type in ["application/json; charset=utf-8", "Application/JSON"] {
        let request = client.request("POST", "/v1/videos");
        request
            .body(media_type, "{}")
            .send()
            .refused(400, "missing_required_parameter");
    }
}

fn head_with(lines: &str) -> Reply {
    let request = format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{lines}\r\n");
    raw::exchange(shared().address(), request.as_bytes())
}

#[test]
fn p08_headers_over_the_limits_are_431() {
    let lines = |count: usize| -> String {
        (0..count)
            .map(|number| format!("x-{number}: y\r\n"))
            .collect()
    };
    // `host` is one of them.
    assert_eq!(head_with(&lines(99)).status, 200);
    for count in [100, 150, 250, 2000] {
        head_with(&lines(count)).refused(431, "headers_too_large");
    }
    let long = |bytes: usize| format!("x-long: {}\r\n", "y".repeat(bytes));
    assert_eq!(head_with(&long(31 * 1024)).status, 200);
    for kilobytes in [33, 60, 100, 300] {
        head_with(&long(kilobytes * 1024)).refused(431, "headers_too_large");
    }
}

#[test]
fn what_is_no_http_is_400() {
    for request in [
        &b"GARBAGE\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / FTP/1.1\r\n\r\n",
        b"GET  /two-spaces HTTP/1.1\r\n\r\n",
        b"G\xffT / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nna me: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: \0\r\n\r\n",
        b"POST /v1/videos HTTP/1.1\r\nhost: x\r\ncontent-length: many\r\n\r\n",
        b"POST /v1/videos HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ] {
        let reply = raw::exchange(shared().address(), request);
        assert_eq!(reply.status, 400, "{request:?}: {}", reply.shown());
        reply.assert_envelope();
    }
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(70_000));
    let reply = raw::exchange(shared().address(), long.as_bytes());
    reply.refused(414, "uri_too_long");
}

#[test]
fn a_broken_form_is_refused() {
    let client = shared().newcomer();
    let whole = Form::of([("model", "kinora-a1"), ("prompt", "x")]);
    let send = |bytes: Vec<u8>| {
        let request = client.request("POST", "/v1/videos");
        request.body(&Form::media_type(), bytes).send()
    };
    let bytes = whole.bytes();
    for cut in [0, 1, 10, 40, 90, bytes.len() - 4, bytes.len() - 10] {
        send(bytes[..cut].to_vec()).refused_for(400, "malformed_body", None);
    }
    send(b"{\"model\": \"kinora-a1\"}".to_vec()).refused_for(400, "malformed_body", None);
    send(whole.clone().part("", b"x").bytes()).refused_for(400, "malformed_body", None);
    let request = client.request("POST", "/v1/videos");
    let unbounded = request.body("multipart/form-data", bytes).send();
    unbounded.refused_for(400, "malformed_body", Some("Content-Type"));

    for named in [
        "filename=\"a.png\"",
        "filename*=UTF-8''a.png",
        "FileName*=x",
    ] {
        let file = format!("; name=\"input_reference\"; {named}");
        let file = whole.clone().part(&file, b"\x89PNG");
        send(file.bytes()).refused_for(400, "file_upload_unsupported", Some("input_reference"));
    }
    let named_like_a_file = whole.clone().part("; name=\"a; filename*=b\"", b"x");
    send(named_like_a_file.bytes()).refused_for(400, "unknown_parameter", Some("a; filename*=b"));
    for (lines, code) in [
        (
            "Content-Type: text/plain; charset=latin1",
            "unsupported_encoding",
        ),
        ("Content-Transfer-Encoding: base64", "unsupported_encoding"),
        (
            "Content-Type: text/plain; charset=UTF-8",
            "unknown_parameter",
        ),
        ("Content-Transfer-Encoding: 8bit", "unknown_parameter"),
    ] {
        let part = whole
            .clone()
            .part(&format!("; name=\"x\"\r\n{lines}"), b"y");
        let status = if code == "unsupported_encoding" {
            415
        } else {
            400
        };
        send(part.bytes()).refused_for(status, code, Some("x"));
    }
    let latin = whole.clone().part("; name=\"negative_prompt\"", b"caf\xe9");
    send(latin.bytes()).refused_for(400, "invalid_value", Some("negative_prompt"));
    let twice = whole.clone().text("prompt", "y");
    assert_eq!(send(twice.bytes()).status, 400);
    let many = (0..199).fold(whole, |form, _| {
        form.text("reference_images[]", "https://a/")
    });
    send(many.bytes()).refused_for(400, "invalid_value", None);
}

#[test]
fn a_body_that_ends_early_is_refused() {
    use std::io::Write;
    let head = format!(
        "POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"model\"",
        shared().client().key()
    );
    let mut stream = raw::connect(shared().address());
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    raw::answer(&mut stream).refused_for(400, "invalid_json", None);
}

#[test]
fn p08_silent_connections_neither_stay_nor_keep_others_out() {
    use std::io::Read;
    let server = Setup::default()
        .set("KINORA_HTTP_CONNECTIONS_MAX", 2)
        // One address alone may not take all places.
        .set("KINORA_HTTP_TRUSTED_PROXIES", "127.0.0.0/8")
        .set("CONNECTION_HEADER_SECONDS", 1)
        .start();
    let mut silent = [(); 2].map(|()| raw::connect(server.address()));
    std::io::Write::write_all(&mut silent[1], b"GET /healthz HTT").unwrap();
    assert_eq!(server.anonymous().get("/healthz").status, 200);
    for stream in &mut silent {
        // Closed by the service, or this read runs into its own timeout.
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

#[test]
fn every_answer_has_a_request_id_of_its_own() {
    let client = shared().newcomer();
    let replies = [
        client.get("/healthz"),
        client.get("/healthz"),
        client.get("/nope"),
        client.get("/v1/videos"),
        raw::exchange(shared().address(), b"GARBAGE\r\n\r\n"),
    ];
    let ids: HashSet<&str> = replies
        .iter()
        .map(|reply| reply.header("x-request-id").unwrap())
        .collect();
    assert_eq!(ids.len(), replies.len());
}

#[test]
fn health_needs_no_key() {
    let anonymous = shared().anonymous();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(anonymous.get(path).ok()["status"], "ok");
        assert_eq!(anonymous.request("HEAD", path).send().status, 200);
    }
}
