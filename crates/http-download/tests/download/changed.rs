//! Files that are not what they were, or not what they should be.

use kinora_http_download::{DownloadError, DownloadSource};

use crate::server::{Answer, Server};
use crate::support::{Place, SHA256, once, options, other, part, sent, weights};

fn source(place: &Place, server: &Server) -> DownloadSource {
    DownloadSource {
        bytes: Some(100_000),
        sha256: Some(SHA256.to_owned()),
        ..place.source(server)
    }
}

#[tokio::test]
async fn a_file_that_changes_in_between_is_read_from_its_start() {
    let server = Server::start(|seen, number| match number {
        0 => sent(seen, &other(), "old").cut(70_000),
        _ => sent(seen, &weights(), "new"),
    })
    .await;
    let place = Place::new();
    place.get(&server).await.unwrap();
    place.assert_has(&weights());
    assert_eq!(server.seen()[1].header("if-range"), Some("\"old\""));
}

#[tokio::test]
async fn a_changed_file_is_noticed_where_the_server_ignores_if_range() {
    for longer in [0, 50] {
        let server = Server::start(move |seen, number| {
            let (old, mut new) = (other(), weights());
            // By its tag or, without one, by its length.
            new.resize(100_000 + longer, 7);
            let tag = if longer == 0 { "ETag: \"new\"\r\n" } else { "" };
            match (number, seen.from()) {
                (0, _) => sent(seen, &old, "old").cut(70_000),
                (_, Some(from)) => part(&new, from, tag),
                (_, None) => sent(seen, &new, "new"),
            }
        })
        .await;
        let place = Place::new();
        place.get(&server).await.unwrap();
        let mut new = weights();
        new.resize(100_000 + longer, 7);
        place.assert_has(&new);
        let asked: Vec<_> = server
            .seen()
            .iter()
            .map(crate::server::Seen::from)
            .collect();
        assert_eq!(asked, [None, Some(30_000), None]);
    }
}

#[tokio::test]
async fn a_part_that_was_not_asked_for_is_not_used() {
    let server = Server::start(|seen, number| match (number, seen.from()) {
        (0, _) => sent(seen, &weights(), "a").cut(70_000),
        (_, Some(_)) => part(&weights(), 0, "ETag: \"a\"\r\n"),
        (_, None) => sent(seen, &weights(), "a"),
    })
    .await;
    let place = Place::new();
    place.get(&server).await.unwrap();
    place.assert_has(&weights());
}

#[tokio::test]
async fn wrong_bytes_are_no_file_and_are_not_kept() {
    let server = Server::start(|seen, _| sent(seen, &other(), "a")).await;
    let place = Place::new();
    let error = place.get_by(&source(&place, &server), options()).await;
    let Err(DownloadError::Hash { found, expected }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(expected, SHA256);
    assert_ne!(found, SHA256);
    assert!(place.names().is_empty());
    assert_eq!(server.seen().len(), 1, "the same bytes would come again");
}

#[tokio::test]
async fn wrong_bytes_that_an_earlier_process_left_are_replaced() {
    let server = Server::start(|seen, number| match number {
        // The same tag, but not the same bytes.
        0 => sent(seen, &other(), "a").cut(70_000),
        _ => sent(seen, &weights(), "a"),
    })
    .await;
    let place = Place::new();
    let source = source(&place, &server);
    place.get_by(&source, once()).await.unwrap_err();
    place.get_by(&source, options()).await.unwrap();
    place.assert_has(&weights());
    let asked: Vec<_> = server
        .seen()
        .iter()
        .map(crate::server::Seen::from)
        .collect();
    assert_eq!(asked, [None, Some(30_000), None]);
    assert_eq!(place.retried().len(), 1);
}

#[tokio::test]
async fn another_length_than_the_expected_one_is_refused_before_the_first_byte() {
    let server = Server::start(|seen, _| sent(seen, &weights()[1..], "a")).await;
    let place = Place::new();
    let error = place.get_by(&source(&place, &server), options()).await;
    let Err(DownloadError::Length { found, expected }) = error else {
        panic!("{error:?}");
    };
    assert_eq!((found, expected), (99_999, 100_000));
    assert!(place.names().is_empty());
}

#[tokio::test]
async fn a_server_that_announces_more_than_it_sends_is_not_believed() {
    let server = Server::start(|_, _| {
        let headers = "ETag: \"a\"\r\nContent-Length: 100001\r\n";
        Answer::bare(200, headers, weights())
    })
    .await;
    let place = Place::new();
    let error = place.get(&server).await.unwrap_err();
    assert!(matches!(error, DownloadError::Broken(_)), "{error:?}");
    assert!(!place.path().exists());
}

#[tokio::test]
async fn a_part_that_ends_early_is_not_the_end_of_the_file() {
    let server = Server::start(|seen, number| match number {
        0 => sent(seen, &weights(), "a").cut(70_000),
        // A complete answer, with less than it names.
        1 => Answer::new(
            206,
            "ETag: \"a\"\r\nContent-Range: bytes 30000-99999/100000\r\n",
            &weights()[30_000..40_000],
        ),
        _ => sent(seen, &weights(), "a"),
    })
    .await;
    let place = Place::new();
    place.get(&server).await.unwrap();
    place.assert_has(&weights());
    assert_eq!(server.seen()[2].from(), Some(40_000));
}

#[tokio::test]
async fn a_part_that_is_longer_than_announced_is_no_file() {
    let server = Server::start(|seen, number| match number {
        0 => sent(seen, &weights(), "a").cut(70_000),
        _ => Answer::new(
            206,
            "Content-Range: bytes 30000-99999/100000\r\n",
            &weights()[29_000..],
        ),
    })
    .await;
    let place = Place::new();
    let error = place.get(&server).await.unwrap_err();
    assert!(matches!(error, DownloadError::Answer(_)), "{error:?}");
    assert!(place.names().is_empty());
}

#[tokio::test]
async fn a_file_of_unknown_length_needs_a_known_one() {
    // Its end cannot be told from a cut.
    let server = Server::start(|_, _| Answer::bare(200, "", weights())).await;
    let place = Place::new();
    let error = place.get(&server).await.unwrap_err();
    assert!(matches!(error, DownloadError::Answer(_)), "{error:?}");
    assert!(place.names().is_empty());
    let source = source(&place, &server);
    place.get_by(&source, options()).await.unwrap();
    place.assert_has(&weights());
}
