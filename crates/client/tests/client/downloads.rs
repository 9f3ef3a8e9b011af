//! Results into files: complete or not there, resumed, and never with the key at another service.

use std::fs;
use std::path::Path;

use kinora_client::{Error, Variant};

use crate::server::{KEY, Seen, Server, answer, refused};

fn film() -> Vec<u8> {
    (0..100_000_u32).map(|n| (n % 251) as u8).collect()
}

/// What the range asks for, as the service answers it.
fn part(seen: &Seen) -> Vec<u8> {
    let film = film();
    let Some(range) = seen.header("range") else {
        return answer(200, "", film);
    };
    let from: usize = range
        .strip_prefix("bytes=")
        .unwrap()
        .strip_suffix('-')
        .unwrap()
        .parse()
        .unwrap();
    if from >= film.len() {
        return refused(416, "range_not_satisfiable", "");
    }
    let head = format!(
        "Content-Range: bytes {from}-{}/{}\r\n",
        film.len() - 1,
        film.len()
    );
    answer(206, &head, &film[from..])
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_download_replaces_its_target_once_it_is_complete() {
    let server = Server::start(|seen, _| part(seen)).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.mp4");
    fs::write(&path, "old").unwrap();
    let length = server
        .client()
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap();
    assert_eq!((length, fs::read(&path).unwrap()), (100_000, film()));
    assert_eq!(names(folder.path()), ["out.mp4"]);
    assert_eq!(
        server.lines(),
        ["GET /v1/videos/video_x/content?variant=video"]
    );
    for (variant, name) in [
        (Variant::FirstFrame, "first_frame"),
        (Variant::LastFrame, "last_frame"),
    ] {
        let client = server.client();
        client.download("video_x", variant, &path).await.unwrap();
        let asked = format!("GET /v1/videos/video_x/content?variant={name}");
        assert_eq!(server.lines().last(), Some(&asked));
    }
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_was() {
    let server = Server::start(|seen, number| {
        let mut bytes = part(seen);
        // Each time a bit more, and no end of it before the sixth.
        if number < 5 {
            bytes.truncate(10_000);
        }
        bytes
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.mp4");
    let client = server.builder().retries(1).build().unwrap();
    client
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), film());
    let seen = server.seen();
    assert_eq!(seen.len(), 6);
    assert!(seen[1..].iter().all(|seen| seen.header("range").is_some()));
}

#[tokio::test]
async fn a_later_download_goes_on_with_what_an_earlier_one_left() {
    let server = Server::start(|seen, number| {
        let mut bytes = part(seen);
        if number == 0 {
            bytes.truncate(10_000);
        }
        bytes
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.mp4");
    let impatient = server.builder().retries(0).build().unwrap();
    let error = impatient
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Broken(_)), "{error:?}");
    assert_eq!(names(folder.path()), [".out.mp4.video_x-video.part"]);
    server
        .client()
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), film());
    assert_eq!(names(folder.path()), ["out.mp4"]);

    // One that was complete but for its name.
    fs::rename(&path, folder.path().join(".out.mp4.video_x-video.part")).unwrap();
    server
        .client()
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), film());
}

#[tokio::test]
async fn a_part_that_was_not_asked_for_is_refused() {
    let server = Server::start(|seen, _| match seen.header("range") {
        None => part(seen)[..10_000].to_vec(),
        Some(_) => answer(206, "Content-Range: bytes 0-99999/100000\r\n", film()),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.mp4");
    let error = server
        .client()
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Answer(_)), "{error:?}");
    assert!(!path.exists());
}

#[tokio::test]
async fn a_service_without_ranges_is_read_from_the_start_again() {
    let server = Server::start(|_, number| {
        let mut bytes = answer(200, "", film());
        if number == 0 {
            bytes.truncate(10_000);
        }
        bytes
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.mp4");
    let length = server
        .client()
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap();
    assert_eq!((length, fs::read(&path).unwrap()), (100_000, film()));
}

#[tokio::test]
async fn more_bytes_than_the_file_has_are_no_file() {
    let server = Server::start(|seen, number| match (number, seen.header("range")) {
        (0, _) => part(seen)[..10_000].to_vec(),
        (_, Some(range)) => {
            let from = range.trim_start_matches("bytes=");
            answer(
                206,
                &format!("Content-Range: bytes {from}99999/100000\r\n"),
                film(),
            )
        }
        (_, None) => part(seen),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.mp4");
    let error = server
        .client()
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Answer(_)), "{error:?}");
    assert!(names(folder.path()).is_empty());
}

#[tokio::test]
async fn a_redirect_is_followed_without_the_key() {
    let store = Server::start(|seen, _| part(seen)).await;
    let location = format!("Location: {}/bucket/x?signed\r\n", store.url);
    let service = Server::start(move |_, _| answer(307, &location, "")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.mp4");
    service
        .client()
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), film());
    assert_eq!(
        service.seen()[0].header("authorization").unwrap(),
        format!("Bearer {KEY}")
    );
    assert_eq!(store.lines(), ["GET /bucket/x?signed"]);
    assert_eq!(store.seen()[0].header("authorization"), None);
}

#[tokio::test]
async fn what_cannot_be_had_leaves_nothing_behind() {
    let server = Server::start(|_, _| refused(409, "video_failed", "")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.mp4");
    let error = server
        .client()
        .download("video_x", Variant::Video, &path)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("video_failed"));
    assert!(names(folder.path()).is_empty());
    let nowhere = folder.path().join("missing/out.mp4");
    let error = server
        .client()
        .download("video_x", Variant::Video, &nowhere)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error:?}");
}
