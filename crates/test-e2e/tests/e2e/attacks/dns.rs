//! A resolver that never answers: only clients that name its hosts wait for it.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use kinora_test_e2e::{Server, Setup};
use serde_json::json;

use super::scale;
use crate::support::quick;

/// Where the resolver listens; a port that only root may have.
const RESOLVER: &str = "127.53.0.1";
/// How long the system waits for it, at least: `timeout` times `attempts`.
const HANGS: Duration = Duration::from_secs(60);

/// A service whose system asks [`RESOLVER`], and only that.
fn asking() -> Server {
    let setup = Setup::default();
    let file = setup.data_path().with_extension("resolv.conf");
    let text = format!("nameserver {RESOLVER}\noptions timeout:30 attempts:2\n");
    std::fs::write(&file, text).unwrap();
    setup
        .set("KINORA_WORKER_LEASE_SECONDS", 5)
        .mounting(&format!("mount --bind {} /etc/resolv.conf", file.display()))
        .start()
}

/// The resolver's socket; `None` after this test has run again, and passed, where it may have one: in a
/// network of its own, as its root.
fn resolver(name: &str) -> Option<UdpSocket> {
    match UdpSocket::bind((RESOLVER, 53)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
        bound => return Some(bound.unwrap()),
    }
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "sh", "-c"])
        .arg("ip link set lo up && exec \"$0\" --exact \"$1\" --nocapture")
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        ran.status.success() && shown.contains("1 passed"),
        "{shown}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    None
}

#[test]
fn p15_a_resolver_that_does_not_answer_holds_up_nobody_else() {
    let name = "attacks::dns::p15_a_resolver_that_does_not_answer_holds_up_nobody_else";
    let Some(resolver) = resolver(name) else {
        return;
    };
    resolver.set_read_timeout(Some(HANGS)).unwrap();
    let server = asking();
    let (hostile, polite) = (server.client(), server.newcomer());
    let done = polite.submit(&quick("kinora-b1"));
    let done = polite.wait_completed(done.id());
    let began = Instant::now();
    for task in 0..scale(16, 400) {
        let names: Vec<String> = (0..9)
            .map(|number| format!("http://slow{task}-{number}.test/a.png"))
            .collect();
        let mut body = quick("kinora-a1");
        body["reference_images"] = json!(names);
        hostile.submit(&body);
    }
    resolver
        .recv(&mut [0; 512])
        .expect("nobody asked the resolver");
    for _ in 0..scale(50, 500) {
        assert_eq!(polite.get(&done.content()).status, 200);
    }
    for _ in 0..scale(2, 10) {
        let next = polite.submit(&quick("kinora-b1"));
        polite.wait_completed(next.id());
    }
    assert_eq!(polite.get(&done.content()).status, 200);
    if scale(0, 1) == 0 {
        // The first look-up of all still waits for its answer.
        assert!(began.elapsed() < HANGS, "{:?}", began.elapsed());
    }
    // Nobody's task ran twice.
    assert_eq!(
        server.logged(&["\"task started\"", "\"attempt\":2"]),
        0,
        "{}",
        server.log()
    );
}
