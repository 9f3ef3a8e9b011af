//! Tests the framing alone and together with hyper: however the bytes arrive, both see the same
//! requests.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::{EnvelopeIo, *};
use crate::request_id::RequestIds;

/// Feeds `bytes` to the framing in pieces that end at `cuts`.
fn followed(bytes: &[u8], cuts: &[usize]) -> FramingTracker {
    let mut framing = FramingTracker::default();
    for piece in pieces(bytes, cuts) {
        framing.follow(piece);
    }
    framing
}

fn pieces<'b>(bytes: &'b [u8], cuts: &[usize]) -> Vec<&'b [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut begin = 0;
    let piece = |end: usize| {
        let piece = &bytes[begin..end];
        begin = end;
        piece
    };
    ends.into_iter().map(piece).collect()
}

/// A request with its body.
fn request() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let body = proptest::collection::vec(any::<u8>(), 0..300);
    let header = "[a-z]{1,12}: [ -~]{0,200}\r\n";
    let headers = proptest::collection::vec(header, 0..4);
    let chunks = proptest::collection::vec(1_usize..100, 1..5);
    (headers, body, 0..3, chunks, any::<bool>()).prop_map(|(headers, body, form, chunks, blank)| {
        let headers = headers.concat();
        let blank = if blank { "\r\n" } else { "" };
        let head = format!("{blank}POST /v1/videos?x=y HTTP/1.1\r\nhost: x\r\n{headers}");
        match form {
            0 => ([head.as_bytes(), b"\r\n"].concat(), Vec::new()),
            1 => {
                let length = format!("Content-LENGTH:{}  \r\n\r\n", body.len());
                ([head.as_bytes(), length.as_bytes(), &body].concat(), body)
            }
            _ => {
                let mut bytes = head.into_bytes();
                bytes.extend_from_slice(b"transfer-encoding: Chunked\r\n\r\n");
                let mut rest = &body[..];
                for size in chunks {
                    let (chunk, later) = rest.split_at(size.min(rest.len()));
                    if !chunk.is_empty() {
                        bytes.extend_from_slice(format!("{:X};a=b\r\n", chunk.len()).as_bytes());
                        bytes.extend_from_slice(chunk);
                        bytes.extend_from_slice(b"\r\n");
                    }
                    rest = later;
                }
                bytes.extend_from_slice(b"0 \r\nx-trailer: y\r\n\r\n");
                (bytes, body[..body.len() - rest.len()].to_vec())
            }
        }
    })
}

/// Runs hyper behind the framing: returns the bodies of the requests that it read, and everything
/// it wrote.
async fn served(pieces: &[&[u8]]) -> (Vec<Option<Vec<u8>>>, String) {
    let (ours, theirs) = duplex(1 << 20);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let answering = service_fn(move |request: Request<Incoming>| {
        let noted = noted.clone();
        async move {
            let body = request.into_body().collect().await;
            let body = body.ok().map(|body| body.to_bytes().to_vec());
            noted.lock().unwrap().push(body);
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    });
    let io = TokioIo::new(EnvelopeIo::new(ours, RequestIds::new([0; 6])));
    let serving = tokio::spawn(http1::Builder::new().serve_connection(io, answering));
    let (mut reading, mut writing) = tokio::io::split(theirs);
    for piece in pieces {
        // The service may have closed the connection already.
        let _ = writing.write_all(piece).await;
        tokio::task::yield_now().await;
    }
    let _ = writing.shutdown().await;
    let mut written = Vec::new();
    reading.read_to_end(&mut written).await.unwrap();
    let _ = serving.await.unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, String::from_utf8_lossy(&written).into_owned())
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn good_requests_pass_untouched_however_they_arrive(
        requests in proptest::collection::vec(request(), 1..4),
        cuts in proptest::collection::vec(any::<usize>(), 0..40),
    ) {
        let bytes: Vec<u8> = requests.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let framing = followed(&bytes, &cuts);
        prop_assert_eq!((framing.fault, framing.section), (None, FramingSection::RequestLine));
        let (seen, written) = run(served(&pieces(&bytes, &cuts)));
        let bodies: Vec<_> = requests.into_iter().map(|(_, body)| Some(body)).collect();
        prop_assert_eq!(seen, bodies);
        prop_assert!(!written.contains("400"), "{}", written);
    }

    #[test]
    fn a_bare_line_feed_in_a_head_is_refused_however_it_arrives(
        before in proptest::collection::vec(request(), 0..3),
        (last, body) in request(),
        line in any::<proptest::sample::Index>(),
        cuts in proptest::collection::vec(any::<usize>(), 0..40),
    ) {
        let head = last.len() - body.len();
        let head = last[..head.min(last.len())].windows(4).position(|four| four == b"\r\n\r\n");
        prop_assume!(head.is_some());
        let ends: Vec<usize> = (0..head.unwrap_or(0) + 4)
            .filter(|&at| last[at] == b'\r' && last.get(at + 1) == Some(&b'\n'))
            .collect();
        let mut broken = last;
        broken.remove(*line.get(&ends));
        let mut bytes: Vec<u8> = before.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        bytes.extend_from_slice(&broken);
        prop_assert_eq!(followed(&bytes, &cuts).fault, Some(FramingFault::BareLineFeed));
        let (seen, written) = run(served(&pieces(&bytes, &cuts)));
        prop_assert_eq!(seen.len(), before.len());
        prop_assert!(written.contains("HTTP/1.1 400 "), "{}", written);
        prop_assert!(written.contains("end lines with CRLF"), "{}", written);
    }

    #[test]
    fn nothing_that_arrives_makes_it_panic_and_how_it_is_cut_does_not_matter(
        bytes in proptest::collection::vec(
            prop_oneof![
                Just(b'\r'), Just(b'\n'), Just(b':'), Just(b'5'), Just(b'0'), Just(b' '), any::<u8>()
            ],
            0..400,
        ),
        cuts in proptest::collection::vec(any::<usize>(), 0..40),
    ) {
        for head in [&b""[..], b"P / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"] {
            let bytes = [head, &bytes].concat();
            let (whole, cut) = (followed(&bytes, &[]), followed(&bytes, &cuts));
            prop_assert_eq!((whole.fault, whole.section), (cut.fault, cut.section));
        }
    }
}

/// Length headers that two servers may read differently, each with its fault.
const LENGTHS: &[(&str, FramingFault)] = &[
    (
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        FramingFault::TransferEncoding,
    ),
    (
        "transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        FramingFault::TransferEncoding,
    ),
    (
        "transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        FramingFault::TransferEncoding,
    ),
    (
        "transfer-encoding: identity\r\n\r\n",
        FramingFault::TransferEncoding,
    ),
    (
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
        FramingFault::TransferEncoding,
    ),
    (
        "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        FramingFault::TransferEncoding,
    ),
    (
        "content-length: 1\r\ncontent-length: 1\r\n\r\nx",
        FramingFault::ContentLength,
    ),
    ("content-length: 1, 1\r\n\r\nx", FramingFault::ContentLength),
    ("content-length: +1\r\n\r\nx", FramingFault::ContentLength),
    (
        "content-length: 99999999999999999999\r\n\r\nx",
        FramingFault::ContentLength,
    ),
    ("content-length:\r\n\r\nx", FramingFault::ContentLength),
];

/// Requests that must be refused, each with its fault.
fn refused() -> Vec<(String, FramingFault)> {
    let long = format!(
        "GET /{} HTTP/1.1\r\nhost: x\r\n\r\n",
        "y".repeat(REQUEST_LINE_BYTES_MAX)
    );
    let whole = [
        (
            "\nGET / HTTP/1.1\r\nhost: x\r\n\r\n",
            FramingFault::BareLineFeed,
        ),
        ("GET / HTTP/1.1\nhost: x\n\n", FramingFault::BareLineFeed),
        (
            "GET / HTTP/1.1\r\nhost: x\r\n\n",
            FramingFault::BareLineFeed,
        ),
        (&long, FramingFault::LongRequestLine),
    ];
    let whole = whole.map(|(text, fault)| (text.to_owned(), fault));
    let head = "POST / HTTP/1.1\r\nhost: x\r\n";
    let lengths = LENGTHS
        .iter()
        .map(|(text, fault)| (format!("{head}{text}"), *fault));
    whole.into_iter().chain(lengths).collect()
}

/// Sends each request whole and byte by byte.
#[test]
fn what_two_servers_may_read_differently_is_refused_in_the_envelope() {
    for (text, fault) in refused() {
        let bytes = text.as_bytes();
        assert_eq!(followed(bytes, &[]).fault, Some(fault), "{text:?}");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        for pieces in [vec![bytes], single] {
            let (seen, written) = run(served(&pieces));
            let (status, refusal) = fault.refusal();
            assert!(seen.is_empty(), "{text:?}: {seen:?}");
            assert!(
                written.starts_with(&format!("HTTP/1.1 {status}\r\n")),
                "{text:?}: {written}"
            );
            assert!(
                written.contains(refusal.code.as_str()),
                "{text:?}: {written}"
            );
            assert!(written.contains("connection: close"), "{text:?}: {written}");
        }
    }
}

/// A fault in a body ends that request, and nothing after it is read as a request.
#[test]
fn a_broken_chunk_breaks_its_body_and_hides_no_request() {
    let head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let zeros = "0".repeat(LINE_BYTES_MAX);
    for body in [
        "1\nx\r\n0\r\n\r\n",
        "1;a\nx\r\n0\r\n\r\n",
        "1 x\r\nx\r\n0\r\n\r\n",
        "g\r\n",
        "\r\n",
        "1\r\nxy\r\n0\r\n\r\n",
        "1\r\nx\n0\r\n\r\n",
        "0\r\na: b\nc: d\r\n\r\n",
        "0\r\n\n",
        "fffffffffffffffff\r\n",
        &format!("{zeros}1\r\nx\r\n0\r\n\r\n"),
    ] {
        let bytes = format!("{head}{body}GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n");
        let single: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
        for pieces in [vec![bytes.as_bytes()], single] {
            let (seen, _) = run(served(&pieces));
            assert_eq!(seen, [None], "{body:?}");
        }
    }
}
