//! A server that answers as a closure says, each connection one request, and remembers what it was
//! asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    headers: BTreeMap<String, String>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The first byte that is asked for.
    pub(crate) fn from(&self) -> Option<usize> {
        let range = self.header("range")?.strip_prefix("bytes=")?;
        range.strip_suffix('-')?.parse().ok()
    }
}

/// What to answer.
pub(crate) struct Answer {
    bytes: Vec<u8>,
    holds: bool,
}

impl Answer {
    /// An answer; `headers` is `Name: value\r\n` for each.
    pub(crate) fn new(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Self {
        let length = body.as_ref().len();
        Self::bare(
            status,
            &format!("{headers}Content-Length: {length}\r\n"),
            body,
        )
    }

    /// The same without a length of its own.
    pub(crate) fn bare(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Self {
        let head = format!("HTTP/1.1 {status} Said\r\nConnection: close\r\n{headers}\r\n");
        Self {
            bytes: [head.as_bytes(), body.as_ref()].concat(),
            holds: false,
        }
    }

    /// Leaves out the last `bytes`.
    pub(crate) fn cut(mut self, bytes: usize) -> Self {
        self.bytes.truncate(self.bytes.len() - bytes);
        self
    }

    /// Leaves the connection open.
    pub(crate) fn holding(mut self) -> Self {
        self.holds = true;
        self
    }
}

/// A running server.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers the request with the number `n`, from 0, with `answer(request, n)`.
    pub(crate) async fn start(
        answer: impl Fn(&Seen, usize) -> Answer + Send + Sync + 'static,
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
                let Answer { bytes, holds } = answer(&request, number);
                let _ = stream.write_all(&bytes).await;
                if holds {
                    held.push(stream);
                } else {
                    let _ = stream.shutdown().await;
                }
            }
        });
        Self { url, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn read(stream: TcpStream) -> Option<(Seen, TcpStream)> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).await.ok()?;
    let path = first.strip_prefix("GET ")?.split(' ').next()?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    Some((Seen { path, headers }, reader.into_inner()))
}
