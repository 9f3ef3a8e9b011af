//! Bad weather: upstreams that are busy, broken, gone, or talk nonsense. The task is kept, politely
//! and within bounds, and is never submitted where it may be running already.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kinora_contract::FailureCode;
use kinora_engine_upstreams::dialects::{
    CallError, KeySource, NamedServer, RemoteOptions, RemoteServers, ServerOptions, UpstreamError,
};
use kinora_http::ExchangeError;

use crate::common::{JumpTimer, MP4, clock};
use crate::server::{Server, Step, answer, task, well};
use crate::support::{Stage, built_in, request};

const SUBMIT: &str = "POST /v1/videos";

#[tokio::test]
async fn a_storm_of_429_is_waited_out_as_long_as_each_asks() {
    let server = Server::start(|seen, before| match seen.line.as_str() {
        SUBMIT if before < 6 => answer(429, "retry-after: 7\r\n", "{}"),
        "GET /v1/videos/t" if before == 1 => answer(429, "retry-after-ms: 9500\r\n", "{}"),
        _ => well("t", MP4, seen, before),
    })
    .await;
    let stage = Stage::new("openai", &[&server]);
    stage.run().await.unwrap();
    assert_eq!(server.count(SUBMIT), 7);
    let waits = stage.timer.waits();
    assert!(
        waits[..6].iter().all(|wait| wait.as_secs() >= 7),
        "{waits:?}"
    );
    assert!(waits.contains(&Duration::from_millis(9_500)), "{waits:?}");
}

#[tokio::test]
async fn a_storm_without_end_ends_the_run_within_its_bound() {
    let server = Server::start(|_, _| answer(429, "retry-after: 3600\r\n", "{}")).await;
    let stage = Stage::with("openai", &[&server], |options| {
        options.servers.silence_max = Duration::from_secs(100);
    });
    let error = stage.run().await.unwrap_err();
    // Nothing was begun: the task goes back to the queue.
    assert!(matches!(error, UpstreamError::NoPlace(_)), "{error:?}");
    let waited: Duration = stage.timer.waits().iter().sum();
    assert_eq!(waited, Duration::from_secs(100));
    assert_eq!(server.count(SUBMIT), 1, "nobody is asked before they wish");
}

#[tokio::test]
async fn what_one_upstream_will_not_take_the_next_one_gets() {
    for status in [301, 401, 402, 404, 429, 500, 503, 529] {
        let unwilling = Server::start(move |_, _| answer(status, "", "no")).await;
        let willing = Server::well("t", MP4).await;
        let stage = Stage::new("openai", &[&unwilling, &willing]);
        stage.run().await.unwrap();
        assert_eq!(stage.shelf.accepted()[0].upstream, "b", "{status}");
        assert_eq!(unwilling.seen().len(), 1, "{status}");
        assert_eq!(stage.timer.waits().len(), 2, "only between polls");
    }
}

#[tokio::test]
async fn a_request_that_is_wrong_is_offered_to_nobody_else() {
    let server = Server::start(|_, _| answer(400, "", r#"{"error":{"message":"size"}}"#)).await;
    let other = Server::well("t", MP4).await;
    let error = Stage::new("openai", &[&server, &other])
        .run()
        .await
        .unwrap_err();
    let UpstreamError::Refused(CallError::Status { status: 400, text }) = &error else {
        panic!("{error:?}");
    };
    assert!(text.contains("size"));
    assert_eq!(error.code(), FailureCode::GenerationFailed);
    assert!(other.seen().is_empty());
}

/// Answers to a submit after which nobody knows whether it was taken.
fn unsettled() -> [Vec<Step>; 5] {
    [
        answer(502, "", "bad gateway"),
        answer(504, "", "gateway timeout"),
        vec![Step::Close],
        vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec()),
            Step::Close,
        ],
        answer(200, "", "<html>"),
    ]
}

#[tokio::test]
async fn a_submit_of_unknown_fate_is_repeated_only_where_that_is_free_or_safe() {
    for steps in unsettled() {
        let start = || {
            let steps = steps.clone();
            Server::start(move |seen, before| match (seen.line.as_str(), before) {
                (SUBMIT, 0) => steps.clone(),
                _ => well("t", MP4, seen, before),
            })
        };
        let (paid, other) = (start().await, Server::well("u", MP4).await);
        let error = Stage::new("openai", &[&paid, &other])
            .run()
            .await
            .unwrap_err();
        assert!(
            matches!(error, UpstreamError::Unsettled { .. }),
            "{error:?}"
        );
        assert_eq!((paid.count(SUBMIT), other.count(SUBMIT)), (1, 0));

        let (own, other) = (start().await, Server::well("u", MP4).await);
        let stage = Stage::new("vllm-omni", &[&own, &other]);
        stage.run().await.unwrap();
        assert_eq!((own.count(SUBMIT), other.count(SUBMIT)), (1, 1));

        // The other one comes first and is busy for a moment: it would be the next choice.
        let other = Server::start(|seen, before| match (seen.line.as_str(), before) {
            (SUBMIT, 0) => answer(429, "", ""),
            _ => well("u", MP4, seen, before),
        })
        .await;
        let keyed = start().await;
        let stage = Stage::new("kinora", &[&other, &keyed]);
        stage.run().await.unwrap();
        assert_eq!((other.count(SUBMIT), keyed.count(SUBMIT)), (1, 2));
        let seen = keyed.seen();
        assert_eq!(
            seen[0].header("idempotency-key"),
            seen[1].header("idempotency-key")
        );
        assert_eq!(seen[0].body, seen[1].body);
    }
}

#[tokio::test]
async fn a_submit_that_is_never_answered_is_given_up_in_time() {
    let server = Server::start(|_, _| vec![Step::Hold]).await;
    let stage = Stage::with("openai", &[&server], |options| {
        options.servers.submit_timeout = Duration::from_millis(200);
    });
    let error = stage.run().await.unwrap_err();
    let UpstreamError::Unsettled {
        cause: CallError::Exchange(ExchangeError::Timeout(_)),
        ..
    } = error
    else {
        panic!("{error:?}");
    };
}

#[tokio::test]
async fn polling_goes_on_through_errors_nonsense_and_a_moment_of_not_knowing() {
    let server = Server::start(|seen, before| match (seen.line.as_str(), before) {
        ("GET /v1/videos/t", 0) => answer(404, "", r#"{"detail":"Video not found"}"#),
        ("GET /v1/videos/t", 1) => answer(500, "", "trace"),
        ("GET /v1/videos/t", 2) => vec![Step::Close],
        ("GET /v1/videos/t", 3) => answer(200, "", "{\"id\":"),
        ("GET /v1/videos/t", 4) => answer(200, "", r#"{"id":"t"}"#),
        ("GET /v1/videos/t", 5) => task("another", "completed", 100),
        ("GET /v1/videos/t", 6) => task("t", "pondering", 0),
        ("GET /v1/videos/t", 7) => answer(302, "location: /elsewhere\r\n", ""),
        ("GET /v1/videos/t", 8) => answer(200, "", vec![b' '; 2 << 20]),
        ("GET /v1/videos/t", 9) => task("t", "completed", 100),
        _ => well("t", MP4, seen, before),
    })
    .await;
    let stage = Stage::new("openai", &[&server]);
    stage.run().await.unwrap();
    assert_eq!(server.count(SUBMIT), 1);
    assert_eq!(server.count("GET /v1/videos/t"), 10);
    assert_eq!(server.count("GET /elsewhere"), 0);
}

#[tokio::test]
async fn an_upstream_that_only_talks_nonsense_is_silent_and_is_told_that_nobody_waits() {
    for nonsense in [
        answer(200, "", "[]"),
        answer(503, "", "no"),
        task("t", "pondering", 50),
    ] {
        let server = Server::start(move |seen, before| match seen.line.as_str() {
            "GET /v1/videos/t" => nonsense.clone(),
            _ => well("t", MP4, seen, before),
        })
        .await;
        let stage = Stage::new("openai", &[&server]);
        let error = stage.run().await.unwrap_err();
        assert!(matches!(error, UpstreamError::Silent { .. }), "{error:?}");
        let waited: Duration = stage.timer.waits().iter().sum();
        assert!(waited <= Duration::from_secs(302), "{waited:?}");
        assert_eq!(server.lines().last().unwrap(), "DELETE /v1/videos/t");
    }
}

#[tokio::test]
async fn a_task_that_never_ends_is_ended() {
    let server = Server::start(|seen, before| match seen.line.as_str() {
        "GET /v1/videos/t" => task("t", "in_progress", 50),
        _ => well("t", MP4, seen, before),
    })
    .await;
    let stage = Stage::with("vllm-omni", &[&server], |options| {
        options.servers.run_max = Duration::from_mins(2);
    });
    let error = stage.run().await.unwrap_err();
    assert!(matches!(error, UpstreamError::Overdue(_)), "{error:?}");
    assert_eq!(server.count("GET /v1/videos/t"), 60);
    assert_eq!(server.lines().last().unwrap(), "DELETE /v1/videos/t");
}

/// Its result comes so slowly that the time is over: the bytes are no signs of life any more.
#[tokio::test]
async fn a_result_that_takes_too_long_is_no_sign_of_life() {
    for (run_max, alive) in [(Duration::from_mins(9), 4), (Duration::from_mins(2), 3)] {
        let timer = Arc::new(OnceLock::<Arc<JumpTimer>>::new());
        let of_server = timer.clone();
        let server = Server::start(move |seen, before| {
            if seen.line == "GET /v1/videos/t/content" {
                of_server.get().unwrap().advance(Duration::from_mins(3));
            }
            well("t", MP4, seen, before)
        })
        .await;
        let stage = Stage::with("vllm-omni", &[&server], |options| {
            options.servers.run_max = run_max;
        });
        timer.set(stage.timer.clone()).unwrap();
        stage.run().await.unwrap();
        assert_eq!(stage.control.progress.reports(), alive);
    }
}

#[tokio::test]
async fn a_broken_upstream_is_left_out_probed_and_comes_back() {
    let broken = Server::start(|seen, before| match (seen.line.as_str(), before) {
        (SUBMIT, 0..3) | ("GET /v1/videos?limit=1", 0) => answer(500, "", "down"),
        _ => well("t", MP4, seen, before),
    })
    .await;
    let other = Server::well("u", MP4).await;
    let stage = Stage::new("openai", &[&broken, &other]);
    let mut jobs = Vec::new();
    let mut submit = async || {
        // Long enough for any back-off to be over.
        stage.timer.advance(Duration::from_mins(5));
        let job = stage.remote.submit(&request()).await.unwrap();
        let upstream = job.ticket().upstream.clone();
        // An idle upstream that never failed would come first.
        jobs.push(job);
        upstream
    };
    for _ in 0..3 {
        assert_eq!(submit().await, "b");
    }
    assert_eq!(submit().await, "b", "left out: the probe found it down");
    assert_eq!(broken.count(SUBMIT), 3);
    assert_eq!(submit().await, "a", "the second probe found it back");
    assert_eq!(broken.count("GET /v1/videos?limit=1"), 2);
}

#[tokio::test]
async fn a_closed_port_costs_nothing_but_the_next_upstream() {
    let gone = Server::well("t", MP4).await;
    let upstream = gone.upstream("a");
    drop(gone);
    let other = Server::well("u", MP4).await;
    let stage = Stage::with("openai", &[&other], |options| {
        options.servers.servers = vec![upstream, other.upstream("b")];
    });
    let job = stage.remote.submit(&request()).await.unwrap();
    assert_eq!(job.ticket().upstream, "b");
}

#[tokio::test]
async fn tasks_go_to_the_least_busy_upstream() {
    let servers = [Server::well("t", MP4).await, Server::well("u", MP4).await];
    let stage = Stage::new("openai", &[&servers[0], &servers[1]]);
    let submit = async || stage.remote.submit(&request()).await.unwrap();
    let mut jobs = Vec::new();
    for expected in ["a", "b", "a", "b"] {
        jobs.push(submit().await);
        assert_eq!(jobs.last().unwrap().ticket().upstream, expected);
    }
    drop(jobs.remove(1));
    jobs.push(submit().await);
    assert_eq!(jobs[3].ticket().upstream, "b", "a place was given back");
    drop(jobs.remove(3));
    let _resumed = stage.remote.resume(jobs[2].ticket()).unwrap();
    let _another = stage.remote.resume(jobs[2].ticket()).unwrap();
    assert_eq!(
        submit().await.ticket().upstream,
        "a",
        "a resumed task counts"
    );
}

#[tokio::test]
async fn polls_share_a_connection_and_a_submit_never_goes_over_an_old_one() {
    let server = Server::well("t", MP4).await;
    let stage = Stage::new("openai", &[&server]);
    stage.run().await.unwrap();
    let _job = stage.remote.submit(&request()).await.unwrap();
    let seen = server.seen();
    assert!(seen.iter().any(|one| one.is_kept_connection));
    let submits = seen.iter().filter(|one| one.line == SUBMIT);
    assert!(submits.map(|one| one.is_kept_connection).eq([false, false]));
}

#[tokio::test]
async fn https_is_spoken_to_a_trusted_authority_only() {
    let identity = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let server = Server::with_tls(&identity, |seen, before| well("t", MP4, seen, before)).await;
    let trusting = Stage::with("openai", &[&server], |options| {
        options.servers.extra_roots_pem = Some(identity.cert.pem().into_bytes());
    });
    trusting.run().await.unwrap();
    assert_eq!(std::fs::read(trusting.result()).unwrap(), MP4);
    let distrusting = Stage::new("openai", &[&server]);
    let error = distrusting.remote.submit(&request()).await.unwrap_err();
    let UpstreamError::Busy {
        cause: CallError::Exchange(ExchangeError::Connect(_)),
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(server.count(SUBMIT), 1);
}

#[tokio::test]
async fn a_key_that_was_changed_is_read_again() {
    let server = Server::start(|seen, before| match seen.header("authorization") {
        Some("Bearer new") => well("t", MP4, seen, before),
        _ => answer(401, "", "{}"),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "old\n").unwrap();
    let stage = Stage::with("openai", &[&server], |options| {
        options.servers.key = KeySource::File(path.clone());
    });
    let error = stage.remote.submit(&request()).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Busy { .. }), "{error:?}");
    std::fs::write(&path, "new\n").unwrap();
    stage.timer.advance(Duration::from_mins(5));
    stage.run().await.unwrap();
}

#[test]
fn options_that_cannot_work_are_refused_at_the_start() {
    let upstream = NamedServer {
        name: "a".to_owned(),
        base_url: "ftp://h/v1".to_owned(),
    };
    let options = RemoteOptions::new(built_in("openai"), ServerOptions::new(vec![upstream]));
    let timer = Arc::new(JumpTimer::default());
    let error = RemoteServers::new(options, timer, clock()).unwrap_err();
    assert!(error.to_string().contains("ftp://h/v1"));
}
