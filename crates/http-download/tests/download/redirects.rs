//! Redirects, and whom the token reaches.

use std::sync::{Arc, OnceLock};

use kinora_http_download::{DownloadError, DownloadSource};
use url::Url;

use crate::server::{Answer, Server};
use crate::support::{Place, SECRET, options, sent, weights, with_token};

fn bearer() -> String {
    format!("Bearer {SECRET}")
}

#[tokio::test]
async fn a_redirect_to_another_host_is_followed_without_the_token() {
    let storage = Server::start(|seen, number| {
        let missing = if number == 0 { 70_000 } else { 0 };
        sent(seen, &weights(), "a").cut(missing)
    })
    .await;
    let location = format!("Location: {}/bucket/a?signed=x\r\n", storage.url);
    let publisher = Server::start(move |_, _| Answer::new(302, &location, "")).await;
    let place = Place::new();
    let source = place.source(&publisher);
    place.get_by(&source, with_token(&publisher)).await.unwrap();
    place.assert_has(&weights());
    for seen in publisher.seen() {
        assert_eq!(seen.header("authorization"), Some(&*bearer()));
    }
    let seen = storage.seen();
    // The rest is asked for by way of the publisher too: signed addresses grow old.
    assert_eq!((seen.len(), publisher.seen().len()), (2, 2));
    assert_eq!(seen[1].from(), Some(30_000));
    for seen in seen {
        assert_eq!(seen.path, "/bucket/a?signed=x");
        assert_eq!(seen.header("authorization"), None);
    }
}

#[tokio::test]
async fn a_redirect_on_the_same_host_keeps_the_token_and_one_back_does_not() {
    let server = Server::start(|seen, _| match &*seen.path {
        "/a/resolve/a.gguf" => Answer::new(307, "Location: /b\r\n", ""),
        _ => sent(seen, &weights(), "a"),
    })
    .await;
    let place = Place::new();
    let source = place.source(&server);
    place.get_by(&source, with_token(&server)).await.unwrap();
    place.assert_has(&weights());
    let seen = server.seen();
    assert_eq!(seen[1].path, "/b");
    assert_eq!(seen[1].header("authorization"), Some(&*bearer()));

    // Another host could choose what the token opens.
    let stranger = Arc::new(OnceLock::<String>::new());
    let away = stranger.clone();
    let publisher = Server::start(move |seen, _| match &*seen.path {
        "/b" => sent(seen, &weights(), "a"),
        _ => Answer::new(302, &format!("Location: {}/\r\n", away.get().unwrap()), ""),
    })
    .await;
    let back = format!("Location: {}/b\r\n", publisher.url);
    let server = Server::start(move |_, _| Answer::new(302, &back, "")).await;
    stranger.set(server.url.clone()).unwrap();
    let place = Place::new();
    let source = place.source(&publisher);
    place.get_by(&source, with_token(&publisher)).await.unwrap();
    let seen = publisher.seen();
    assert_eq!(seen[0].header("authorization"), Some(&*bearer()));
    assert_eq!(
        (&*seen[1].path, seen[1].header("authorization")),
        ("/b", None)
    );
    assert_eq!(server.seen()[0].header("authorization"), None);
}

#[tokio::test]
async fn redirects_are_bounded() {
    let server = Server::start(|seen, _| {
        let location = format!("Location: {}x\r\n", seen.path);
        Answer::new(302, &location, "")
    })
    .await;
    let place = Place::new();
    let error = place.get(&server).await.unwrap_err();
    assert!(matches!(error, DownloadError::Answer(_)), "{error:?}");
    assert_eq!(server.seen().len(), 11);
    assert!(place.names().is_empty());
}

#[tokio::test]
async fn errors_show_no_token_and_no_signed_address() {
    let storage = Server::start(|_, _| Answer::new(403, "", "no")).await;
    let location = format!("Location: {}/bucket/a?signed=x\r\n", storage.url);
    let publisher = Server::start(move |_, _| Answer::new(302, &location, "")).await;
    let place = Place::new();
    let source = place.source(&publisher);
    let error = place
        .get_by(&source, with_token(&publisher))
        .await
        .unwrap_err();
    let shown = format!("{error} {error:?} {:?}", with_token(&publisher));
    assert!(shown.contains(&storage.url), "{shown}");
    assert!(
        !shown.contains(SECRET) && !shown.contains("signed"),
        "{shown}"
    );
}

#[tokio::test]
async fn an_address_that_nobody_serves_is_unreachable() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    drop(listener);
    let source = DownloadSource {
        url: Url::parse(&url).unwrap(),
        path: place.path(),
        bytes: None,
        sha256: None,
    };
    let error = place.get_by(&source, options()).await.unwrap_err();
    assert!(matches!(error, DownloadError::Connect { .. }), "{error:?}");
    assert_eq!(place.retried().len(), 3);
    assert!(place.names().is_empty());
}
