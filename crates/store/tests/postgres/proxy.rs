//! Answers to commits that get lost on their way.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A `FATAL` message of a server that an operator stops.
const FATAL: &[u8] = b"E\0\0\0\x38SFATAL\0VFATAL\0C57P01\0Mthe connection is terminated\0\0";

/// The answer of a server that has committed.
const COMMITTED: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

/// How the answer to a commit gets lost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// The connection is cut off.
    Cut,
    /// The server says that it ends the connection, which is not closed yet.
    Farewell,
}

/// The loss of the answer to the next commit.
#[derive(Clone, Default)]
pub(crate) struct Next(Arc<Mutex<Option<Loss>>>);

impl Next {
    pub(crate) fn set(&self, loss: Loss) {
        *self.0.lock().unwrap() = Some(loss);
    }

    pub(crate) fn take(&self) -> Option<Loss> {
        self.0.lock().unwrap().take()
    }
}

/// Passes connections on to the server. Once `loses` is set, the next connection over which a `COMMIT` is sent loses
/// the answer to it as soon as the server has given it.
pub(crate) struct Proxy {
    port: u16,
    pub(crate) loses: Next,
    hangs: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let loses = Next::default();
        let armed = loses.clone();
        let hangs = Arc::new(AtomicBool::new(false));
        let hanging = hangs.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, armed, hanging) = (client.unwrap(), armed.clone(), hanging.clone());
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                pass(client, server, armed, hanging);
            }
        });
        Self { port, loses, hangs }
    }

    /// Passes nothing on, or goes on to do so.
    pub(crate) fn hang(&self, hangs: bool) {
        self.hangs.store(hangs, Ordering::SeqCst);
    }

    /// The address through it of the server's database at `url`.
    pub(crate) fn address_of(&self, url: &str) -> String {
        let name = url.rsplit('/').next().unwrap();
        format!("postgres://kinora@127.0.0.1:{}/{name}", self.port)
    }
}

fn pass(client: TcpStream, server: TcpStream, armed: Next, hangs: Arc<AtomicBool>) {
    let wait = move || {
        while hangs.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
    };
    let waits = wait.clone();
    let lost = Next::default();
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let loses = lost.clone();
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 20];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            wait();
            let is_commit = bytes[..count].windows(6).any(|part| part == b"COMMIT");
            if is_commit && let Some(loss) = armed.take() {
                loses.set(loss);
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (server, client);
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 20];
        let mut loss = None;
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            waits();
            loss = loss.or_else(|| lost.take());
            let mut parts = bytes[..count].windows(COMMITTED.len());
            let answer = loss.and_then(|_| parts.position(|part| part == COMMITTED));
            if to.write_all(&bytes[..answer.unwrap_or(count)]).is_err() {
                break;
            }
            if answer.is_some() {
                if let Some(Loss::Farewell) = loss {
                    let _ = to.write_all(FATAL);
                    // Nothing more is passed on.
                    while let Ok(1..) = from.read(&mut bytes) {}
                }
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}
