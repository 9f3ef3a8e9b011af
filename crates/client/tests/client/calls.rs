//! Single calls: what is sent, what is repeated, and what a refusal says.

use kinora_client::{Edit, Error, NewVideo};
use serde_json::{Value, json};

use crate::server::{KEY, Server, answer, refused, said, task};

#[tokio::test]
async fn a_submit_whose_answer_was_lost_is_repeated_under_the_same_key() {
    let server = Server::start(|_, number| match number {
        // No answer at all, then a queue that is full for a moment.
        0 => Vec::new(),
        1 => refused(429, "queue_full", "Retry-After: 0\r\n"),
        _ => said(&task("queued", 0)),
    })
    .await;
    let video = NewVideo::new("kinora-a1", "A boat").seconds(3);
    let made = server.client().submit(&video).await.unwrap();
    assert_eq!(made.id, "video_x");
    let seen = server.seen();
    assert_eq!(server.lines(), ["POST /v1/videos"; 3]);
    let key = seen[0].header("idempotency-key").unwrap();
    assert_eq!(key.len(), 32);
    for one in &seen {
        assert_eq!(one.header("idempotency-key"), Some(key));
        assert_eq!(
            one.header("authorization").unwrap(),
            format!("Bearer {KEY}")
        );
        let body: Value = serde_json::from_str(&one.body).unwrap();
        assert_eq!(
            body,
            json!({"model": "kinora-a1", "prompt": "A boat", "seconds": 3})
        );
    }
    server.client().submit(&video).await.unwrap();
    let fresh = server.seen()[3]
        .header("idempotency-key")
        .unwrap()
        .to_owned();
    assert_ne!(fresh, key, "another submit is another task");
    server
        .client()
        .submit(&video.idempotency_key("mine"))
        .await
        .unwrap();
    assert_eq!(server.seen()[4].header("idempotency-key"), Some("mine"));
}

#[tokio::test]
async fn a_refusal_is_typed_and_not_repeated() {
    let server = Server::start(|_, _| refused(400, "invalid_value", "X-Request-Id: r-1\r\n")).await;
    let error = server
        .client()
        .submit(&NewVideo::new("m", "p"))
        .await
        .unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(
        (
            refusal.status,
            refusal.code.as_str(),
            refusal.param.as_deref(),
            refusal.request_id.as_deref()
        ),
        (400, "invalid_value", Some("size"), Some("r-1"))
    );
    assert_eq!(error.to_string(), "No. (invalid_value, request r-1)");
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn repeats_end_and_are_not_made_where_the_service_forbids_them() {
    let server = Server::start(|seen, _| match seen.line.as_str() {
        "GET /v1/models" => answer(502, "", "<html>\n  Bad gateway"),
        _ => refused(429, "storage_quota_exceeded", "X-Should-Retry: false\r\n"),
    })
    .await;
    let client = server.builder().retries(1).build().unwrap();
    let error = client.models().await.unwrap_err();
    assert_eq!(error.code(), None);
    assert_eq!(error.to_string(), "<html> Bad gateway (HTTP 502)");
    assert_eq!(server.lines().len(), 2);
    client.get("video_x").await.unwrap_err();
    assert_eq!(server.lines().len(), 3);
}

#[tokio::test]
async fn a_service_that_is_not_there_is_told_from_one_that_refuses() {
    let server = Server::start(|_, _| said(&json!({"mood": "calm"}))).await;
    let error = server.client().get("video_x").await.unwrap_err();
    assert!(matches!(error, Error::Answer(_)), "{error:?}");
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let client = kinora_client::Client::builder(&url)
        .retries(0)
        .build()
        .unwrap();
    let error = client.models().await.unwrap_err();
    assert!(
        matches!(&error, Error::Connect { origin, .. } if *origin == url),
        "{error:?}"
    );
    assert!(error.advice().is_some());
}

#[tokio::test]
async fn finals_and_edits_name_their_source() {
    let server = Server::start(|_, _| said(&task("completed", 100))).await;
    let client = server.client();
    client.final_of("video_d").await.unwrap();
    client
        .edit(&Edit::new("video_s", "at night").strength(0.5))
        .await
        .unwrap();
    assert_eq!(
        server.lines(),
        [
            "GET /v1/videos/video_d",
            "POST /v1/videos",
            "POST /v1/videos/edits"
        ]
    );
    let body = |number: usize| serde_json::from_str::<Value>(&server.seen()[number].body).unwrap();
    // The draft as the service names it.
    assert_eq!(
        body(1),
        json!({"model": "kinora-a1", "draft_task_id": "video_x"})
    );
    assert_eq!(
        body(2),
        json!({"prompt": "at night", "video": {"id": "video_s"}, "edit_strength": 0.5})
    );
}

#[tokio::test]
async fn a_cancelled_task_may_be_cancelled_again_and_a_completed_one_not() {
    for (code, is_cancelled) in [("cancelled", true), ("generation_failed", false)] {
        let server = Server::start(move |seen, _| match seen.line.starts_with("POST") {
            true => refused(409, "not_cancellable", "X-Should-Retry: false\r\n"),
            false => {
                let mut failed = task("failed", 3);
                failed["error"] = json!({"code": code, "message": "Why."});
                said(&failed)
            }
        })
        .await;
        let cancelled = server.client().cancel("video_x").await;
        assert_eq!(cancelled.is_ok(), is_cancelled, "{cancelled:?}");
        assert_eq!(
            server.lines(),
            ["POST /v1/videos/video_x/cancel", "GET /v1/videos/video_x"]
        );
    }
}

#[tokio::test]
async fn a_list_is_read_page_by_page_also_over_short_ones() {
    let page = |ids: &[&str], last: Option<&str>, has_more: bool| {
        let task = |id: &&str| json!({"id": id, "status": "queued"});
        let data: Vec<Value> = ids.iter().map(task).collect();
        json!({"object": "list", "data": data, "first_id": null, "last_id": last, "has_more": has_more})
    };
    let server = Server::start(move |_, number| {
        said(&match number {
            0 => page(&["a", "b"], Some("b"), true),
            1 => page(&["c"], Some("c"), true),
            _ => page(&["d"], Some("d"), false),
        })
    })
    .await;
    let mut pages = server.client().list().ascending().page_size(2);
    let mut ids = Vec::new();
    while let Some(task) = pages.next().await.unwrap() {
        ids.push(task.id);
    }
    assert_eq!(ids, ["a", "b", "c", "d"]);
    assert!(pages.next().await.unwrap().is_none());
    assert_eq!(
        server.lines(),
        [
            "GET /v1/videos?limit=2&order=asc",
            "GET /v1/videos?limit=2&order=asc&after=b",
            "GET /v1/videos?limit=2&order=asc&after=c"
        ]
    );
}

#[tokio::test]
async fn a_preview_that_is_not_there_yet_is_none() {
    let server = Server::start(|_, number| match number {
        0 => refused(409, "video_not_ready", "Retry-After: 2\r\n"),
        1 => refused(409, "video_failed", ""),
        _ => answer(200, "Content-Type: image/webp\r\n", b"RIFF"),
    })
    .await;
    let client = server.client();
    assert_eq!(client.preview("video_x").await.unwrap(), None);
    assert_eq!(client.preview("video_x").await.unwrap(), None);
    assert_eq!(
        client.preview("video_x").await.unwrap().unwrap(),
        &b"RIFF"[..]
    );
    assert_eq!(
        server.lines()[0],
        "GET /v1/videos/video_x/content?variant=thumbnail"
    );
}
