//! A machine with public addresses of its own: a network namespace that has some, in which this
//! test runs itself again. Behind a firewall that trusts loopback, whatever listens on such an
//! address is as private as on 127.0.0.1.

use std::process::Command;
use std::sync::Arc;

use kinora_http_fetch::{FetchCause, FetchError, FetchOptions, ReferenceFetcher, SystemInterfaces};
use tokio::net::TcpListener;

use crate::support::{Script, clock, request};

/// What the namespace has: one public address of each family with its network, and a whole public
/// network that is routed here although no interface has an address of it.
const SETUP: &str = "ip link set lo up && ip address add 198.41.0.4/24 dev lo && \
                     ip -6 address add 2600:1::1/64 dev lo nodad && \
                     ip route add local 199.7.83.0/24 dev lo && exec \"$0\" \"$@\"";
const INSIDE: &str = "KINORA_TEST_INSIDE";

/// Runs the test of this name again in the namespace, and says whether this is that run.
fn is_inside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let own = std::env::current_exe().unwrap();
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "sh", "-c", SETUP])
        .arg(own)
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        ran.status.success() && shown.contains("1 passed"),
        "{shown}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    false
}

/// Connections that came to `listener`, of which `wanted` were expected.
async fn contacts(listener: &TcpListener) -> usize {
    let mut contacts = 0;
    let moment = std::time::Duration::from_millis(50);
    while let Ok(Ok(_)) = tokio::time::timeout(moment, listener.accept()).await {
        contacts += 1;
    }
    contacts
}

async fn fetched(fetcher: &ReferenceFetcher, url: &str) -> FetchError {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reference");
    fetcher.fetch(&request(url, &file, 100)).await.unwrap_err()
}

#[tokio::test]
async fn p09_the_machine_s_own_public_addresses_are_not_asked() {
    if !is_inside("machine::p09_the_machine_s_own_public_addresses_are_not_asked") {
        return;
    }
    let canary = TcpListener::bind("[::]:0").await.unwrap();
    let port = canary.local_addr().unwrap().port();
    let names = Script::new(&[&["198.41.0.4"], &["8.8.8.8", "198.41.0.4"], &["2600:1::1"]]);
    let interfaces = Box::new(SystemInterfaces);
    let fetcher =
        ReferenceFetcher::with(FetchOptions::default(), names, interfaces, clock()).unwrap();
    for host in [
        "198.41.0.4",
        "[2600:1::1]",
        "[::ffff:198.41.0.4]",
        "[64:ff9b::198.41.0.4]",
        // On the same link: a neighbour.
        "198.41.0.9",
        "[2600:1::10]",
        // The names of the script, in its order.
        "own.test",
        "mixed.test",
        "own6.test",
    ] {
        let url = format!("http://{host}:{port}/delete-everything?confirm=1");
        let error = fetched(&fetcher, &url).await;
        assert!(
            matches!(error, FetchError::Forbidden(FetchCause::Address { .. })),
            "{host}: {error:?}"
        );
    }
    assert_eq!(contacts(&canary).await, 0, "not one packet");
    // Routed here, and on no interface: the connection says so itself, before a byte is sent.
    let error = fetched(&fetcher, &format!("http://199.7.83.42:{port}/")).await;
    assert!(
        matches!(error, FetchError::Forbidden(FetchCause::Itself(_))),
        "{error:?}"
    );
    assert_eq!(contacts(&canary).await, 1);
}

#[tokio::test]
async fn an_own_address_is_asked_where_the_operator_names_it() {
    if !is_inside("machine::an_own_address_is_asked_where_the_operator_names_it") {
        return;
    }
    let canary = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = canary.local_addr().unwrap().port();
    let named = FetchOptions {
        allow_networks: vec![
            "198.41.0.4".parse().unwrap(),
            "199.7.83.0/24".parse().unwrap(),
        ],
        connect_timeout: std::time::Duration::from_secs(5),
        unsized_timeout: std::time::Duration::from_secs(1),
        ..FetchOptions::default()
    };
    let interfaces = Box::new(SystemInterfaces);
    let fetcher =
        Arc::new(ReferenceFetcher::with(named, Script::new(&[]), interfaces, clock()).unwrap());
    for host in ["198.41.0.4", "199.7.83.42"] {
        // Asked, and nobody answers.
        let error = fetched(&fetcher, &format!("http://{host}:{port}/")).await;
        assert!(matches!(error, FetchError::Timeout(_)), "{host}: {error:?}");
        assert_eq!(contacts(&canary).await, 1, "{host}");
    }
    let error = fetched(&fetcher, &format!("http://198.41.0.9:{port}/")).await;
    assert!(matches!(error, FetchError::Forbidden(_)), "{error:?}");
}
