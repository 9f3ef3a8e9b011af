//! One request per connection, as little of HTTP as the client needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A request.
pub(crate) struct Request {
    pub method: String,
    pub path: String,
    pub body: Vec<u8>,
}

/// Reads a request and writes the answer to it; a broken one has none.
pub(crate) fn answer(stream: TcpStream, answer: impl FnOnce(Request) -> (u16, Value)) {
    let Some((request, mut stream)) = read(stream) else {
        return;
    };
    let (status, body) = answer(request);
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} Answer\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The client may be gone.
    let _ = stream.write_all((head + &body).as_bytes());
}

fn read(stream: TcpStream) -> Option<(Request, TcpStream)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request = Request { method, path, body };
    Some((request, reader.into_inner()))
}
