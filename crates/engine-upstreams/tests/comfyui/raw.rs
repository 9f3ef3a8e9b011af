//! Calls to a real server that the engine does not make.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Makes a call to the server at `url`, without TLS; returns status and body.
pub(crate) async fn call(url: &str, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap()
        + 4;
    let status = std::str::from_utf8(&answer[9..12]).unwrap();
    (status.parse().unwrap(), answer.split_off(end))
}

/// The same; returns status and JSON.
pub(crate) async fn call_json(url: &str, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
    let (status, body) = call(url, method, path, body).await;
    (status, serde_json::from_slice(&body).unwrap_or_default())
}
