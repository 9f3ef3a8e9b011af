//! Sends files as a storage does, by ranges, and fails as planned: connections that break or stall, other bytes, refusals.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use sha2::{Digest, Sha256};

use crate::http::{self, Answer, Request};

/// What goes wrong with a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferFault {
    /// The connection breaks after this many bytes.
    BreakAfter(usize),
    /// After this many bytes nothing arrives until the client gives up.
    StallAfter(usize),
    /// All bytes differ from those of the file.
    WrongBytes,
    /// An answer with this status and no file.
    Status(u16),
}

/// Faults by the end of a path: each happens as often as it is planned.
#[derive(Debug, Default)]
pub(crate) struct FaultPlan(Vec<(String, TransferFault, usize)>);

impl FaultPlan {
    pub(crate) fn add(&mut self, path_end: &str, fault: TransferFault, times: usize) {
        self.0.push((path_end.to_owned(), fault, times));
    }

    /// The next fault of a transfer of `path`.
    pub(crate) fn next(&mut self, path: &str) -> Option<TransferFault> {
        let mut rows = self.0.iter_mut();
        let row = rows.find(|(end, _, times)| *times > 0 && path.ends_with(end.as_str()))?;
        row.2 -= 1;
        Some(row.1)
    }
}

/// How to answer a request.
pub(crate) enum Reply {
    Answer(Answer),
    File(Vec<u8>, Option<TransferFault>),
}

/// Listens on a port of its own; a thread for each connection, which carries one request.
pub(crate) fn listen<S: Send + 'static>(
    state: &Arc<Mutex<S>>,
    reply: impl Fn(&mut S, &Request) -> Reply + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (state, reply) = (Arc::clone(state), Arc::new(reply));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (state, reply) = (Arc::clone(&state), Arc::clone(&reply));
            thread::spawn(move || {
                let Some(request) = http::read(&stream) else {
                    return;
                };
                let replied = reply(&mut lock(&state), &request);
                match replied {
                    Reply::Answer(answer) => answer.write(&stream),
                    Reply::File(bytes, fault) => send(&stream, &request, bytes, fault),
                }
            });
        }
    });
    address
}

pub(crate) fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An answer that leads elsewhere.
pub(crate) fn redirect(to: &str) -> Answer {
    Answer {
        status: 302,
        kind: "text/plain",
        headers: format!("location: {to}\r\n"),
        body: Vec::new(),
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn send(stream: &TcpStream, request: &Request, mut bytes: Vec<u8>, fault: Option<TransferFault>) {
    // As storages have it, the tag is that of the file, whatever happens on the way.
    let tag = format!("\"{}\"", sha256(&bytes));
    let whole = bytes.len();
    let range = request.header("range").and_then(|range| {
        let from = range.strip_prefix("bytes=")?.strip_suffix('-')?;
        from.parse::<usize>().ok()
    });
    let is_same = request.header("if-range").is_none_or(|one| one == tag);
    let from = range.filter(|_| is_same).unwrap_or(0);
    let (mut cut, mut stalls) = (None, false);
    match fault {
        Some(TransferFault::Status(status)) => {
            let answer = Answer {
                status,
                ..redirect("/")
            };
            return answer.write(stream);
        }
        Some(TransferFault::WrongBytes) => bytes.iter_mut().for_each(|byte| *byte ^= 0x55),
        Some(TransferFault::BreakAfter(count)) => cut = Some(count),
        Some(TransferFault::StallAfter(count)) => (cut, stalls) = (Some(count), true),
        None => {}
    }
    let head = if from >= whole && from > 0 {
        format!("416 Range\r\ncontent-range: bytes */{whole}\r\ncontent-length: 0")
    } else if from > 0 {
        let (last, length) = (whole - 1, whole - from);
        format!(
            "206 Part\r\ncontent-range: bytes {from}-{last}/{whole}\r\ncontent-length: {length}"
        )
    } else {
        format!("200 Whole\r\ncontent-length: {whole}")
    };
    let body = &bytes[from.min(whole)..];
    let body = &body[..cut.unwrap_or(body.len()).min(body.len())];
    let head = format!(
        "HTTP/1.1 {head}\r\netag: {tag}\r\naccept-ranges: bytes\r\nconnection: close\r\n\r\n"
    );
    let mut stream = stream;
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
    if stalls {
        let _ = stream.read(&mut [0]);
    }
}
