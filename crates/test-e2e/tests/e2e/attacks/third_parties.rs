//! Somebody else's host, named in the references of many tasks: it sees few connections at a time, no project
//! keeps the others from it, and what hangs there is asked for once.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use kinora_test_e2e::{Client, Setup, Video, open_connections, studio, until};
use serde_json::json;

use super::scale;
use crate::support::quick;

/// As in the table of limits.
const CONNECTIONS_MAX: usize = 4;
const PICTURE: &str = "/picture.png";
/// Begins with a short body and never ends it: the shortest time that a reference can hang.
const STALL: &str = "/stall.png";

/// A host that answers [`PICTURE`], stalls on [`STALL`], and is silent about everything else.
struct ThirdParty {
    address: (Ipv4Addr, u16),
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Paths, in order.
    asked: Mutex<Vec<String>>,
    connections_most: AtomicUsize,
}

impl ThirdParty {
    /// On a free port, with `picture`. It serves until the tests end.
    fn start(ip: Ipv4Addr, picture: Vec<u8>) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = (ip, listener.local_addr().unwrap().port());
        let seen = Arc::new(Seen::default());
        let (of_host, picture) = (seen.clone(), Arc::new(picture));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let connections = open_connections(address);
                of_host
                    .connections_most
                    .fetch_max(connections, Ordering::SeqCst);
                let (seen, picture) = (of_host.clone(), picture.clone());
                thread::spawn(move || seen.answer(&stream, &picture));
            }
        });
        Self { address, seen }
    }

    fn url(&self, path: &str) -> String {
        let (ip, port) = self.address;
        format!("http://{ip}:{port}{path}")
    }

    fn asked(&self) -> Vec<String> {
        self.seen.asked.lock().unwrap().clone()
    }

    fn connections_most(&self) -> usize {
        self.seen.connections_most.load(Ordering::SeqCst)
    }
}

impl Seen {
    /// Answers one request, and keeps the connection for as long as the service does.
    fn answer(&self, mut stream: &TcpStream, picture: &[u8]) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        let head = lines.next().transpose()?.unwrap_or_default();
        for line in lines.by_ref() {
            if line?.is_empty() {
                break;
            }
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        self.asked.lock().unwrap().push(path.clone());
        let (length, body) = match path.as_str() {
            PICTURE => (picture.len(), picture),
            STALL => (picture.len(), &picture[..1]),
            _ => {
                lines.next().transpose()?;
                return Ok(());
            }
        };
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
        )?;
        stream.write_all(body)?;
        lines.next().transpose()?;
        Ok(())
    }
}

fn submit(client: &Client, urls: &[String]) -> Video {
    let mut body = quick("kinora-a1");
    body["reference_images"] = json!(urls);
    client.submit(&body)
}

#[test]
fn p15_a_third_party_is_asked_by_few_at_a_time_by_projects_in_turn_and_once() {
    let picture = studio::picture("picture.png", (320, 256), "teal");
    let host = ThirdParty::start(Ipv4Addr::LOCALHOST, picture.clone());
    // Connections are counted by address: this one is no part of the crowd.
    let stalling = ThirdParty::start(Ipv4Addr::new(127, 0, 0, 2), picture);
    let server = Setup::default()
        .set("KINORA_REFERENCES_ALLOW_NETWORKS", "127.0.0.0/8")
        .start();
    let (hostile, polite) = (server.client(), server.newcomer());
    for task in 0..scale(12, 100) {
        let silent = |number| host.url(&format!("/silent-{task}-{number}.png"));
        submit(&hostile, &(0..9).map(silent).collect::<Vec<_>>());
    }
    // A project that has some leaves one to others.
    until("the hostile project's share", || {
        (host.asked().len() >= CONNECTIONS_MAX - 1).then_some(())
    });
    let stalled = submit(&polite, &[stalling.url(STALL)]);
    let tasks = [(); 3].map(|()| submit(&polite, &[host.url(PICTURE)]));
    for video in &tasks {
        polite.wait_completed(video.id());
    }
    for _ in 0..scale(0, 20) {
        let video = submit(&polite, &[host.url(PICTURE)]);
        polite.wait_completed(video.id());
    }
    let asked = host.asked();
    let first = asked.iter().position(|path| path == PICTURE);
    assert_eq!(first, Some(CONNECTIONS_MAX - 1), "{asked:?}");
    let most = host.connections_most();
    assert!(most <= CONNECTIONS_MAX, "{most} connections at a time");

    let failed = polite.wait_for(stalled.id(), "failed");
    assert_eq!(failed["error"]["code"], "reference_timeout", "{failed:#?}");
    assert_eq!(stalling.asked(), [STALL]);
}
