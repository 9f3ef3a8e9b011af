//! Connections that are opened for nothing, and bodies that never end: from one address, beside
//! clients at another.

use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};

use kinora_test_e2e::{Server, Setup, raw, until};

use super::scale;
use crate::metrics::{scraped, value};
use crate::support::quick;

/// Where the hostile client is; the polite one is at 127.0.0.1.
pub(super) const HOSTILE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A connection that has been used once, or refused, and is kept open.
fn idle(server: &Server) -> Option<TcpStream> {
    let mut stream = raw::connect_from(HOSTILE, server.address()).ok()?;
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    Some(stream)
}

/// Whether the service has answered, or closed.
fn is_over(stream: &TcpStream) -> bool {
    !matches!(stream.peek(&mut [0; 1]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// How many files and connections the service has open, as it says itself: to others but root, `/proc` does not.
fn open_descriptors(server: &Server) -> usize {
    value(&scraped(server), "process_open_fds").unwrap() as usize
}

#[test]
fn p15_idle_connections_leave_descriptors_for_tasks_and_downloads() {
    let (limit, connections) = (scale(400, 1024), scale(450, 1100));
    let with_limit = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
    let server = Setup::default()
        .under(&["sh", "-c", &with_limit])
        .set("CONNECTION_IDLE_SECONDS", 600)
        .set("KINORA_METRICS_LISTEN", "127.0.0.1:0")
        .start();
    server.wait_for_log(&["http.connections_max lowered", &limit.to_string()]);
    server.assert_logged(
        &["\"serving\"", "descriptors_reserved", "connections_max"],
        1,
    );
    let client = server.client();
    let mut accepted: Vec<String> = (0..3)
        .map(|_| client.submit(&quick("kinora-a1")).id().to_owned())
        .collect();
    let held: Vec<TcpStream> = (0..connections).filter_map(|_| idle(&server)).collect();
    accepted.push(client.submit(&quick("kinora-b1")).id().to_owned());
    for id in &accepted {
        let video = client.wait_completed(id);
        let content = client.get(&video.content());
        assert_eq!(content.status, 200, "{}", content.shown());
    }
    let (_, videos) = client.get("/v1/videos").list();
    assert_eq!(videos.len(), accepted.len());
    let open = open_descriptors(&server);
    assert!(open < limit, "{open} of {limit} descriptors are open");
    drop(held);
}

#[test]
fn p15_a_limit_of_files_that_is_too_low_is_refused_with_what_to_do() {
    let ended = Setup::default()
        .under(&["sh", "-c", "ulimit -n 128; exec \"$0\" \"$@\""])
        .try_start()
        .unwrap_err();
    assert!(!ended.status.success());
    assert!(ended.stderr.contains("LimitNOFILE="), "{}", ended.stderr);
}

#[test]
fn p15_unfinished_bodies_take_one_address_s_share_of_memory() {
    const BUDGET_MEGABYTES: usize = 32;
    let bodies = scale(40, 800);
    let server = Setup::default()
        .set("KINORA_HTTP_BUFFERED_MEGABYTES_MAX", BUDGET_MEGABYTES)
        .set("KINORA_HTTP_REQUEST_TIMEOUT_SECONDS", 600)
        .start();
    let client = server.client();
    client.submit(&quick("kinora-a1"));
    let before = server.memory_peak_mib();
    let head = format!(
        "POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 1000000\r\n\r\n",
        client.key()
    );
    let most = vec![b' '; 900_000];
    let held: Vec<TcpStream> = (0..bodies)
        .map(|_| {
            let mut stream = raw::connect_from(HOSTILE, server.address()).unwrap();
            // A refused client gets its answer while it still sends.
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&most);
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    // Of a quarter of 32 MiB, each counted twice.
    until("all bodies but the first few to be refused", || {
        let refused = held.iter().filter(|stream| is_over(stream)).count();
        (refused + 8 >= bodies).then_some(())
    });
    // Others submit what they like.
    let mut large = quick("kinora-a1");
    large["prompt"] = "A paper boat crosses a pond. ".repeat(170).into();
    client.submit(&large);
    let grown = server.memory_peak_mib() - before;
    let bound = BUDGET_MEGABYTES as u64 + 64;
    assert!(grown < bound, "{grown} MiB for {bodies} bodies");
}
