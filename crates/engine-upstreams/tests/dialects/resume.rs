//! A ticket that was kept is polled on; a cancel reaches the upstream, and a dropped run does not.

use std::sync::Arc;

use kinora_contract::FailureCode;
use kinora_engine_upstreams::dialects::{RemoteTicket, UpstreamError};
use tokio::sync::Notify;

use crate::common::MP4;
use crate::server::{Server, Step, answer, task, well};
use crate::support::{Stage, is_absent, request};

const SUBMIT: &str = "POST /v1/videos";

fn ticket(upstream: &str, id: &str) -> RemoteTicket {
    RemoteTicket::new(upstream, id)
}

#[tokio::test]
async fn a_kept_ticket_is_polled_on_at_its_own_upstream_and_nothing_is_paid_twice() {
    let servers = [Server::well("x", MP4).await, Server::well("t", MP4).await];
    let stage = Stage::new("openai", &[&servers[0], &servers[1]]);
    let kept = serde_json::to_string(&ticket("b", "t")).unwrap();
    let kept: RemoteTicket = serde_json::from_str(&kept).unwrap();
    stage.run_request(&request(), Some(kept)).await.unwrap();
    assert_eq!(std::fs::read(stage.result()).unwrap(), MP4);
    assert!(servers[0].seen().is_empty());
    assert_eq!(servers[1].count(SUBMIT), 0);
    assert!(
        stage.shelf.accepted().is_empty(),
        "there is nothing new to keep"
    );
}

#[tokio::test]
async fn a_submit_that_may_be_charged_is_not_repeated_after_a_death_in_the_middle_of_it() {
    for (dialect, submits) in [("openai", 1), ("vllm-omni", 2), ("kinora", 2)] {
        let server = Server::start(|seen, before| match (seen.line.as_str(), before) {
            (SUBMIT, 0) => vec![Step::Hold],
            _ => well("t", MP4, seen, before),
        })
        .await;
        let stage = Stage::new(dialect, &[&server]);
        {
            let run = stage.run();
            tokio::pin!(run);
            let reached = async {
                while server.count(SUBMIT) == 0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                _ = &mut run => panic!("nobody answers"),
                () = reached => {}
            }
        }
        let kept = stage.shelf.last();
        let again = stage.run_request(&request(), kept).await;
        assert_eq!(server.count(SUBMIT), submits, "{dialect}");
        match again {
            Err(UpstreamError::Interrupted) => assert_eq!(dialect, "openai"),
            again => assert_eq!(again.unwrap(), MP4.len() as u64, "{dialect}"),
        }
    }
}

#[tokio::test]
async fn a_submit_that_nobody_accepted_leaves_no_note_of_it() {
    let busy = Server::start(|_, _| answer(429, "retry-after: 1\r\n", "later")).await;
    let stage = Stage::new("openai", &[&busy]);
    let error = stage.run().await.unwrap_err();
    assert!(matches!(error, UpstreamError::NoPlace(_)), "{error:?}");
    assert!(busy.count(SUBMIT) > 0);
    assert_eq!(stage.shelf.last(), None);
}

#[tokio::test]
async fn a_task_that_its_upstream_forgot_is_submitted_once_more_and_no_more() {
    let restarted = Server::start(|seen, before| match seen.line.as_str() {
        "GET /v1/videos/old" => answer(404, "", r#"{"detail":"Video not found"}"#),
        _ => well("new", MP4, seen, before),
    })
    .await;
    let stage = Stage::new("vllm-omni", &[&restarted]);
    stage
        .run_request(&request(), Some(ticket("a", "old")))
        .await
        .unwrap();
    assert_eq!(
        restarted.count("GET /v1/videos/old"),
        2,
        "once may be a moment"
    );
    assert_eq!(stage.shelf.accepted(), [ticket("a", "new")]);

    let forgetful = Server::start(|seen, before| match seen.line.as_str() {
        SUBMIT => task("t", "queued", 0),
        "GET /v1/videos/t" => answer(404, "", ""),
        _ => well("t", MP4, seen, before),
    })
    .await;
    let error = Stage::new("vllm-omni", &[&forgetful])
        .run()
        .await
        .unwrap_err();
    assert!(matches!(error, UpstreamError::Forgotten(_)), "{error:?}");
    assert_eq!(forgetful.count(SUBMIT), 2);
}

#[tokio::test]
async fn a_ticket_of_an_upstream_that_is_configured_no_more_is_submitted_anew() {
    let server = Server::well("t", MP4).await;
    let stage = Stage::new("vllm-omni", &[&server]);
    stage
        .run_request(&request(), Some(ticket("gone", "old")))
        .await
        .unwrap();
    assert_eq!(stage.shelf.accepted(), [ticket("a", "t")]);
}

#[tokio::test]
async fn a_lost_task_that_may_be_paid_is_never_submitted_again() {
    let server = Server::start(|seen, before| match seen.line.as_str() {
        "GET /v1/videos/old" => answer(404, "", ""),
        _ => well("t", MP4, seen, before),
    })
    .await;
    for upstream in ["a", "gone"] {
        let stage = Stage::new("openai", &[&server]);
        let kept = Some(ticket(upstream, "old"));
        let error = stage.run_request(&request(), kept).await.unwrap_err();
        assert!(matches!(&error, UpstreamError::Lost(name) if name == upstream));
        assert!(error.to_string().contains("not submitted again"), "{error}");
    }
    assert_eq!(server.count(SUBMIT), 0);
}

/// Its key is known to that server alone: another one would make a second task.
#[tokio::test]
async fn a_lost_task_with_a_key_is_submitted_again_at_its_own_upstream_alone() {
    let other = Server::well("u", MP4).await;
    let own = Server::start(|seen, before| match seen.line.as_str() {
        "GET /v1/videos/old" => answer(404, "", ""),
        _ => well("t", MP4, seen, before),
    })
    .await;
    let stage = Stage::new("kinora", &[&other, &own]);
    let kept = Some(ticket("b", "old"));
    stage.run_request(&request(), kept).await.unwrap();
    assert_eq!(stage.shelf.accepted(), [ticket("b", "t")]);
    let kept = Some(ticket("gone", "old"));
    let error = stage.run_request(&request(), kept).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Forgotten(_)), "{error:?}");
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_ticket_is_kept_before_the_first_poll_or_the_task_is_cancelled() {
    let server = Server::well("t", MP4).await;
    let mut stage = Stage::new("kinora", &[&server]);
    stage.shelf.refuses = true;
    let error = stage.run().await.unwrap_err();
    assert!(matches!(error, UpstreamError::NotKept(_)), "{error:?}");
    assert_eq!(error.code(), FailureCode::StorageFailed);
    assert_eq!(server.lines(), [SUBMIT, "POST /v1/videos/t/cancel"]);
}

#[tokio::test]
async fn a_cancel_while_the_task_runs_reaches_the_upstream() {
    let server = Server::start(|seen, before| match seen.line.as_str() {
        "GET /v1/videos/t" => task("t", "in_progress", 50),
        _ => well("t", MP4, seen, before),
    })
    .await;
    let mut stage = Stage::new("kinora", &[&server]);
    stage.cancels_at = Some(2);
    let error = stage.run().await.unwrap_err();
    assert!(matches!(error, UpstreamError::Cancelled), "{error:?}");
    assert_eq!(
        server.lines(),
        [SUBMIT, "GET /v1/videos/t", "POST /v1/videos/t/cancel"]
    );
}

#[tokio::test]
async fn a_cancel_while_the_result_comes_leaves_no_file() {
    let server = Server::start(|seen, before| match seen.line.as_str() {
        "GET /v1/videos/t" => task("t", "completed", 100),
        "GET /v1/videos/t/content" => vec![
            Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\npart".to_vec()),
            Step::Hold,
        ],
        _ => well("t", MP4, seen, before),
    })
    .await;
    let mut stage = Stage::new("vllm-omni", &[&server]);
    let job = stage.remote.submit(&request()).await.unwrap();
    let kept = job.ticket().clone();
    stage.cancels_at = Some(1);
    let error = stage.run_request(&request(), Some(kept)).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Cancelled), "{error:?}");
    assert!(is_absent(&stage.result()));
    assert_eq!(server.lines().last().unwrap(), "DELETE /v1/videos/t");
}

#[tokio::test]
async fn a_cancel_while_the_submit_is_on_its_way_stops_what_was_taken() {
    let (arrived, gate) = (
        Arc::new(Notify::new()),
        tokio_util::sync::CancellationToken::new(),
    );
    let (told, token) = (Arc::clone(&arrived), gate.clone());
    let server = Server::start(move |seen, before| {
        if seen.line == SUBMIT {
            // The client cancels before it has the answer.
            told.notify_one();
            token.cancel();
        }
        well("t", MP4, seen, before)
    })
    .await;
    let mut stage = Stage::new("kinora", &[&server]);
    stage.cancel = gate;
    let error = stage.run().await.unwrap_err();
    arrived.notified().await;
    assert!(matches!(error, UpstreamError::Cancelled), "{error:?}");
    assert_eq!(server.lines(), [SUBMIT, "POST /v1/videos/t/cancel"]);
}

#[tokio::test]
async fn a_cancel_before_anything_was_sent_sends_nothing() {
    let busy = Server::start(|_, _| answer(429, "", "")).await;
    let stage = Stage::new("kinora", &[&busy]);
    stage.cancel.cancel();
    let error = stage.run().await.unwrap_err();
    assert!(matches!(error, UpstreamError::Cancelled), "{error:?}");
    assert!(busy.seen().is_empty());
}

#[tokio::test]
async fn a_dropped_run_tells_the_upstream_nothing_and_is_followed_later() {
    let polled = Arc::new(Notify::new());
    let told = Arc::clone(&polled);
    let server = Server::start(move |seen, before| match (seen.line.as_str(), before) {
        ("GET /v1/videos/t", 0) => {
            told.notify_one();
            vec![Step::Hold]
        }
        ("GET /v1/videos/t", _) => task("t", "completed", 100),
        _ => well("t", MP4, seen, before),
    })
    .await;
    let stage = Stage::new("kinora", &[&server]);
    tokio::select! {
        ended = stage.run() => panic!("{ended:?}"),
        () = polled.notified() => {}
    }
    let kept = stage.shelf.last();
    stage.run_request(&request(), kept).await.unwrap();
    assert_eq!(
        server.lines(),
        [
            SUBMIT,
            "GET /v1/videos/t",
            "GET /v1/videos/t",
            "GET /v1/videos/t/content"
        ]
    );
}
