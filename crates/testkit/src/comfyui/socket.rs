//! The websockets of a server: one for each client, the last that came. It sends and does not read. As at ComfyUI, a
//! socket whose place another took stays open without events, and when it ends, its client has none any more.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha1::{Digest, Sha1};

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Open sockets, by client.
#[derive(Default)]
pub(crate) struct Sockets {
    open: HashMap<String, TcpStream>,
    /// Those whose place another took.
    idle: Vec<TcpStream>,
    /// Number of sockets whose place another took.
    pub(crate) evicted: usize,
}

impl Sockets {
    /// Accepts the socket of `client`, whose handshake has this key.
    pub(crate) fn accept(&mut self, client: &str, key: &str, mut stream: TcpStream) {
        let accept = STANDARD.encode(Sha1::digest(format!("{key}{GUID}").as_bytes()));
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: {accept}\r\n\r\n"
        );
        let _ = stream.write_all(head.as_bytes());
        if let Some(before) = self.open.insert(client.to_owned(), stream) {
            self.idle.push(before);
            self.evicted += 1;
        }
        let status = json!({"status": {"exec_info": {"queue_remaining": 1}}, "sid": client});
        let status = json!({"type": "status", "data": status}).to_string();
        self.send(client, 1, status.as_bytes());
    }

    /// Forgets the socket of `client`, because one of its sockets has ended.
    pub(crate) fn forget(&mut self, client: &str) {
        self.open.remove(client);
    }

    pub(crate) fn has(&self, client: &str) -> bool {
        self.open.contains_key(client)
    }

    /// Sends a frame of this kind (1: text, 2: binary).
    pub(crate) fn send(&mut self, client: &str, kind: u8, payload: &[u8]) {
        let mut frame = vec![0x80 | kind];
        match payload.len() {
            short @ 0..=125 => frame.push(u8::try_from(short).unwrap()),
            long => {
                frame.push(127);
                frame.extend_from_slice(&(long as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(payload);
        if let Some(stream) = self.open.get_mut(client) {
            let _ = stream.write_all(&frame);
        }
    }

    pub(crate) fn close_all(&mut self) {
        let open = self.open.drain().map(|(_, stream)| stream);
        for stream in open.chain(self.idle.drain(..)) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Returns when the peer has ended its socket.
pub(crate) fn wait_for_end(mut stream: &TcpStream) {
    let mut bytes = [0; 256];
    while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
}
