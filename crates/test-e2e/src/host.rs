//! A caller's own host: a small file server on a loopback port that serves what it is given and
//! remembers who asked for what. It refuses to be clever: no ranges, no types, one answer each, at most
//! after some failures. A dripped answer keeps its client waiting, for as long as it waits.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Nobody refuses a dripped file for its length, nor for its rate.
const DRIPPED_BYTES: usize = 24 << 20;
const DRIP_BYTES: usize = 8 << 10;
const DRIP_PAUSE: Duration = Duration::from_millis(20);

/// Serves files; every path has one answer, at most after some failures.
#[derive(Debug)]
pub struct Host {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    files: Mutex<HashMap<String, Vec<u8>>>,
    /// How often each path fails before it is served.
    failures: Mutex<HashMap<String, usize>>,
    /// The `Content-Encoding` that each path claims.
    codings: Mutex<HashMap<String, String>>,
    asked: Mutex<Vec<String>>,
    dripping: Mutex<Vec<String>>,
    closed: AtomicBool,
}

impl Host {
    /// A host without files, on a free port of 127.0.0.1.
    pub fn start() -> Self {
        Self::start_at("127.0.0.1")
    }

    /// The same at another address of this machine: connections are counted by address.
    pub fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let of_host = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if of_host.closed.load(Ordering::SeqCst) {
                    return;
                }
                let shared = of_host.clone();
                // A client that hangs up is no concern of the others.
                thread::spawn(move || stream.map(|stream| shared.answer(stream)));
            }
        });
        Self { address, shared }
    }

    /// Serves `bytes` under `/name`, and returns the address of it.
    pub fn serve(&self, name: &str, bytes: impl Into<Vec<u8>>) -> String {
        let mut files = self.shared.files.lock().unwrap();
        files.insert(format!("/{name}"), bytes.into());
        self.url(name)
    }

    /// The same, after it has answered 503 so many times.
    pub fn serve_after(&self, failures: usize, name: &str, bytes: impl Into<Vec<u8>>) -> String {
        let mut left = self.shared.failures.lock().unwrap();
        left.insert(format!("/{name}"), failures);
        self.serve(name, bytes)
    }

    /// The same, with a `Content-Encoding`, which need not be true.
    pub fn serve_as(&self, coding: &str, name: &str, bytes: impl Into<Vec<u8>>) -> String {
        let mut codings = self.shared.codings.lock().unwrap();
        codings.insert(format!("/{name}"), coding.to_owned());
        self.serve(name, bytes)
    }

    /// The address of a file that comes very slowly.
    pub fn drip(&self, name: &str) -> String {
        self.url(&format!("drip-{name}"))
    }

    /// How many are waiting for the rest of it.
    pub fn drips(&self, name: &str) -> usize {
        let path = format!("/drip-{name}");
        let dripping = self.shared.dripping.lock().unwrap();
        dripping.iter().filter(|one| **one == path).count()
    }

    /// The address of `/name`, whether it is served or not.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// How often `/name` was asked for.
    pub fn asked_for(&self, name: &str) -> usize {
        let asked = self.shared.asked.lock().unwrap();
        asked.iter().filter(|path| path[1..] == *name).count()
    }

    /// Closes the port: the kernel refuses later connections.
    pub fn close(self) {}
}

impl Drop for Host {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for the next one, so that it lets the port go.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let head = lines.next().transpose()?.unwrap_or_default();
        for line in lines {
            if line?.is_empty() {
                break;
            }
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if path.starts_with("/drip-") {
            return self.drip(&path, &stream);
        }
        let file = self.files.lock().unwrap().get(&path).cloned();
        let coding = self.codings.lock().unwrap().get(&path).cloned();
        let coding = coding.map(|coding| format!("Content-Encoding: {coding}\r\n"));
        let coding = coding.unwrap_or_default();
        let fails = self.fails(&path);
        self.asked.lock().unwrap().push(path);
        let (status, body) = match file {
            _ if fails => ("503 Service Unavailable", Vec::new()),
            Some(body) => ("200 OK", body),
            None => ("404 Not Found", Vec::new()),
        };
        let length = body.len();
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 {status}\r\n{coding}Content-Length: {length}\r\nConnection: close\r\n\r\n"
        )?;
        stream.write_all(&body)
    }

    /// Whether this request fails.
    fn fails(&self, path: &str) -> bool {
        let mut failures = self.failures.lock().unwrap();
        let left = failures.get_mut(path).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    /// Until all of it is there, which takes longer than any fetch, or nobody wants it any more.
    fn drip(&self, path: &str, mut stream: &TcpStream) -> std::io::Result<()> {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {DRIPPED_BYTES}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        self.dripping.lock().unwrap().push(path.to_owned());
        let mut drops = 0..DRIPPED_BYTES / DRIP_BYTES;
        let dripped = drops.try_for_each(|_| {
            thread::sleep(DRIP_PAUSE);
            if self.closed.load(Ordering::SeqCst) {
                return Err(ErrorKind::Interrupted.into());
            }
            stream.write_all(&[0; DRIP_BYTES])
        });
        let mut dripping = self.dripping.lock().unwrap();
        let place = dripping.iter().position(|one| one == path).unwrap();
        dripping.swap_remove(place);
        dripped
    }
}
