//! Servers that lie, stall, drip or never end: a clean failure in bounded time, and no file.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kinora_contract::{Failure, FailureCode};
use kinora_http_fetch::{
    FetchCause, FetchError, FetchOptions, FetchProgress, LookupError, ProjectResolver,
};
use tokio::net::TcpListener;

use crate::support::{Bench, PUBLIC, Script, Server, Step, ok, options, request, send};

const SHORT: Duration = Duration::from_millis(200);
const TICK: Duration = Duration::from_millis(5);

/// After `head`, `bytes` for ever.
fn endless(head: &str, bytes: &'static [u8], every: Duration) -> Vec<Step> {
    let mut steps = send(head);
    steps.push(Step::Repeat(bytes, every));
    steps
}

fn held(head: &str) -> Vec<Step> {
    let mut steps = send(head);
    steps.push(Step::Hold);
    steps
}

#[tokio::test]
async fn p13_more_bytes_than_allowed_are_refused_before_or_while_they_come() {
    let server = Server::start(|path| match path {
        // Would hang if the declared length were not enough to refuse.
        "/declared" => held("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n"),
        "/chunked" => endless(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            b"40\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n",
            Duration::ZERO,
        ),
        _ => endless("HTTP/1.1 200 OK\r\n\r\n", &[0; 400], Duration::ZERO),
    })
    .await;
    let bench = Bench::nameless(options());
    for path in ["/declared", "/chunked", "/undeclared"] {
        let error = bench.read(&server.url(path), 1_000).await.unwrap_err();
        assert!(matches!(error, FetchError::TooLarge), "{path}: {error:?}");
        assert_eq!(error.failure().code, "reference_too_large");
    }
}

#[tokio::test]
async fn p13_a_length_that_lies_gives_the_declared_bytes_or_nothing() {
    let server = Server::start(|path| match path {
        "/more" => send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfourand more"),
        "/less" => send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nfour"),
        "/two" => send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nfour!"),
        "/negative" => send("HTTP/1.1 200 OK\r\ncontent-length: -4\r\n\r\nfour"),
        "/huge" => send("HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nfour"),
        "/chunk" => send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\nfour"),
        "/unended" => send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfour\r\n"),
        "/chunksize" => {
            send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n")
        }
        "/nothing" => Vec::new(),
        _ => send("SSH-2.0-OpenSSH_9.9\r\n"),
    })
    .await;
    let bench = Bench::nameless(options());
    assert_eq!(
        bench.read(&server.url("/more"), 100).await.unwrap(),
        b"four"
    );
    for path in ["/two", "/negative", "/huge", "/nothing", "/ssh"] {
        let error = bench.fails(&server.url(path)).await;
        assert!(
            matches!(error, FetchError::Unreachable(FetchCause::Http(_))),
            "{path}: {error:?}"
        );
        assert_eq!(error.reached(), Some(FetchProgress::NoAnswer), "{path}");
    }
    let broke_off = |declared| FetchProgress::BrokeOff { bytes: 4, declared };
    for (path, reached) in [
        ("/less", broke_off(Some(100))),
        ("/chunk", broke_off(None)),
        ("/unended", broke_off(None)),
        ("/chunksize", FetchProgress::Malformed),
    ] {
        let error = bench.fails(&server.url(path)).await;
        assert!(
            matches!(error, FetchError::Unreachable(FetchCause::Body { .. })),
            "{path}: {error:?}"
        );
        assert_eq!(error.reached(), Some(reached), "{path}");
    }
}

#[tokio::test]
async fn p13_a_drip_below_the_minimum_rate_is_cut_off_and_a_slow_but_steady_body_is_not() {
    let server = Server::start(|path| match path {
        "/drip" => endless(
            "HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n",
            b"x",
            TICK,
        ),
        "/chunks" => endless(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            b"1\r\nx\r\n",
            TICK,
        ),
        "/silent" => held("HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\nsome"),
        _ => ok(b"few bytes, at once"),
    })
    .await;
    let bench = Bench::nameless(FetchOptions {
        rate_window: SHORT,
        rate_min_bytes: 10_000,
        ..options()
    });
    for path in ["/drip", "/chunks", "/silent"] {
        let error = bench.fails(&server.url(path)).await;
        assert!(
            matches!(error, FetchError::Timeout(FetchCause::Rate { .. })),
            "{path}: {error:?}"
        );
        assert_eq!(error.failure().code, "reference_timeout");
    }
    assert_eq!(
        bench.read(&server.url("/"), 100).await.unwrap(),
        b"few bytes, at once"
    );
}

#[tokio::test]
async fn p13_the_total_time_ends_what_is_never_too_slow_for_the_rate() {
    let server = Server::start(|path| match path {
        "/body" => endless(
            "HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n",
            b"x",
            TICK,
        ),
        "/silent" => vec![Step::Hold],
        "/head" => endless("HTTP/1.1 200 OK\r\nx: ", b"x", TICK),
        _ => endless("", b"HTTP/1.1 100 Continue\r\n\r\n", TICK),
    })
    .await;
    // Long enough to connect and answer on a busy machine; all wait at the same time.
    let options = FetchOptions {
        total_timeout: Duration::from_secs(2),
        rate_min_bytes: 1,
        ..options()
    };
    let ended = async |path: &str| {
        let bench = Bench::nameless(options.clone());
        let error = bench.fails(&server.url(path)).await;
        assert!(
            matches!(error, FetchError::Timeout(FetchCause::TotalTimeout)),
            "{path}: {error:?}"
        );
    };
    tokio::join!(
        ended("/body"),
        ended("/silent"),
        ended("/head"),
        ended("/continue")
    );
}

#[tokio::test]
async fn p13_endless_heads_and_trailers_end_at_their_bound() {
    let server = Server::start(|path| match path {
        "/many" => endless("HTTP/1.1 200 OK\r\n", b"x: y\r\n", Duration::ZERO),
        "/long" => endless("HTTP/1.1 200 OK\r\nx: ", &[b'y'; 1_000], Duration::ZERO),
        "/status" => endless("HTTP/1.1 200 ", &[b'y'; 1_000], Duration::ZERO),
        "/extension" => endless(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;",
            &[b'y'; 1_000],
            Duration::ZERO,
        ),
        _ => endless(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
            b"x: y\r\n",
            Duration::ZERO,
        ),
    })
    .await;
    let bench = Bench::nameless(options());
    for (path, reached) in [
        ("/many", FetchProgress::NoAnswer),
        ("/long", FetchProgress::NoAnswer),
        ("/status", FetchProgress::NoAnswer),
        ("/extension", FetchProgress::Malformed),
        ("/trailers", FetchProgress::Malformed),
    ] {
        let error = bench.fails(&server.url(path)).await;
        assert_eq!(error.reached(), Some(reached), "{path}: {error:?}");
    }
}

#[tokio::test]
async fn a_coding_that_is_not_undone_is_refused() {
    let server = Server::start(|path| {
        let header = path[1..].replace('_', ": ").replace('+', ", ");
        send(format!(
            "HTTP/1.1 200 OK\r\n{header}\r\nconnection: close\r\n\r\n0\r\n\r\n"
        ))
    })
    .await;
    let bench = Bench::nameless(options());
    for path in [
        "/content-encoding_br",
        "/content-encoding_zstd",
        "/content-encoding_x",
        "/content-encoding_gzip+br",
        "/transfer-encoding_gzip+chunked",
        "/transfer-encoding_gzip",
    ] {
        let error = bench.fails(&server.url(path)).await;
        assert!(
            matches!(error, FetchError::Unreachable(FetchCause::Encoding(_))),
            "{path}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_redirect_that_names_no_place_is_refused() {
    let server = Server::start(|path| match path {
        "/absent" => send("HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n"),
        "/binary" => send(b"HTTP/1.1 302 Found\r\nlocation: /\xff\r\ncontent-length: 0\r\n\r\n"),
        _ => send("HTTP/1.1 302 Found\r\nlocation: http://[::1\r\ncontent-length: 0\r\n\r\n"),
    })
    .await;
    let bench = Bench::nameless(options());
    for path in ["/absent", "/binary", "/malformed"] {
        let error = bench.fails(&server.url(path)).await;
        assert!(
            matches!(error, FetchError::Unreachable(_)),
            "{path}: {error:?}"
        );
    }
}

/// Never answers.
#[derive(Debug)]
struct Silent;

#[async_trait]
impl ProjectResolver for Silent {
    async fn resolve(&self, _project: &str, _host: &str) -> Result<Vec<IpAddr>, LookupError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn p09_outside_all_that_cannot_be_reached_looks_the_same() {
    let server = Server::start(|_| send("SSH-2.0-OpenSSH_9.9\r\n")).await;
    // Accepts into its backlog and never says a word: to TLS that is a filtered port.
    let mute = TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let mute_address = mute.local_addr().unwrap();
    let open = server.address.port();
    let hanging_up = Server::start(|_| Vec::new()).await;
    let hung_up = hanging_up.address.port();
    let short = || FetchOptions {
        connect_timeout: SHORT,
        ..options()
    };
    let named = || FetchOptions {
        allow_networks: [PUBLIC, "127.77.0.1:1"]
            .map(|text| text.parse().unwrap())
            .into(),
        ..options()
    };
    let public = || Bench::new(named(), Script::new(&[&[PUBLIC]]));
    let cases = [
        (
            Bench::new(short(), Script::new(&[&[PUBLIC]])),
            format!("https://mute.test:{}/", mute_address.port()),
        ),
        (public(), "http://closed.test:1/".to_owned()),
        (public(), format!("https://plain.test:{open}/")),
        (public(), format!("http://broken.test:{open}/broken")),
        (public(), format!("http://reset.test:{hung_up}/")),
    ];
    let mut causes = Vec::new();
    for (bench, url) in &cases {
        let error = bench.fails(url).await;
        // True also of a server that was reached.
        let message = "the server gave no valid HTTP answer.";
        let alike = Failure::new(FailureCode::ReferenceUnreachable, message);
        assert_eq!(error.failure(), alike, "{url}");
        assert!(error.is_transient(), "the number of tries would tell {url}");
        assert_eq!(
            error.to_string(),
            FailureCode::ReferenceUnreachable.sentence()
        );
        let cause = error.source().unwrap();
        causes.push((cause.to_string(), cause.source().map(ToString::to_string)));
    }
    let distinct: std::collections::HashSet<_> = causes.iter().collect();
    assert_eq!(
        distinct.len(),
        causes.len(),
        "the log tells them apart: {causes:?}"
    );
}

#[tokio::test]
async fn only_what_may_pass_is_worth_another_try() {
    let server = Server::start(|path| {
        let status = &path[1..];
        send(format!(
            "HTTP/1.1 {status} Status\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n"
        ))
    })
    .await;
    let bench = Bench::nameless(options());
    let transient = [408, 425, 429, 500, 502, 503, 504, 507, 520, 522, 599];
    let persistent = [
        201, 204, 206, 304, 400, 401, 403, 404, 405, 406, 410, 418, 451, 501, 505,
    ];
    let statuses = transient.into_iter().chain(persistent);
    for status in statuses {
        let error = bench.fails(&server.url(&format!("/{status}"))).await;
        assert_eq!(error.reached(), Some(FetchProgress::Answered(status)));
        assert_eq!(
            error.is_transient(),
            transient.contains(&status),
            "{status}"
        );
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        assert!(error.is_of_reference());
    }
}

#[tokio::test]
async fn what_the_caller_can_mend_is_told() {
    let server = Server::start(|path| match path {
        "/gone" => send("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n"),
        "/packed" => send("HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\nx"),
        "/large" => send("HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\nx"),
        "/round" => send("HTTP/1.1 302 Found\r\nlocation: /round\r\n\r\n"),
        "/nowhere" => send("HTTP/1.1 302 Found\r\n\r\n"),
        _ => send("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
    })
    .await;
    for (path, message) in [
        ("/missing?signature=secret", "the server answered 404."),
        ("/gone", "the server answered 410."),
        ("/packed", "the server sent the file compressed by br."),
        ("/large", "the file is larger than allowed."),
        ("/round", "the server redirects more than 5 times."),
        (
            "/nowhere",
            "the server sent a redirect without a valid location.",
        ),
    ] {
        let error = Bench::nameless(options()).fails(&server.url(path)).await;
        assert_eq!(error.failure().message, message, "{path}: {error:?}");
        assert!(!error.is_transient(), "{path}: it does not pass");
    }
    for answers in [&[][..], &[&[][..]]] {
        let bench = Bench::new(options(), Script::new(answers));
        let error = bench.fails("http://unknown.test/").await;
        assert_eq!(error.failure().message, "the host name does not exist.");
        assert_eq!(error.reached(), Some(FetchProgress::NoSuchHost));
        assert!(!error.is_transient(), "{error:?}");
    }
    let hasty = FetchOptions {
        lookup_timeout: SHORT,
        ..options()
    };
    let error = Bench::new(hasty, Arc::new(Silent))
        .fails("http://slow.test/")
        .await;
    assert_eq!(
        error.failure().message,
        "the host name could not be looked up."
    );
    assert!(error.is_transient(), "{error:?}");
    let error = Bench::nameless(options()).fails("not a URL").await;
    assert_eq!(error.failure().message, "the URL cannot be requested.");
    assert!(error.is_of_reference(), "{error:?}");
}

#[tokio::test]
async fn p09_a_forbidden_address_looks_the_same_whatever_listens_there() {
    let open = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed_address = closed.local_addr().unwrap();
    drop(closed);
    let urls = [
        format!("http://{}/", open.local_addr().unwrap()),
        format!("http://{closed_address}/"),
        "http://127.0.0.1:22/".to_owned(),
        "http://10.0.0.1/".to_owned(),
    ];
    for url in urls {
        let error = Bench::nameless(FetchOptions::default()).fails(&url).await;
        let message = "the URL leads to an address that is not allowed.";
        let alike = Failure::new(FailureCode::ReferenceForbiddenAddress, message);
        assert_eq!(error.failure(), alike, "{url}");
        assert!(!error.is_transient(), "{url}");
    }
}

#[tokio::test]
async fn a_fetch_that_is_given_up_leaves_no_file() {
    let server = Server::start(|_| held("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome")).await;
    let bench = Bench::nameless(options());
    let (url, file) = (server.url("/"), bench.file());
    {
        let request = request(&url, &file, 100);
        let fetch = bench.fetcher.fetch(&request);
        tokio::pin!(fetch);
        while bench.leftovers() == 0 {
            let waited = tokio::time::timeout(TICK, &mut fetch).await;
            assert!(waited.is_err(), "the body never ends");
        }
    }
    // The thread that opens the file may still hold it, and then removes it. Only a failing test waits to the end.
    for _ in 0..6_000 {
        if bench.leftovers() == 0 {
            return;
        }
        tokio::time::sleep(TICK).await;
    }
    panic!("the file stays");
}
