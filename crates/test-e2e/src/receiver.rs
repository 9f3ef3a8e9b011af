//! A receiver of webhooks on a loopback port: it answers as a test says, or not at all, and remembers what came.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::wait::until;

/// Takes what is posted to it. Its first answers are 200.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What was posted.
#[derive(Clone, Debug)]
pub struct Posted {
    /// Method and target.
    pub line: String,
    /// Headers, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

impl Posted {
    /// A header that must be there.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.unwrap_or_else(|| panic!("no {name}: {self:#?}"))
    }

    /// The body as JSON.
    pub fn event(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Debug, Default)]
struct Shared {
    posted: Mutex<Vec<Posted>>,
    status: AtomicU16,
    hangs: AtomicBool,
    connections: AtomicUsize,
    open_max: AtomicUsize,
    closed: AtomicBool,
}

impl Receiver {
    /// On a free port of 127.0.0.1.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        shared.status.store(200, Ordering::SeqCst);
        let of_receiver = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if of_receiver.closed.load(Ordering::SeqCst) {
                    return;
                }
                let shared = of_receiver.clone();
                // A sender that hangs up is no concern of the others.
                thread::spawn(move || stream.map(|stream| shared.take(&stream)));
            }
        });
        Self { address, shared }
    }

    /// The address of `/name`.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// Answers with this status from now on.
    pub fn answer(&self, status: u16) {
        self.shared.status.store(status, Ordering::SeqCst);
    }

    /// Takes requests, and does not answer them any more.
    pub fn hang(&self) {
        self.shared.hangs.store(true, Ordering::SeqCst);
    }

    /// What was posted so far.
    pub fn posted(&self) -> Vec<Posted> {
        self.shared.posted.lock().unwrap().clone()
    }

    /// Waits until so much was posted.
    pub fn wait_for(&self, count: usize) -> Vec<Posted> {
        until(&format!("{count} events at a receiver"), || {
            Some(self.posted()).filter(|posted| posted.len() >= count)
        })
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many were open at a time, at most.
    pub fn open_max(&self) -> usize {
        self.shared.open_max.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for the next one.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn take(&self, stream: &TcpStream) -> std::io::Result<()> {
        self.connections.fetch_add(1, Ordering::SeqCst);
        if let SocketAddr::V4(address) = stream.local_addr()? {
            let open = open_connections((*address.ip(), address.port()));
            self.open_max.fetch_max(open, Ordering::SeqCst);
        }
        self.answer(stream)
    }

    fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(": ") else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length");
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body)?;
        let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
        let body = String::from_utf8(body).unwrap();
        let posted = Posted {
            line,
            headers,
            body,
        };
        self.posted.lock().unwrap().push(posted);
        if self.hangs.load(Ordering::SeqCst) {
            // Until the sender has had enough.
            return reader.read(&mut [0]).map(|_| ());
        }
        let status = self.status.load(Ordering::SeqCst);
        // The length is a lie: nobody waits for the body.
        write!(
            stream,
            "HTTP/1.1 {status} Answer\r\nLocation: /elsewhere\r\nContent-Length: 1000000000\r\n\r\n"
        )?;
        reader.read(&mut [0]).map(|_| ())
    }
}

/// Connections to this address that neither end has closed, as the kernel lists them (`proc_pid_net(5)`): the thread
/// that reads from one may learn of its end later.
pub fn open_connections((ip, port): (Ipv4Addr, u16)) -> usize {
    let own = format!("{:08X}:{port:04X}", u32::from_ne_bytes(ip.octets()));
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let is_open = |line: &&str| {
        // The number of the line, the local address, the peer's, the state: 01 is "established".
        let mut fields = line.split_whitespace().skip(1);
        fields.next() == Some(own.as_str()) && fields.nth(1) == Some("01")
    };
    table.lines().filter(is_open).count()
}
