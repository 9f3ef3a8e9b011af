//! Following a task: by events, by polls where there are none, and through outages.

use std::time::Duration;

use kinora_client::{Client, Status};

use crate::server::{HOLD, Server, answer, refused, said, task};

fn events(parts: &[(&str, &str, u32)]) -> Vec<u8> {
    let mut text = String::from(": hello\n\n");
    for (id, status, progress) in parts {
        let data = task(status, *progress);
        text.push_str(&format!("id: {id}\nevent: video.updated\ndata: {data}\n\n"));
    }
    answer(200, "Content-Type: text/event-stream\r\n", text)
}

async fn progress(client: &Client) -> Vec<u8> {
    let mut watch = client.watch("video_x");
    let mut seen = Vec::new();
    while let Some(video) = watch.next().await.unwrap() {
        seen.push(video.progress);
    }
    seen
}

#[tokio::test]
async fn events_are_followed_to_a_final_state() {
    let server = Server::start(|_, _| {
        events(&[
            ("1", "queued", 0),
            ("2", "in_progress", 40),
            ("3", "completed", 100),
        ])
    })
    .await;
    assert_eq!(progress(&server.client()).await, [0, 40, 100]);
    assert_eq!(server.lines(), ["GET /v1/videos/video_x/events"]);
    let first = &server.seen()[0];
    assert_eq!(first.header("accept"), Some("text/event-stream"));
}

#[tokio::test]
async fn a_broken_stream_goes_on_after_its_last_event() {
    let server = Server::start(
        |seen, number| match (number, seen.line.contains("events")) {
            (0, _) => events(&[("1", "queued", 0), ("2", "in_progress", 40)]),
            (_, false) => said(&task("in_progress", 40)),
            (_, true) => events(&[("3", "failed", 40)]),
        },
    )
    .await;
    let mut watch = server.client().watch("video_x");
    let mut last = None;
    let mut updates = 0;
    while let Some(video) = watch.next().await.unwrap() {
        (last, updates) = (Some(video), updates + 1);
    }
    assert_eq!(last.unwrap().status, Status::Failed);
    assert_eq!(updates, 3, "what has not changed is no update");
    assert_eq!(
        server.lines(),
        [
            "GET /v1/videos/video_x/events",
            "GET /v1/videos/video_x",
            "GET /v1/videos/video_x/events"
        ]
    );
    assert_eq!(server.seen()[2].header("last-event-id"), Some("2"));
}

#[tokio::test]
async fn a_stream_that_tells_changes_only_is_asked_by_a_poll_first() {
    let server = Server::start(|seen, _| match seen.line.contains("events") {
        true => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{HOLD}\r\n");
            [head.as_bytes(), b": hello\n\n"].concat()
        }
        false => said(&task("completed", 100)),
    })
    .await;
    assert_eq!(progress(&server.client()).await, [100]);
    assert_eq!(
        server.lines(),
        ["GET /v1/videos/video_x/events", "GET /v1/videos/video_x"]
    );
}

#[tokio::test]
async fn a_service_without_events_is_polled() {
    for no_events in [404, 405, 406] {
        let server = Server::start(move |_, number| match number {
            0 => refused(no_events, "not_found", ""),
            1 | 2 => answer(
                200,
                "openai-poll-after-ms: 1\r\n",
                task("in_progress", number as u32).to_string(),
            ),
            // An outage in the middle is waited out.
            3 => Vec::new(),
            4 => refused(503, "storage_unavailable", "Retry-After: 0\r\n"),
            _ => said(&task("completed", 100)),
        })
        .await;
        assert_eq!(progress(&server.client()).await, [1, 2, 100]);
        let seen = server.seen();
        assert_eq!(
            seen[1].header("prefer"),
            None,
            "the first answer comes at once"
        );
        assert_eq!(seen[2].header("prefer"), Some("wait=30"));
    }
}

#[tokio::test]
async fn an_outage_that_does_not_end_ends_the_wait() {
    let server = Server::start(|_, _| refused(503, "shutting_down", "Retry-After: 0\r\n")).await;
    let client = server
        .builder()
        .outage_max(Duration::from_secs(3))
        .build()
        .unwrap();
    let error = client.wait("video_x").await.unwrap_err();
    assert_eq!(error.code(), Some("shutting_down"));
    assert!(server.lines().len() > 2, "it tried again");
}

#[tokio::test]
async fn a_task_that_is_not_there_is_an_error_at_once() {
    let server = Server::start(|_, _| refused(404, "video_not_found", "")).await;
    let error = server.client().wait("video_x").await.unwrap_err();
    assert_eq!(error.code(), Some("video_not_found"));
    assert_eq!(server.lines().len(), 2, "the events, and one poll");
}
