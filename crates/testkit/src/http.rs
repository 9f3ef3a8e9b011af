//! Requests and answers over one connection, which ends after its answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET /view`, without the query.
    pub line: String,
    /// The parameters of the query.
    pub query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether any header or parameter has a part of this key in it, or is one that keys are sent in.
    #[cfg(feature = "providers")]
    pub(crate) fn shows(&self, key: &str) -> bool {
        let mut pairs = self.headers.iter().chain(&self.query);
        let has = |value: &str| key.split(':').any(|part| value.contains(part));
        pairs.any(|(name, value)| name.contains("authorization") || has(value))
    }

    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> String {
        let found = self.query.iter().find(|(one, _)| one == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The fields of a form: name, file name, bytes.
    pub fn form(&self) -> Vec<(String, Option<String>, Vec<u8>)> {
        let kind = self.header("content-type").unwrap_or_default();
        let boundary = kind.split_once("boundary=").expect("a form").1;
        let delimiter = format!("--{boundary}\r\n");
        let body = find(&self.body, format!("--{boundary}--").as_bytes());
        let body = &self.body[..body.expect("an end of the form")];
        let mut fields = Vec::new();
        for part in split(body, delimiter.as_bytes()).into_iter().skip(1) {
            let at = find(part, b"\r\n\r\n").expect("a head");
            let head = String::from_utf8_lossy(&part[..at]).into_owned();
            let value = |name: &str| {
                let (_, rest) = head.split_once(&format!("{name}=\""))?;
                Some(rest.split_once('"')?.0.to_owned())
            };
            let bytes = part[at + 4..]
                .strip_suffix(b"\r\n")
                .expect("an end of a part");
            let name = value("; name").expect("a name");
            fields.push((name, value("filename"), bytes.to_vec()));
        }
        fields
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn split<'a>(mut bytes: &'a [u8], at: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while let Some(place) = find(bytes, at) {
        pieces.push(&bytes[..place]);
        bytes = &bytes[place + at.len()..];
    }
    pieces.push(bytes);
    pieces
}

/// Reads one request; `None` if the peer sends none.
pub(crate) fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let first = lines.remove(0);
    let (method, rest) = first.split_once(' ')?;
    let (target, _) = rest.rsplit_once(' ')?;
    let url = url::Url::parse("http://server").ok()?.join(target).ok()?;
    let pair = |line: &String| {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        (name.to_ascii_lowercase(), value.to_owned())
    };
    let mut request = Request {
        line: format!("{method} {}", url.path()),
        query: url.query_pairs().into_owned().collect(),
        headers: lines.iter().map(pair).collect(),
        body: Vec::new(),
    };
    let length = request.header("content-length").unwrap_or("0").parse();
    request.body = vec![0; length.ok()?];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// An answer to a request.
#[derive(Clone, Debug)]
#[allow(unreachable_pub, reason = "only some stand-ins show it to tests")]
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    /// Further headers, each line with its end.
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            kind: "application/json",
            headers: String::new(),
            body: body.to_string().into_bytes(),
        }
    }

    /// An answer without a body.
    #[cfg(feature = "providers")]
    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            kind: "text/plain",
            headers: String::new(),
            body: Vec::new(),
        }
    }

    /// As ComfyUI answers for a path that it does not have: it looks for a file of its website, which it only gets.
    #[cfg(any(feature = "comfyui", feature = "providers"))]
    pub(crate) fn no_route(method: &str) -> Self {
        let (status, body) = match method {
            "GET" => (404, ""),
            _ => (405, "405: Method Not Allowed"),
        };
        Self {
            status,
            kind: "text/plain",
            headers: String::new(),
            body: body.into(),
        }
    }

    pub(crate) fn write(&self, mut stream: &TcpStream) {
        let head = format!(
            "HTTP/1.1 {} Said\r\ncontent-type: {}\r\n{}content-length: {}\r\nconnection: close\r\n\r\n",
            self.status,
            self.kind,
            self.headers,
            self.body.len()
        );
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&self.body);
    }
}
