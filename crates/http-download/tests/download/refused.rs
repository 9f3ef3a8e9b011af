//! Servers that refuse: for good, or for now; and disks that do.

use std::fs;

use kinora_http_download::{DownloadError, DownloadSource};

use crate::server::{Answer, Server};
use crate::support::{Place, options, sent, weights};

#[tokio::test]
async fn a_refusal_for_good_is_not_repeated_and_leaves_nothing() {
    for status in [401, 403, 404, 410] {
        let server = Server::start(move |_, _| Answer::new(status, "", "no")).await;
        let place = Place::new();
        let error = place.get(&server).await.unwrap_err();
        let DownloadError::Status {
            status: found,
            origin,
            ..
        } = error
        else {
            panic!("{error:?}");
        };
        assert_eq!((found, origin), (status, server.url.clone()));
        assert_eq!(server.seen().len(), 1);
        assert!(place.names().is_empty());
    }
}

#[tokio::test]
async fn a_refusal_for_now_is_repeated_a_bounded_number_of_times() {
    let server = Server::start(|seen, number| match number {
        0 => Answer::new(429, "Retry-After: 0\r\n", ""),
        1 => Answer::new(503, "", ""),
        _ => sent(seen, &weights(), "a"),
    })
    .await;
    let place = Place::new();
    place.get(&server).await.unwrap();
    place.assert_has(&weights());
    let busy = Server::start(|_, _| Answer::new(503, "", "")).await;
    let place = Place::new();
    let error = place.get(&busy).await.unwrap_err();
    assert!(
        matches!(error, DownloadError::Status { status: 503, .. }),
        "{error:?}"
    );
    assert_eq!(busy.seen().len(), 4);
}

#[tokio::test]
async fn a_file_that_the_disk_cannot_hold_is_not_begun() {
    let huge = 1_u64 << 60;
    let server = Server::start(move |_, _| {
        let headers = format!("ETag: \"a\"\r\nContent-Length: {huge}\r\n");
        Answer::bare(200, &headers, "some")
    })
    .await;
    let place = Place::new();
    let error = place.get(&server).await.unwrap_err();
    assert!(matches!(error, DownloadError::Room { .. }), "{error:?}");
    assert!(place.names().is_empty());
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_named() {
    let server = Server::start(|seen, _| sent(seen, &weights(), "a")).await;
    let place = Place::new();
    fs::write(place.path(), "a file").unwrap();
    let source = DownloadSource {
        path: place.path().join("b.gguf"),
        ..place.source(&server)
    };
    let error = place.get_by(&source, options()).await.unwrap_err();
    assert!(error.to_string().contains("a.gguf"), "{error}");
    assert!(server.seen().is_empty());
}
