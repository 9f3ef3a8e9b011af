//! Requests that two servers may read differently: each is refused in the envelope, and nothing that
//! follows on its connection is read. One row per trick.

use std::io::{Read, Write};

use kinora_test_e2e::raw;

use crate::support::shared;

const REQUEST_LINE_BYTES_MAX: usize = 8 * 1024;

/// What is sent, and the `param` of the refusal.
const REFUSED: &[(&str, Option<&str>)] = &[
    // Lines that end with LF alone.
    ("GET /healthz HTTP/1.1\nhost: x\r\n\r\n", None),
    ("GET /healthz HTTP/1.1\r\nhost: x\n\r\n", None),
    ("GET /healthz HTTP/1.1\r\nhost: x\r\n\n", None),
    ("GET /healthz HTTP/1.1\nhost: x\n\n", None),
    ("\nGET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", None),
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\nx: y\nz: y\r\n\r\n",
        None,
    ),
    // Hosts.
    ("GET /healthz HTTP/1.1\r\n\r\n", Some("Host")),
    ("GET http://x/healthz HTTP/1.1\r\n\r\n", Some("Host")),
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n",
        Some("Host"),
    ),
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\nHost: y\r\n\r\n",
        Some("Host"),
    ),
    ("GET /healthz HTTP/1.1\r\nhost:\r\n\r\n", Some("Host")),
    ("GET /healthz HTTP/1.1\r\nhost: x y\r\n\r\n", Some("Host")),
    ("GET /healthz HTTP/1.1\r\nhost: x,y\r\n\r\n", Some("Host")),
    ("GET /healthz HTTP/1.1\r\nhost: x/y\r\n\r\n", Some("Host")),
    ("GET /healthz HTTP/1.1\r\nhost: u@x\r\n\r\n", Some("Host")),
    (
        "GET /healthz HTTP/1.1\r\nhost: x:99999\r\n\r\n",
        Some("Host"),
    ),
    ("GET /healthz HTTP/1.1\r\nhost: [::1\r\n\r\n", Some("Host")),
    (
        "GET /healthz HTTP/1.1\r\nhost: b\u{fc}cher\r\n\r\n",
        Some("Host"),
    ),
    // Lengths.
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        Some("Transfer-Encoding"),
    ),
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        Some("Transfer-Encoding"),
    ),
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        Some("Transfer-Encoding"),
    ),
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
        Some("Transfer-Encoding"),
    ),
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        Some("Transfer-Encoding"),
    ),
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx",
        Some("Content-Length"),
    ),
    (
        "GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1, 1\r\n\r\nx",
        Some("Content-Length"),
    ),
];

/// All that comes back until the service closes the connection.
fn spoken(pieces: &[&[u8]]) -> String {
    let mut stream = raw::connect(shared().address());
    for piece in pieces {
        // The service may have answered and closed already.
        let _ = stream.write_all(piece);
    }
    let mut bytes = Vec::new();
    // A close over bytes that were not read is a reset; what came before it counts.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The statuses of all answers.
fn statuses(answers: &str) -> Vec<&str> {
    let lines = answers.match_indices("HTTP/1.1 ");
    let statuses = lines.filter_map(|(at, _)| answers.get(at + 9..at + 12));
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    statuses.filter(is_number).collect()
}

#[test]
fn p08_what_two_servers_may_read_differently_is_400_and_ends_the_connection() {
    for (request, param) in REFUSED {
        let reply = raw::exchange(shared().address(), request.as_bytes());
        assert_eq!(reply.status, 400, "{request:?}: {}", reply.shown());
        reply.refused_for(400, "invalid_value", *param);
        assert_eq!(reply.header("connection"), Some("close"), "{request:?}");

        let hidden = format!("{request}GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n");
        let answers = spoken(&[hidden.as_bytes()]);
        assert_eq!(statuses(&answers).len(), 1, "{request:?}: {answers}");
    }
}

#[test]
fn p08_a_refusal_comes_in_its_turn_and_however_it_is_cut() {
    let good = "POST /nope HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n\n\n\n\n";
    let chunked = "POST /nope HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n\
                   4;x=y\r\n\n\n\n\n\r\n0\r\nx: y\r\n\r\n";
    for (request, _) in REFUSED {
        let all = format!("{good}{chunked}{request}");
        let single: Vec<&[u8]> = all.as_bytes().chunks(1).collect();
        for pieces in [vec![all.as_bytes()], single] {
            let answers = spoken(&pieces);
            assert_eq!(
                statuses(&answers),
                ["404", "404", "400"],
                "{request:?}: {answers}"
            );
        }
    }
}

#[test]
fn usual_requests_are_read_however_they_are_spelled() {
    for request in [
        "GET /healthz HTTP/1.1\r\nHost: localhost:8080\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: [::1]:8080\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost:x \r\n\r\n",
        "GET http://x/healthz HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /healthz HTTP/1.0\r\n\r\n",
        "\r\n\r\nGET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n\n\n",
        "GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: Chunked\r\n\r\n1;a\r\n\n\r\n0\r\n\r\n",
    ] {
        // HTTP/1.0 is answered as 1.0; the rest of the answer is the same.
        let answer = spoken(&[request.as_bytes(), b"GET / HTTP/9.9\r\n\r\n"]);
        assert_eq!(&answer[8..12], " 200", "{request:?}: {answer}");
    }
}

#[test]
fn p08_a_request_line_over_its_limit_is_414() {
    let around = "GET /nope? HTTP/1.1".len();
    for (bytes, status) in [
        (REQUEST_LINE_BYTES_MAX, 404),
        (REQUEST_LINE_BYTES_MAX + 1, 414),
        (60_000, 414),
        (70_000, 414),
        (1 << 20, 414),
    ] {
        let query = "y".repeat(bytes - around);
        let request = format!("GET /nope?{query} HTTP/1.1\r\nhost: x\r\n\r\n");
        let reply = raw::exchange(shared().address(), request.as_bytes());
        assert_eq!(reply.status, status, "{bytes}: {}", reply.shown());
        if status == 414 {
            reply.refused(414, "uri_too_long");
            assert_eq!(reply.header("connection"), Some("close"));
        }
    }
}
