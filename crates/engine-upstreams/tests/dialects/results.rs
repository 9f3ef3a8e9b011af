//! Results that are cut off, lie about their length, never end, drip, or are none: no file stays, no
//! bound is passed, and what another try may bring is tried again.

use std::time::Duration;

use kinora_contract::FailureCode;
use kinora_engine_upstreams::dialects::{CallError, UpstreamError};
use kinora_http::ExchangeError;

use crate::common::MP4;
use crate::server::{Server, Step, answer, task, well};
use crate::support::{Stage, is_absent};

const CONTENT: &str = "GET /v1/videos/t/content";

/// Whether a cause is the expected one.
type Judge = fn(&CallError) -> bool;

/// A server whose task is completed and whose result is what `content` makes of the n-th try.
async fn server(content: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static) -> Server {
    Server::start(move |seen, before| match seen.line.as_str() {
        CONTENT => content(before),
        "GET /v1/videos/t" => task("t", "completed", 100),
        _ => well("t", MP4, seen, before),
    })
    .await
}

fn send(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

/// Runs with a largest result of 1 MiB, and short deadlines of sockets.
async fn run(server: &Server) -> (Result<u64, UpstreamError>, Stage) {
    let stage = Stage::with("openai", &[server], |options| {
        options.servers.result_bytes_max = 1 << 20;
        options.servers.answer_timeout = Duration::from_millis(500);
        options.servers.rate_window = Duration::from_millis(200);
        options.servers.rate_bytes_min = 1_000;
        options.servers.result_attempts_max = 3;
    });
    (stage.run().await, stage)
}

fn truncated() -> Vec<Step> {
    vec![
        send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nonly this"),
        Step::Close,
    ]
}

#[tokio::test]
async fn a_result_that_broke_off_is_read_again() {
    let server = server(|before| match before {
        0 => truncated(),
        1 => answer(404, "", r#"{"detail":"Generation is still in-progress"}"#),
        _ => answer(200, "", MP4),
    })
    .await;
    let (ended, stage) = run(&server).await;
    assert_eq!(ended.unwrap(), MP4.len() as u64);
    assert_eq!(std::fs::read(stage.result()).unwrap(), MP4);
}

#[tokio::test]
async fn a_result_that_cannot_be_had_is_given_up_after_its_tries() {
    let rate = |cause: &CallError| matches!(cause, CallError::Rate { .. });
    let cases: [(Vec<Step>, Judge); 7] = [
        (truncated(), |cause| {
            matches!(cause, CallError::Exchange(ExchangeError::Broken(_)))
        }),
        (
            vec![
                send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"),
                Step::Close,
            ],
            |cause| matches!(cause, CallError::Exchange(ExchangeError::Broken(_))),
        ),
        (
            vec![
                send("HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n"),
                Step::Repeat(b".", Duration::from_millis(20)),
            ],
            rate,
        ),
        (vec![Step::Hold], |cause| {
            matches!(cause, CallError::Exchange(ExchangeError::Timeout(_)))
        }),
        (answer(200, "", ""), |cause| {
            matches!(cause, CallError::Empty)
        }),
        (answer(200, "content-encoding: br\r\n", "x"), |cause| {
            matches!(cause, CallError::Encoding(_))
        }),
        (answer(302, "location: /elsewhere\r\n", ""), |cause| {
            matches!(cause, CallError::Status { status: 302, .. })
        }),
    ];
    for (steps, expected) in cases {
        let server = server(move |_| steps.clone()).await;
        let (ended, stage) = run(&server).await;
        let error = ended.unwrap_err();
        let UpstreamError::NoResult(cause) = &error else {
            panic!("{error:?}");
        };
        assert!(expected(cause), "{cause:?}");
        assert_eq!(error.code(), FailureCode::GenerationFailed);
        // An encoding that was not asked for would come again.
        let tries = if matches!(cause, CallError::Encoding(_)) {
            1
        } else {
            3
        };
        assert_eq!(server.count(CONTENT), tries);
        assert_eq!(server.count("GET /elsewhere"), 0);
        assert!(is_absent(&stage.result()));
    }
}

#[tokio::test]
async fn a_result_over_its_bound_is_refused_whether_it_says_so_or_not() {
    let declared = "HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n";
    let endless = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    for (steps, is_told) in [
        (vec![send(declared), Step::Hold], true),
        (
            vec![send(endless), Step::Repeat(&[7; 4096], Duration::ZERO)],
            false,
        ),
    ] {
        let server = server(move |_| steps.clone()).await;
        let (ended, stage) = run(&server).await;
        let error = ended.unwrap_err();
        assert!(
            matches!(error, UpstreamError::ResultTooLarge(_)),
            "{is_told}: {error:?}"
        );
        assert_eq!(server.count(CONTENT), 1);
        assert!(is_absent(&stage.result()));
    }
}

#[tokio::test]
async fn a_length_that_is_too_short_bounds_what_is_taken() {
    let lie = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfour and much more";
    let server = server(move |_| vec![send(lie), Step::Close]).await;
    let (ended, stage) = run(&server).await;
    assert_eq!(ended.unwrap(), 4);
    assert_eq!(std::fs::read(stage.result()).unwrap(), b"four");
}

#[tokio::test]
async fn a_file_that_is_there_is_never_overwritten() {
    let server = server(|_| answer(200, "", MP4)).await;
    let stage = Stage::new("openai", &[&server]);
    std::fs::write(stage.result(), "mine").unwrap();
    let error = stage.run().await.unwrap_err();
    assert!(matches!(error, UpstreamError::Storage(_)), "{error:?}");
    assert_eq!(error.code(), FailureCode::StorageFailed);
    assert_eq!(std::fs::read(stage.result()).unwrap(), b"mine");
}

#[tokio::test]
async fn bytes_are_signs_of_life() {
    let server = server(|_| answer(200, "", vec![7; 900_000])).await;
    let (ended, stage) = run(&server).await;
    assert_eq!(ended.unwrap(), 900_000);
    // One at the submit; the completed poll is followed by the result at once.
    assert!(stage.control.progress.reports() > 2);
}
