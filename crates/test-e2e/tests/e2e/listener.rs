//! What the listener bears: clients that are silent, slow, too many or too fast, and proxies.
//! Deadlines are configured small, and each test waits until their effect shows.

mod browsers;
mod tls;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use kinora_test_e2e::{Reply, Server, Setup, keys, raw, until};

use crate::support::quick;
use browsers::assert_hardened;
use kinora_test_e2e::routes::NO_TASK;

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";

/// Asks for a sign of health on a connection that stays open.
fn is_served(stream: &mut TcpStream) {
    stream.write_all(HEALTH).unwrap();
    assert_eq!(raw::answer(stream).status, 200);
}

/// Waits until the service has closed the connection without a further word.
fn assert_closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("still open: {error}"),
    }
    assert_eq!(String::from_utf8_lossy(&rest), "");
}

/// Sends `byte` again and again, until the connection is gone.
fn drip(stream: &TcpStream, byte: u8) {
    let mut stream = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        while stream.write_all(&[byte]).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

/// The head of a submit whose body is still to come.
fn submit_head(server: &Server, lines: &str) -> String {
    format!(
        "POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\n{lines}\r\n",
        server.client().key()
    )
}

#[test]
fn p08_a_silent_connection_is_closed() {
    let server = Setup::default()
        .set("CONNECTION_FIRST_BYTE_SECONDS", 1)
        .start();
    assert_closed(raw::connect(server.address()));
}

#[test]
fn p08_dripped_headers_are_cut_off_and_an_idle_connection_is_not() {
    let server = Setup::default()
        .set("CONNECTION_HEADER_SECONDS", 1)
        .set("CONNECTION_IDLE_SECONDS", 600)
        .start();
    let mut idle = raw::connect(server.address());
    is_served(&mut idle);
    let mut dripping = raw::connect(server.address());
    dripping
        .write_all(b"GET /healthz HTTP/1.1\r\nx-slow: ")
        .unwrap();
    drip(&dripping, b'y');
    assert_closed(dripping);
    // More than the header deadline has passed since its answer.
    is_served(&mut idle);
    idle.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    drip(&idle, b'y');
    assert_closed(idle);
}

#[test]
fn p08_an_idle_connection_is_closed_in_the_end() {
    let server = Setup::default().set("CONNECTION_IDLE_SECONDS", 1).start();
    // Whatever the answer before was like: with a body, without one, to several at once.
    for asked in [
        "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
        "HEAD /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /nope HTTP/1.1\r\nhost: x\r\n\r\nGET /nope HTTP/1.1\r\nhost: x\r\n\r\n",
        "POST /nope HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
    ] {
        let mut idle = raw::connect(server.address());
        idle.write_all(asked.as_bytes()).unwrap();
        let mut answers = String::new();
        idle.read_to_string(&mut answers).unwrap();
        assert!(answers.starts_with("HTTP/1.1 "), "{asked}: {answers}");
    }
}

#[test]
fn p08_a_dripped_body_ends_with_408_and_accepts_nothing() {
    let server = Setup::default()
        .set("KINORA_HTTP_REQUEST_TIMEOUT_SECONDS", 1)
        .start();
    let slow = |lines: &str, begin: &str| {
        let mut stream = raw::connect(server.address());
        let head = submit_head(&server, lines);
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(begin.as_bytes()).unwrap();
        stream
    };
    let dripped = slow("content-length: 100000\r\n", "{\"model\": \"");
    drip(&dripped, b'x');
    let silent = slow("content-length: 100000\r\n", "{\"model\": \"");
    let chunked = slow("transfer-encoding: chunked\r\n", "ffff\r\n{\"model\": \"");
    drip(&chunked, b'x');
    for mut stream in [dripped, silent, chunked] {
        let reply = raw::answer(&mut stream);
        reply.refused_for(408, "request_timeout", None);
        assert_eq!(reply.header("connection"), Some("close"));
        assert_closed(stream);
    }
    let (_, videos) = server.client().get("/v1/videos").list();
    assert!(videos.is_empty());
}

/// A service that has a finished video and has never made one itself, so that its memory is only
/// what serving takes.
fn only_serving() -> (Server, String) {
    let maker = Server::start();
    let client = maker.client();
    let video = client.submit(&quick("kinora-a1"));
    let content = client.wait_completed(video.id()).content();
    let data = maker.data().clone();
    maker.terminate();
    maker.wait();
    let server = Setup::on(&data).set("CONNECTION_WRITE_SECONDS", 2).start();
    (server, content)
}

#[test]
fn p08_slow_readers_cost_little_and_lose_their_connections() {
    const READERS: u64 = 160;
    // A few hundred KiB each, beside what the threads that read files keep for themselves.
    const GROWN_MAX_MIB: u64 = READERS + 160;
    let (server, content) = only_serving();
    let key = server.client().key().to_owned();
    let whole = server.client().get(&content);
    let before = server.memory_peak_mib();
    // Far more than all socket buffers on the way, whatever the size of one answer.
    let asked = (64 << 20) / whole.body.len() + 1;
    let request =
        format!("GET {content} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n");
    let readers: Vec<TcpStream> = (0..READERS)
        .map(|_| {
            let mut stream = raw::connect(server.address());
            stream.write_all(request.repeat(asked).as_bytes()).unwrap();
            stream
        })
        .collect();
    // Who keeps up is served as ever.
    assert!(server.client().get(&content).body == whole.body);
    for mut stream in readers {
        until("a slow reader's connection to be gone", || {
            stream.write_all(b"x").is_err().then_some(())
        });
    }
    let grown = server.memory_peak_mib() - before;
    assert!(
        grown < GROWN_MAX_MIB,
        "{grown} MiB for {READERS} slow readers"
    );
}

#[test]
fn p08_an_address_has_only_so_many_connections() {
    let server = Setup::default()
        .set("KINORA_HTTP_CONNECTIONS_PER_ADDRESS_MAX", 2)
        .start();
    let mut held = [(); 2].map(|()| raw::connect(server.address()));
    held.iter_mut().for_each(is_served);
    for _ in 0..3 {
        let reply = raw::exchange(server.address(), HEALTH);
        reply.refused(429, "rate_limit_exceeded");
        assert_hardened(&reply);
    }
    held.iter_mut().for_each(is_served);
    drop(held);
    until("a place to be free again", || {
        (raw::exchange(server.address(), HEALTH).status == 200).then_some(())
    });
}

#[test]
fn p08_a_full_service_says_so_and_recovers() {
    // Of a proxy: one address alone never has all places.
    let server = Setup::default()
        .set("KINORA_HTTP_CONNECTIONS_MAX", 1)
        .set("KINORA_HTTP_TRUSTED_PROXIES", "127.0.0.0/8")
        .start();
    let mut held = raw::connect(server.address());
    is_served(&mut held);
    for _ in 0..3 {
        let reply = raw::exchange(server.address(), HEALTH);
        reply.refused(503, "overloaded");
        assert_hardened(&reply);
    }
    is_served(&mut held);
    drop(held);
    until("a place to be free again", || {
        (raw::exchange(server.address(), HEALTH).status == 200).then_some(())
    });
}

/// A key of its own project with `limit` requests per minute.
fn limited(server: &Server, limit: &str) -> String {
    let name = format!("limited to {limit}");
    let arguments = [
        "create",
        "--name",
        &name,
        "--project",
        "limited",
        "--requests-per-minute",
        limit,
    ];
    let printed = keys(server.data(), &arguments).ok();
    printed.trim().to_owned()
}

fn rate(reply: &Reply) -> [Option<&str>; 3] {
    ["limit", "remaining", "reset"].map(|what| {
        let name = format!("x-ratelimit-{what}-requests");
        reply.header(&name)
    })
}

#[test]
fn p12_a_key_s_requests_per_minute_hold_and_every_answer_tells_where_it_stands() {
    let server = Server::start();
    let key = limited(&server, "2");
    let client = server.client_with(&key);
    let first = client.get("/v1/models");
    assert_eq!(first.status, 200);
    assert_eq!(rate(&first), [Some("2"), Some("1"), Some("30s")]);
    // A refusal counts like any other answer.
    let second = client.get(&format!("/v1/videos/{NO_TASK}"));
    second.refused(404, "video_not_found");
    assert_eq!(rate(&second)[..2], [Some("2"), Some("0")]);
    for reply in [
        client.get("/v1/models"),
        client.submit_json(&quick("kinora-a1")),
        client.get(&format!("/v1/videos/{NO_TASK}/content")),
    ] {
        reply.refused(429, "rate_limit_exceeded");
        assert_eq!(rate(&reply)[..2], [Some("2"), Some("0")]);
        let seconds = reply.number("retry-after").unwrap();
        assert!((1..=30).contains(&seconds), "{}", reply.shown());
    }
    // Others are not held up by it, nor is what needs no key.
    let other = server.client_with(&limited(&server, "0"));
    assert_eq!(other.get("/v1/models").status, 200);
    assert_eq!(rate(&server.client().get("/v1/models")), [None; 3]);
    assert_eq!(client.get("/healthz").status, 200);
    assert_eq!(server.client_with("kinora_x").get("/v1/models").status, 401);
}

#[test]
fn p12_who_waits_for_retry_after_is_let_in() {
    let server = Server::start();
    let client = server.client_with(&limited(&server, "60"));
    let refused = (0..1000).find_map(|_| {
        let reply = client.get("/v1/models");
        (reply.status == 429).then_some(reply)
    });
    assert_eq!(refused.unwrap().number("retry-after"), Some(1));
    until("a request to be let in", || {
        (client.get("/v1/models").status == 200).then_some(())
    });
}

#[test]
fn p12_keys_without_a_limit_of_their_own_have_the_configured_one() {
    let server = Setup::default()
        .set("KINORA_HTTP_REQUESTS_PER_MINUTE", 1)
        .start();
    let client = server.client();
    assert_eq!(
        rate(&client.get("/v1/models")),
        [Some("1"), Some("0"), Some("1m0s")]
    );
    client.get("/v1/models").refused(429, "rate_limit_exceeded");
    let own = server.client_with(&limited(&server, "9"));
    assert_eq!(rate(&own.get("/v1/models"))[..2], [Some("9"), Some("8")]);
}

/// A request that a proxy passes on for `clients`.
fn forwarded(server: &Server, clients: &str) -> Reply {
    let request = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx-forwarded-for: {clients}\r\n\r\n");
    raw::exchange(server.address(), request.as_bytes())
}

#[test]
fn p08_behind_a_trusted_proxy_the_forwarded_client_counts() {
    let server = Setup::default()
        .set("KINORA_HTTP_TRUSTED_PROXIES", "127.0.0.0/8,10.0.0.0/8")
        .set("KINORA_HTTP_CONNECTIONS_PER_ADDRESS_MAX", 1)
        .set("KINORA_LOG_LEVEL", "debug")
        .start();
    let mut busy = raw::connect(server.address());
    let lines = "x-forwarded-for: 203.0.113.9\r\nexpect: 100-continue\r\ncontent-length: 100\r\n";
    let head = submit_head(&server, lines);
    busy.write_all(head.as_bytes()).unwrap();
    // The service says when it has begun with the request.
    let mut begun = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    busy.read_exact(&mut begun).unwrap();
    assert!(begun.starts_with(b"HTTP/1.1 100 "));
    forwarded(&server, "203.0.113.9").refused(429, "rate_limit_exceeded");
    forwarded(&server, "198.51.100.1, 203.0.113.9, 10.1.1.1").refused(429, "rate_limit_exceeded");
    assert_eq!(forwarded(&server, "203.0.113.9, 198.51.100.1").status, 200);
    server.wait_for_log(&["answered", "\"198.51.100.1\""]);

    busy.write_all(&[b' '; 100]).unwrap();
    raw::answer(&mut busy).refused(400, "invalid_json");
    until("the client's place to be free", || {
        (forwarded(&server, "203.0.113.9").status == 200).then_some(())
    });
}

#[test]
fn a_forwarded_address_from_anybody_else_is_ignored() {
    let server = Setup::default().set("KINORA_LOG_LEVEL", "debug").start();
    assert_eq!(forwarded(&server, "203.0.113.9").status, 200);
    server.wait_for_log(&["answered", "\"127.0.0.1\""]);
    assert!(!server.log().contains("203.0.113.9"));
}
