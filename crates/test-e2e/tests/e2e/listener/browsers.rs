//! Headers for browsers: what keeps them in check on every answer, what lets them keep and play a
//! result, and whose pages may call.

use kinora_test_e2e::{Reply, Setup, raw};

use crate::support::{quick, shared};
use kinora_test_e2e::routes::{NO_TASK, ROUTES};

/// Asserts the headers that keep browsers in check.
pub(super) fn assert_hardened(reply: &Reply) {
    // What has a tag may be kept, and asked for again.
    let cache = match reply.header("etag") {
        Some(_) => "no-cache",
        None => "no-store",
    };
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", cache),
        (
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}: {}", reply.shown());
    }
    let cors = |name: &str| name.starts_with("access-control-");
    assert!(!reply.headers.keys().any(|name| cors(name.as_str())));
}

#[test]
fn every_answer_has_the_headers_that_keep_browsers_in_check() {
    let server = shared();
    for client in [server.newcomer(), server.anonymous()] {
        for route in ROUTES {
            let methods = ["GET", "POST", "DELETE", "OPTIONS", "HEAD"];
            // An endless answer has the headers of its HEAD.
            let ending = |method: &&str| !route.endless || *method != "GET";
            for method in methods.into_iter().filter(ending) {
                let request = client.request(method, &route.with(NO_TASK));
                assert_hardened(&request.header("origin", "https://a.example").send());
            }
        }
        assert_hardened(&client.get("/nope"));
    }
    for request in [
        "GARBAGE\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000)),
        format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(40_000)),
    ] {
        assert_hardened(&raw::exchange(server.address(), request.as_bytes()));
    }
}

#[test]
fn a_result_may_be_kept_and_played_by_the_browser_that_opens_it() {
    let client = shared().newcomer();
    let video = client.submit(&quick("kinora-a1"));
    let video = client.wait_completed(video.id());
    let whole = shared().anonymous().get(video.text("result_url"));
    let known = client
        .request("GET", &video.content())
        .header("if-none-match", whole.header("etag").unwrap())
        .send();
    assert_eq!((whole.status, known.status), (200, 304));
    for reply in [&whole, &known] {
        assert_eq!(reply.header("cache-control"), Some("private, max-age=3600"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        let policy = reply.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "media-src 'self'", "img-src 'self'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("sandbox"), "{policy}");
    }
}

#[test]
fn pages_of_configured_origins_may_call_and_no_others() {
    let server = Setup::default()
        .set(
            "KINORA_HTTP_CORS_ORIGINS",
            "https://a.example,http://localhost:3000",
        )
        .start();
    let ask = |method: &str, origin: &str| {
        let client = server.client();
        let request = client
            .request(method, "/v1/videos")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,x-mine");
        request.send()
    };
    for origin in ["https://a.example", "http://localhost:3000"] {
        let preflight = ask("OPTIONS", origin);
        assert_eq!(preflight.status, 204, "{}", preflight.shown());
        assert_eq!(
            preflight.header("access-control-allow-headers"),
            Some("authorization,x-mine")
        );
        for reply in [preflight, ask("GET", origin)] {
            assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
            assert_eq!(reply.header("vary"), Some("origin"));
        }
    }
    for origin in ["https://b.example", "https://a.example.evil", "null"] {
        ask("OPTIONS", origin).refused(405, "method_not_allowed");
        let reply = ask("GET", origin);
        assert_eq!(reply.header("access-control-allow-origin"), None);
        assert_eq!(reply.header("vary"), Some("origin"));
    }
    // Asking beforehand needs no key; what follows does.
    let anonymous = server.anonymous();
    let refused = anonymous
        .request("GET", "/v1/videos")
        .header("origin", "https://a.example")
        .send();
    refused.refused(401, "invalid_api_key");
    assert_eq!(
        refused.header("access-control-allow-origin"),
        Some("https://a.example")
    );
}
