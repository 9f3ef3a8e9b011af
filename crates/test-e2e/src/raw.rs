//! Bytes to the service and back, for whatever no HTTP client would send.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use crate::reply::Reply;
use crate::video::Tracker;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends `bytes` on a connection of its own and reads one answer.
///
/// The service may answer and close before it has read everything: what cannot be sent any
/// more is let go.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = connect(address);
    let _ = stream.write_all(bytes);
    answer(&mut stream)
}

/// As [`exchange`]; `None` when the service is not there or goes away before it has answered.
pub fn try_exchange(address: SocketAddr, bytes: &[u8]) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    stream.write_all(bytes).ok()?;
    try_answer(&mut stream).ok()
}

/// An open connection.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// An open connection from `source`, an address of this machine, that takes in hardly anything
/// unless it is read.
pub fn connect_from(source: IpAddr, address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_recv_buffer_size(4096)?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    socket.connect_timeout(&address.into(), TIMEOUT)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Reads one answer with a `Content-Length` body.
pub fn answer(stream: &mut impl Read) -> Reply {
    try_answer(stream).unwrap_or_else(|(error, bytes)| {
        panic!("{error} after {:?}", String::from_utf8_lossy(&bytes));
    })
}

fn try_answer(stream: &mut impl Read) -> Result<Reply, (std::io::Error, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        if let Some(reply) = whole(&bytes) {
            return Ok(reply);
        }
        match stream.read(&mut chunk) {
            Ok(0) => return Err((ErrorKind::UnexpectedEof.into(), bytes)),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err((error, bytes)),
        }
    }
}

/// The answer, when all of it is here.
fn whole(bytes: &[u8]) -> Option<Reply> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).expect("a head is text");
    let mut lines = head.split("\r\n");
    let status_line = lines.next().unwrap();
    assert!(status_line.starts_with("HTTP/1.1 "), "{head:?}");
    let status = status_line[9..12].parse().unwrap();
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':').expect("a header has a colon");
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
    }
    let length: usize = headers
        .get("content-length")?
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let body = bytes.get(end + 4..end + 4 + length)?.to_vec();
    Some(Reply::new(status, headers, body, Tracker::default()))
}
