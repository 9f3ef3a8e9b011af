//! Uploads that never end, many at once and under several keys of one project, beside a client that makes a clip of a
//! picture of its own.

use std::io::Write;
use std::net::TcpStream;

use kinora_test_e2e::{Client, Form, Server, Setup, keys, raw, until};

use super::connections::HOSTILE;
use super::scale;
use crate::support::quick;
use crate::uploads::day;

/// A client of the hostile project, with a key of its own.
fn hostile(server: &Server, number: usize) -> Client {
    let name = format!("hostile {number}");
    let printed = keys(
        server.data(),
        &["create", "--name", &name, "--project", "hostile"],
    );
    server.client_with(printed.ok().trim())
}

/// An upload that claims more bytes than it sends, and stays open.
fn begin(server: &Server, client: &Client, first: &[u8]) -> TcpStream {
    let mut stream = raw::connect_from(HOSTILE, server.address()).unwrap();
    let head = format!(
        "POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: {}\r\n\
         content-length: 20000000\r\n\r\n",
        client.key(),
        Form::media_type()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(first).unwrap();
    stream
}

#[test]
fn p15_uploads_without_end_hold_up_their_own_project_alone() {
    let server = Setup::default().start();
    let clients: [Client; 8] = std::array::from_fn(|number| hostile(&server, number));
    let bytes = day().bytes();
    let mut held: Vec<TcpStream> = Vec::new();
    until("the project to have its places", || {
        // Those of before were perhaps refused by now for being too slow, on a machine that is busy.
        held.extend((0..scale(40, 200)).map(|number| {
            let client = &clients[number % clients.len()];
            begin(&server, client, &bytes[..200])
        }));
        let upload = clients[0].request("POST", "/v1/files").form(&day()).send();
        (upload.status == 429).then(|| upload.refused(429, "rate_limit_exceeded"))
    });
    let polite = server.newcomer();
    let upload = polite.request("POST", "/v1/files").form(&day());
    let file = upload.send().ok();
    let mut body = quick("kinora-a1");
    body["first_frame"] = file["url"].clone();
    let video = polite.submit(&body);
    polite.wait_completed(video.id());
    drop(held);
    until("room for the project", || {
        let upload = clients[0].request("POST", "/v1/files").form(&day());
        (upload.send().status == 200).then_some(())
    });
    // Nothing of the others was kept.
    let data = server.data();
    assert_eq!(data.files("uploads").len(), 2);
    let list = clients[0].get("/v1/files").ok();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}
