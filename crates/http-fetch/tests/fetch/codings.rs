//! Bodies whose headers name a coding: true, untrue, damaged and hostile ones; and many headers.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use kinora_http_fetch::{FetchCause, FetchError};

use crate::support::{Bench, Server, options, send};

const MIB: usize = 1 << 20;

/// A file that the tests' fetches recognise, with every byte in it.
fn plain() -> Vec<u8> {
    let bytes = (0..=u8::MAX).cycle().take(100_000);
    b"\x89PNG".iter().copied().chain(bytes).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What a fetch of `body` under the header lines `headers` gives, at most `bytes_max` bytes.
async fn fetched(headers: &str, body: Vec<u8>, bytes_max: usize) -> Result<Vec<u8>, FetchError> {
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\n{headers}content-length: {length}\r\n\r\n");
    let answer = [head.as_bytes(), &body].concat();
    let server = Server::start(move |_| send(&answer)).await;
    let bench = Bench::nameless(options());
    bench.read(&server.url("/"), bytes_max as u64).await
}

async fn coded(coding: &str, body: Vec<u8>) -> Result<Vec<u8>, FetchError> {
    fetched(&format!("content-encoding: {coding}\r\n"), body, MIB).await
}

#[tokio::test]
async fn names_that_are_no_codings_mean_the_plain_file() {
    for coding in [
        "",
        " ",
        ",",
        "identity",
        "Identity",
        "aws-chunked",
        "aws-chunked,identity",
        "aws-chunked, ",
        "none",
        "null",
        "utf-8",
        "UTF-8, binary",
        "identity\r\ncontent-encoding: aws-chunked",
    ] {
        assert_eq!(coded(coding, plain()).await.unwrap(), plain(), "{coding:?}");
        // Its bytes say nothing either.
        assert_eq!(
            coded(coding, vec![7; 9]).await.unwrap(),
            [7; 9],
            "{coding:?}"
        );
    }
}

#[tokio::test]
async fn true_codings_are_undone() {
    for (coding, body) in [
        ("gzip", gzip(&plain())),
        ("x-gzip", gzip(&plain())),
        ("aws-chunked,GZIP", gzip(&plain())),
        ("gzip", [gzip(&plain()), vec![0; 9]].concat()),
        ("deflate", zlib(&plain())),
        ("deflate", deflate(&plain())),
    ] {
        assert_eq!(coded(coding, body).await.unwrap(), plain(), "{coding:?}");
    }
    assert_eq!(coded("gzip", gzip(b"ab")).await.unwrap(), b"ab");
}

#[tokio::test]
async fn the_bytes_are_believed_before_the_header() {
    for coding in ["gzip", "deflate", "br", "zstd", "compress", "x", "gzip, br"] {
        assert_eq!(coded(coding, plain()).await.unwrap(), plain(), "{coding}");
    }
    assert_eq!(coded("gzip", Vec::new()).await.unwrap(), b"");
}

#[tokio::test]
async fn damaged_and_unknown_codings_are_refused_by_name() {
    let cut = gzip(&plain())[..100].to_vec();
    let mut flipped = gzip(&plain());
    flipped[300] ^= 0x55;
    for body in [cut, flipped, b"\x1f\x8b\x08junk".to_vec()] {
        let error = coded("gzip", body).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Unreachable(FetchCause::Damaged(_))),
            "{error:?}"
        );
        assert!(!error.is_transient());
        let message = error.failure().message;
        assert_eq!(message, "the server sent compressed data that is damaged.");
    }
    for (coding, message) in [
        ("br", "the server sent the file compressed by br."),
        ("zstd", "the server sent the file compressed by zstd."),
        (
            "secret",
            "the server sent the file compressed in an unknown way.",
        ),
        (
            "gzip, gzip",
            "the server sent the file compressed in an unknown way.",
        ),
    ] {
        let error = coded(coding, vec![7; 9]).await.unwrap_err();
        assert_eq!(error.failure().message, message);
    }
}

#[tokio::test]
async fn a_bomb_is_too_large() {
    let zeros = vec![0; 100 * MIB];
    for (coding, bomb) in [("gzip", gzip(&zeros)), ("deflate", zlib(&zeros))] {
        assert!(bomb.len() < MIB);
        let error = coded(coding, bomb).await.unwrap_err();
        assert!(matches!(error, FetchError::TooLarge), "{coding}: {error:?}");
    }
    // To the byte.
    for (bytes_max, fits) in [(plain().len(), true), (plain().len() - 1, false)] {
        let headers = "content-encoding: gzip\r\n";
        let read = fetched(headers, gzip(&plain()), bytes_max).await;
        assert_eq!(read.is_ok(), fits, "{bytes_max}");
    }
}

#[tokio::test]
async fn many_and_folded_headers_are_read_up_to_the_size_of_a_head() {
    for (lines, fits) in [(99, true), (101, true), (2_000, true), (5_000, false)] {
        let headers = "a: bcdef\r\n".repeat(lines);
        let read = fetched(&headers, plain(), MIB).await;
        assert_eq!(read.is_ok(), fits, "{lines}: {:?}", read.err());
    }
    let folded = "set-cookie: a=b;\r\n\tpath=/\r\n";
    assert_eq!(fetched(folded, plain(), MIB).await.unwrap(), plain());
}
