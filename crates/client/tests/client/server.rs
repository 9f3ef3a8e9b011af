//! A server that answers as a closure says, one request a connection, and remembers what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kinora_client::{Builder, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The key of the tests' client.
pub(crate) const KEY: &str = "kinora_test";

/// A header of an answer after which the connection stays open.
pub(crate) const HOLD: &str = "X-Hold: yes\r\n";

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// `GET /v1/videos/x`
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A running server.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers the request with the number `n`, from 0, with the bytes of `answer(request, n)`, and closes the connection.
    pub(crate) async fn start(
        answer: impl Fn(&Seen, usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = seen.clone();
        tokio::spawn(async move {
            let mut held = Vec::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // One after the other, so that the numbers are those of the script.
                let Some((request, mut stream)) = read(stream).await else {
                    continue;
                };
                let number = {
                    let mut all = all.lock().unwrap();
                    all.push(request.clone());
                    all.len() - 1
                };
                let bytes = answer(&request, number);
                let _ = stream.write_all(&bytes).await;
                if bytes
                    .windows(HOLD.len())
                    .any(|part| part == HOLD.as_bytes())
                {
                    held.push(stream);
                } else {
                    let _ = stream.shutdown().await;
                }
            }
        });
        Self { url, seen }
    }

    pub(crate) fn builder(&self) -> Builder {
        Client::builder(&self.url).api_key(KEY)
    }

    pub(crate) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The first lines of all requests.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }
}

async fn read(stream: TcpStream) -> Option<(Seen, TcpStream)> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).await.ok()?;
    let line = first.strip_suffix(" HTTP/1.1\r\n")?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    let body = String::from_utf8(body).unwrap();
    let seen = Seen {
        line,
        headers,
        body,
    };
    Some((seen, reader.into_inner()))
}

/// An answer; `headers` is `Name: value\r\n` for each.
pub(crate) fn answer(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status} Said\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A task object.
pub(crate) fn task(status: &str, progress: u32) -> Value {
    json!({"id": "video_x", "object": "video", "model": "kinora-a1", "status": status, "progress": progress})
}

pub(crate) fn said(value: &Value) -> Vec<u8> {
    answer(200, "Content-Type: application/json\r\n", value.to_string())
}

/// An error envelope.
pub(crate) fn refused(status: u16, code: &str, headers: &str) -> Vec<u8> {
    let body = json!({"error": {"message": "No.", "type": "x", "param": "size", "code": code}});
    answer(status, headers, body.to_string())
}
