//! The load: keep-alive connections that send ready-made requests one after the other and time
//! the answers. Only what HTTP/1.1 needs is read of an answer; anything but a 200 ends the run.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::outcome::Outcome;
use crate::stats::Window;

/// Whole requests as bytes, sent in turn.
pub(crate) type Load = Vec<Vec<u8>>;

/// Sends `load` over so many connections, to each of these servers in turn, for `time`.
pub(crate) async fn measure(
    servers: &[SocketAddr],
    load: &Arc<Load>,
    connections: usize,
    time: Duration,
) -> Outcome<Window> {
    let mut all = JoinSet::new();
    let mut streams = Vec::new();
    for server in servers.iter().cycle().take(connections) {
        streams.push(Connection::open(*server).await?);
    }
    let start = Instant::now();
    for (index, mut connection) in streams.into_iter().enumerate() {
        let load = load.clone();
        all.spawn(async move {
            let mut latencies = Vec::new();
            let mut turn = index;
            while start.elapsed() < time {
                let sent = Instant::now();
                connection.ask(&load[turn % load.len()]).await?;
                latencies.push(sent.elapsed());
                turn += 1;
            }
            Outcome::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(joined) = all.join_next().await {
        latencies.extend(joined??);
    }
    Ok(Window::of(latencies, start.elapsed()))
}

/// Submits `count` tasks and returns their ids.
pub(crate) async fn submit_some(
    server: SocketAddr,
    submit: &Load,
    count: usize,
) -> Outcome<Vec<String>> {
    let mut connection = Connection::open(server).await?;
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        let body = connection.ask(&submit[0]).await?;
        let text = String::from_utf8_lossy(&body);
        let id = text.split('"').find(|part| part.starts_with("video_"));
        ids.push(id.ok_or("no id in the answer")?.to_owned());
    }
    Ok(ids)
}

/// Length of the answer to the first request.
pub(crate) async fn answer_bytes(server: SocketAddr, load: &Load) -> Outcome<usize> {
    Ok(Connection::open(server).await?.ask(&load[0]).await?.len())
}

/// A keep-alive connection that asks one thing after the other.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(server: SocketAddr) -> Outcome<Self> {
        Self::open_from(Ipv4Addr::LOCALHOST, server).await
    }

    /// One whose client has the address `from`.
    pub(crate) async fn open_from(from: Ipv4Addr, server: SocketAddr) -> Outcome<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(2048),
        })
    }

    /// Sends a request and reads its whole answer; returns the body.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Outcome<Vec<u8>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if let Some(body) = whole_answer(&self.buffer)? {
                return Ok(body.to_vec());
            }
        }
    }

    /// Sends a request whose answer goes on and on.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Outcome<()> {
        self.buffer.clear();
        Ok(self.stream.write_all(request).await?)
    }

    /// Reads on until there is `text`, and forgets everything up to then.
    pub(crate) async fn wait_for(&mut self, text: &[u8]) -> Outcome<()> {
        loop {
            let mut places = self.buffer.windows(text.len());
            if let Some(place) = places.position(|some| some == text) {
                self.buffer.drain(..place + text.len());
                return Ok(());
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                let read = String::from_utf8_lossy(&self.buffer);
                return Err(format!("the stream has ended: {read}").into());
            }
        }
    }
}

/// The body, once it is whole.
fn whole_answer(bytes: &[u8]) -> Outcome<Option<&[u8]>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(format!("unexpected answer: {}", String::from_utf8_lossy(bytes)).into());
    }
    let length = head
        .split("\r\n")
        .find_map(|line| line.strip_prefix("content-length: "))
        .ok_or("an answer without a length")?;
    Ok(bytes[end + 4..].get(..length.parse()?))
}
