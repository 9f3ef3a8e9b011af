//! Uploads that never end, pictures that unpack to more than memory, files of others and files without number, beside
//! a client that makes a clip of a picture of its own.

use std::io::Write;
use std::net::TcpStream;

use kinora_test_e2e::{Client, DataFolder, Form, Server, Setup, keys, raw, studio, until};
use rusqlite::Connection;

use super::connections::HOSTILE;
use super::scale;
use crate::cli::bare;
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

/// A PNG of 400 KB whose 400 million pixels are all there.
fn bomb() -> Vec<u8> {
    let program = r"
import struct, sys, zlib
side = 20000
def chunk(kind, body):
    return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
packer = zlib.compressobj(9)
rows = b''.join(packer.compress(bytes(side + 1)) for _ in range(side)) + packer.flush()
head = struct.pack('>IIBBBBB', side, side, 8, 0, 0, 0, 0)
png = b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', rows) + chunk(b'IEND', b'')
sys.stdout.buffer.write(png)
";
    let output = bare("python3").args(["-c", program]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// What one picture may take while it is read, and what the allocator keeps.
const GROWTH_MIB_MAX: u64 = 160;

#[test]
fn p15_bombs_and_foreign_files_cost_others_neither_memory_nor_their_turn() {
    let server = Setup::default().start();
    let (clients, polite) = (
        [0, 1].map(|number| hostile(&server, number)),
        server.newcomer(),
    );
    let upload = || polite.request("POST", "/v1/files").form(&day()).send().ok();
    let first = upload();
    let before = server.memory_peak_mib();
    let bomb = Form::default().part("; name=\"file\"; filename=\"day.png\"", &bomb());
    // The header of a picture of 6,000 x 6,000 pixels, and the data of a small one.
    let mut lie = studio::flat("lie.png", (6_000, 6_000));
    lie.truncate(2_000);
    let lie = Form::default().part("; name=\"file\"; filename=\"lie.png\"", &lie);
    let mut theft = quick("kinora-a1");
    theft["first_frame"] = first["url"].clone();
    std::thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                for _ in 0..scale(4, 200) {
                    for (form, code) in [(&bomb, "image_too_large"), (&lie, "unsupported_image")] {
                        let sent = client.request("POST", "/v1/files").form(form).send();
                        sent.refused_for(400, code, Some("file"));
                    }
                    let stolen = client.submit_json(&theft);
                    stolen.refused_for(400, "invalid_url", Some("first_frame"));
                    let path = format!("/v1/files/{}", first["id"].as_str().unwrap());
                    client.get(&path).refused(404, "file_not_found");
                    client.delete(&path).refused(404, "file_not_found");
                }
            });
        }
        let mut body = quick("kinora-a1");
        body["first_frame"] = upload()["url"].clone();
        let video = polite.submit(&body);
        polite.wait_completed(video.id());
    });
    let grown = server.memory_peak_mib().saturating_sub(before);
    assert!(grown < GROWTH_MIB_MAX, "{grown} MiB more than before");
    // The two of the other client have the same bytes.
    assert_eq!(server.data().files("uploads").len(), 1);
    let list = clients[0].get("/v1/files").ok();
    assert!(list["data"].as_array().unwrap().is_empty(), "{list}");
}

/// Adds so many files of other projects, 1,000 each, and fills the project `hostile`: copies of the row of its only file.
/// The service is stopped.
fn fill(data: &DataFolder, others: usize) {
    let database = Connection::open(data.path().join("kinora.db")).unwrap();
    let columns = "filename, purpose, kind, media_type, bytes, sha256, blob_key, created_at_ms, expires_at_ms, is_stored, \
         due_ms";
    let add = |project: &str, count: usize| {
        let copy = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
             INSERT INTO uploads (id, project, {columns}) \
             SELECT 'file_' || printf('%026d', i + (SELECT count(*) FROM uploads)), {project}, {columns} \
             FROM n, (SELECT * FROM uploads WHERE project = 'hostile' LIMIT 1)"
        );
        assert_eq!(database.execute(&copy, ()).unwrap(), count);
    };
    add("'hostile'", 999);
    add("'other ' || (i / 1000)", others);
}

#[test]
fn p15_a_project_with_all_its_files_is_refused_and_others_see_nothing_of_them() {
    let data = DataFolder::default();
    let server = Setup::on(&data).start();
    let (client, polite) = (hostile(&server, 0), server.newcomer());
    let upload = |client: &Client| client.request("POST", "/v1/files").form(&day()).send();
    let file = upload(&client).ok();
    server.terminate();
    assert!(server.wait().0.success());
    fill(&data, scale(2_000, 100_000));

    let server = Setup::on(&data).start();
    let [client, polite] = [&client, &polite].map(|client| server.client_with(client.key()));
    let refused = upload(&client).refused(429, "storage_quota_exceeded");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("1000 uploaded files"), "{message}");
    let list = |client: &Client| client.get("/v1/files?limit=20").ok();
    assert_eq!(list(&client)["has_more"], true);
    let own = upload(&polite).ok();
    assert_eq!(list(&polite)["data"], serde_json::json!([own]));
    // What the message proposes helps at once.
    let path = format!("/v1/files/{}", file["id"].as_str().unwrap());
    client.delete(&path).ok();
    upload(&client).ok();
    upload(&client).refused(429, "storage_quota_exceeded");
}
