//! Connections that end early, or go silent: the download goes on where it stopped.

use std::fs;
use std::time::Duration;

use kinora_http_download::{DownloadError, DownloadOptions, DownloadSource};

use crate::server::{Answer, Server};
use crate::support::{Place, SHA256, once, options, other, sent, weights};

#[tokio::test]
async fn a_file_gets_its_name_when_it_is_complete() {
    let server = Server::start(|seen, _| sent(seen, &weights(), "a")).await;
    let place = Place::new();
    let source = DownloadSource {
        bytes: Some(100_000),
        sha256: Some(SHA256.to_owned()),
        ..place.source(&server)
    };
    assert_eq!(place.get_by(&source, options()).await.unwrap(), 100_000);
    place.assert_has(&weights());
    assert!(place.retried().is_empty());
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].path, "/a/resolve/a.gguf");
    assert_eq!(seen[0].header("accept-encoding"), Some("identity"));
    // What is there is neither asked for again nor replaced.
    fs::write(place.path(), "mine").unwrap();
    assert_eq!(place.get_by(&source, options()).await.unwrap(), 4);
    assert_eq!(server.seen().len(), 1);
    place.assert_has(b"mine");
}

#[tokio::test]
async fn a_cut_connection_is_continued_as_often_as_there_is_progress() {
    // Every answer has 10,000 bytes more, and there are more of them than retries.
    let server = Server::start(|seen, number| {
        let missing = 90_000_usize.saturating_sub(number * 10_000);
        sent(seen, &weights(), "a").cut(missing)
    })
    .await;
    let place = Place::new();
    place.get(&server).await.unwrap();
    place.assert_has(&weights());
    let seen = server.seen();
    let asked: Vec<_> = seen.iter().map(|seen| seen.from().unwrap_or(0)).collect();
    let expected: Vec<usize> = (0..10).map(|number| number * 10_000).collect();
    assert_eq!(asked, expected);
    for later in &seen[1..] {
        assert_eq!(later.header("if-range"), Some("\"a\""));
    }
}

#[tokio::test]
async fn a_later_process_goes_on_with_what_an_earlier_one_left() {
    let server = Server::start(|seen, number| {
        let missing = if number == 0 { 70_000 } else { 0 };
        sent(seen, &weights(), "a").cut(missing)
    })
    .await;
    let place = Place::new();
    let source = place.source(&server);
    let error = place.get_by(&source, once()).await.unwrap_err();
    assert!(matches!(error, DownloadError::Broken(_)), "{error:?}");
    assert_eq!(place.names(), [".a.gguf.part", ".a.gguf.part.from"]);
    assert_eq!(
        kinora_http_download::partial_bytes(&place.path()),
        Some(30_000)
    );
    place.get_by(&source, once()).await.unwrap();
    place.assert_has(&weights());
    assert_eq!(server.seen()[1].from(), Some(30_000));
}

#[tokio::test]
async fn a_complete_file_without_its_name_only_gets_it() {
    let server = Server::start(|seen, _| sent(seen, &weights(), "a")).await;
    let place = Place::new();
    place.get(&server).await.unwrap();
    let (path, part) = (place.path(), place.path().with_file_name(".a.gguf.part"));
    fs::rename(&path, part).unwrap();
    let source = place.source(&server);
    let note = format!("{}\n\"a\"\n100000\n", source.url);
    fs::write(path.with_file_name(".a.gguf.part.from"), note).unwrap();
    place.get(&server).await.unwrap();
    place.assert_has(&weights());
    assert_eq!(server.seen()[1].from(), Some(100_000));
}

#[tokio::test]
async fn a_server_without_ranges_sends_it_all_again() {
    let server = Server::start(|_, number| {
        let whole = Answer::new(200, "ETag: \"a\"\r\n", weights());
        whole.cut(if number == 0 { 70_000 } else { 0 })
    })
    .await;
    let place = Place::new();
    place.get(&server).await.unwrap();
    place.assert_has(&weights());
    assert_eq!(server.seen()[1].from(), Some(30_000));
}

#[tokio::test]
async fn a_server_without_ranges_that_always_breaks_is_given_up() {
    let server =
        Server::start(|_, _| Answer::new(200, "ETag: \"a\"\r\n", weights()).cut(70_000)).await;
    let place = Place::new();
    let error = place.get(&server).await.unwrap_err();
    assert!(matches!(error, DownloadError::Broken(_)), "{error:?}");
    // The first, which made progress, and three that did not.
    assert_eq!(server.seen().len(), 4);
    assert!(!place.path().exists());
}

#[tokio::test]
async fn pieces_that_nothing_ties_together_are_not_joined() {
    // Neither a tag nor a date, and no hash is known.
    let server = Server::start(|_, number| match number {
        0 => Answer::new(200, "", other()).cut(70_000),
        _ => Answer::new(200, "", weights()),
    })
    .await;
    let place = Place::new();
    place.get(&server).await.unwrap();
    place.assert_has(&weights());
    assert_eq!(server.seen()[1].from(), None);
}

#[tokio::test]
async fn a_silent_server_is_left_and_asked_again() {
    let server = Server::start(|seen, number| match number {
        0 => sent(seen, &weights(), "a").cut(70_000).holding(),
        _ => sent(seen, &weights(), "a"),
    })
    .await;
    let place = Place::new();
    // On a slow machine later answers may seem silent too, so their number is not bounded.
    let options = DownloadOptions {
        stall_limit: Duration::from_millis(200),
        retries_max: u32::MAX,
        ..options()
    };
    place.get_by(&place.source(&server), options).await.unwrap();
    place.assert_has(&weights());
    assert!(place.retried()[0].starts_with("nothing arrived for 0.2 seconds"));
}

#[tokio::test]
async fn a_server_that_stays_silent_is_given_up() {
    let server = Server::start(|_, _| Answer::bare(200, "", "").cut(2).holding()).await;
    let place = Place::new();
    let options = DownloadOptions {
        stall_limit: Duration::from_millis(20),
        ..options()
    };
    let error = place.get_by(&place.source(&server), options).await;
    assert!(matches!(error, Err(DownloadError::Stalled(_))), "{error:?}");
    assert_eq!(place.retried().len(), 3);
    assert!(place.names().is_empty());
}

#[tokio::test]
async fn two_downloads_of_one_file_do_not_meet() {
    let place = Place::new();
    let part = fs::File::create(place.path().with_file_name(".a.gguf.part")).unwrap();
    part.lock().unwrap();
    let server = Server::start(|seen, _| sent(seen, &weights(), "a")).await;
    let error = place.get(&server).await.unwrap_err();
    assert!(matches!(error, DownloadError::Busy(_)), "{error:?}");
    drop(part);
    place.get(&server).await.unwrap();
    place.assert_has(&weights());
}
