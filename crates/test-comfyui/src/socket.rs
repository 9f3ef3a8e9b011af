//! The websockets of a server: one for each client, the last that came. It sends and does not read.

use std::collections::HashMap;
use std::io::Write;
use std::net::{Shutdown, TcpStream};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Open sockets, by client.
#[derive(Default)]
pub(crate) struct Sockets {
    open: HashMap<String, TcpStream>,
    /// Number of sockets whose place another took.
    pub(crate) evicted: usize,
}

impl Sockets {
    /// Accepts the socket of `client`, whose handshake has this key.
    pub(crate) fn accept(&mut self, client: String, key: &str, mut stream: TcpStream) {
        let accept = STANDARD.encode(Sha1::digest(format!("{key}{GUID}").as_bytes()));
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: {accept}\r\n\r\n"
        );
        let _ = stream.write_all(head.as_bytes());
        if let Some(before) = self.open.insert(client, stream) {
            let _ = before.shutdown(Shutdown::Both);
            self.evicted += 1;
        }
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
        for (_, stream) in self.open.drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
