//! A client without credentials, for addresses that a store has signed.

use std::io::{Read, Write};
use std::net::TcpStream;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Status line and headers, in lower case.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

/// `GET` of an `http:` address, with further header lines, each with its `\r\n`.
pub fn get(address: &str, headers: &str) -> Answer {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request =
        format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = answer.split_off(end.unwrap() + 4);
    let head = String::from_utf8(answer).unwrap().to_lowercase();
    Answer {
        status: head[9..12].parse().unwrap(),
        head,
        body,
    }
}
