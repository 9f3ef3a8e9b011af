//! Lists that are asked for and not read, by a client whose tasks are as fat as the contract
//! allows: what they take of memory, and of the time of others.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kinora_test_e2e::{Client, Server, Setup, keys, raw, until};
use serde_json::json;

use super::connections::HOSTILE;
use super::scale;

/// A client of a project with a hundred tasks of about 60 KB each in JSON.
fn fat(server: &Server) -> Client {
    let printed = keys(
        server.data(),
        &["create", "--name", "fat", "--project", "fat"],
    );
    let client = server.client_with(printed.ok().trim());
    let control = |characters: usize| "\u{1}".repeat(characters);
    let metadata: serde_json::Map<_, _> = (0..10)
        .map(|number| (format!("key {number}"), control(512).into()))
        .collect();
    let prompt = format!("x{}x", control(4_998));
    let submit = |_| {
        // It fails at once: nobody may ask at that address.
        client.submit(&json!({
            "model": "kinora-a1", "prompt": prompt, "seconds": 2, "resolution": "480p",
            "metadata": metadata, "first_frame": "http://127.0.0.1:8080/x.png",
        }))
    };
    let tasks: Vec<_> = (0..100).map(submit).collect();
    // What their failing takes of memory is over, then.
    for task in tasks {
        client.wait_for(task.id(), "failed");
    }
    client
}

fn list_request(client: &Client) -> String {
    format!(
        "GET /v1/videos?limit=100 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        client.key()
    )
}

#[test]
fn p15_unread_lists_take_their_project_s_share_of_memory() {
    let (connections, megabytes) = (scale(24, 200), scale(32, 256));
    let server = Setup::default()
        .set("KINORA_HTTP_BUFFERED_MEGABYTES_MAX", megabytes)
        .start();
    let (hostile, polite) = (fat(&server), server.newcomer());
    let (whole, page) = hostile.get("/v1/videos?limit=100").list();
    assert!(
        whole["has_more"] == true && page.len() < 100,
        "{}",
        page.len()
    );
    let before = server.memory_peak_mib();
    // Several each: the first ones may vanish in the buffers of the system.
    let request = list_request(&hostile).repeat(8);
    let held: Vec<TcpStream> = (0..connections)
        .map(|_| {
            let mut stream = raw::connect_from(HOSTILE, server.address()).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let refused = until("the project to have its share", || {
        let reply = hostile.get("/v1/videos?limit=100");
        (reply.status == 429).then_some(reply)
    });
    refused.refused(429, "rate_limit_exceeded");
    assert!(refused.number("retry-after").is_some());
    let (_, videos) = polite.get("/v1/videos?limit=100").list();
    assert!(videos.is_empty());
    let grown = server.memory_peak_mib() - before;
    let bound = (megabytes / 4 + connections / 4 + 64) as u64;
    assert!(grown < bound, "{grown} MiB for {connections} unread lists");
    // Who has read what it asked for is let in again.
    drop(held);
    until("room for the project", || {
        (hostile.get("/v1/videos?limit=100").status == 200).then_some(())
    });
}

/// Sets its flag when dropped, also by a failed assertion.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn p15_who_asks_and_hangs_up_holds_up_nobody_else() {
    const ASKED: usize = 20;
    // It is below a millisecond alone; the machine may be busy with other tests.
    const MEDIAN_MAX: Duration = Duration::from_secs(1);
    let server = Server::start();
    let (hostile, polite) = (fat(&server), server.newcomer());
    let (request, over) = (list_request(&hostile), AtomicBool::new(false));
    let mut taken: Vec<Duration> = std::thread::scope(|threads| {
        let _ends = Ends(&over);
        for _ in 0..scale(4, 16) {
            threads.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let stream = raw::connect_from(HOSTILE, server.address());
                    let _ = stream.and_then(|mut one| one.write_all(request.as_bytes()));
                }
            });
        }
        let taken = (0..ASKED).map(|_| {
            let begun = Instant::now();
            let (_, videos) = polite.get("/v1/videos?limit=1").list();
            assert!(videos.is_empty());
            begun.elapsed()
        });
        taken.collect()
    });
    taken.sort_unstable();
    println!("lists beside clients that hang up: {taken:?}");
    assert!(taken[ASKED / 2] < MEDIAN_MAX, "{taken:?}");
}
