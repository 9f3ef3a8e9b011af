//! The bytes: by key, by signed address, whole, in parts, and not again when known.

use std::sync::OnceLock;

use kinora_blobs::sign::{SigningSecret, UrlSigner};
use kinora_test_e2e::compare::{COVER, Frame};
use kinora_test_e2e::{Client, Reply, Video, keys, media, until};

use crate::support::{Download, quick, shared, signing_key};

/// A completed task, made once for all of these tests.
fn completed() -> &'static (Client, Video) {
    static TASK: OnceLock<(Client, Video)> = OnceLock::new();
    TASK.get_or_init(|| {
        let client = shared().newcomer();
        let video = client.submit(&quick("kinora-a1"));
        let video = client.wait_completed(video.id());
        (client, video)
    })
}

fn whole() -> Vec<u8> {
    let (client, video) = completed();
    Download::of(client, &video.content()).bytes
}

fn with(header: &str, value: &str) -> Reply {
    let (client, video) = completed();
    client
        .request("GET", &video.content())
        .header(header, value)
        .send()
}

#[test]
fn a_key_and_a_signed_address_open_the_same_bytes() {
    let (client, video) = completed();
    let signed = shared().anonymous().get(video.text("result_url"));
    assert_eq!(signed.status, 200, "{}", signed.shown());
    assert_eq!(signed.header("content-type"), Some("video/mp4"));
    assert_eq!(signed.header("accept-ranges"), Some("bytes"));
    assert_eq!(signed.header("x-content-type-options"), Some("nosniff"));
    let name = format!("inline; filename=\"{}.mp4\"", video.id());
    assert_eq!(signed.header("content-disposition"), Some(&*name));
    assert_eq!(
        signed.number("content-length"),
        Some(signed.body.len() as u64)
    );
    assert!(signed.body == whole());
    let named = client.get(&format!("{}?variant=video", video.content()));
    assert!(named.body == signed.body);
}

#[test]
fn poster_and_spritesheet_are_pictures_of_the_stated_type() {
    let (client, video) = completed();
    let poster = shared().anonymous().get(video.text("thumbnail_url"));
    assert_eq!(
        (poster.status, poster.header("content-type")),
        (200, Some("image/webp"))
    );
    assert!(poster.body.starts_with(b"RIFF") && &poster.body[8..12] == b"WEBP");
    let by_key = Download::of(client, &format!("{}?variant=thumbnail", video.content()));
    assert!(by_key.bytes == poster.body);
    let (width, height) = media::picture_size(&by_key.path());
    assert!(width.abs_diff(height * 854 / 480) <= 2, "{width}x{height}");

    let target = format!("{}?variant=spritesheet", video.content());
    let sheet = client.get(&target);
    assert_eq!(
        (sheet.status, sheet.header("content-type")),
        (200, Some("image/jpeg"))
    );
    assert!(sheet.body.starts_with(&[0xff, 0xd8, 0xff]));
    let (width, height) = media::picture_size(&Download::of(client, &target).path());
    assert!(width >= 320 && height >= 90, "{width}x{height}");
}

#[test]
fn the_first_and_last_frames_are_those_of_the_video() {
    let (client, video) = completed();
    let film = Download::of(client, &video.content());
    let film = Frame::all_of(&film.path(), COVER);
    let [first, last] = [&film[0], &film[film.len() - 1]];
    for (variant, own, other) in [("first_frame", first, last), ("last_frame", last, first)] {
        let address = video.text(&format!("{variant}_url"));
        let signed = shared().anonymous().get(address);
        let media_type = signed.header("content-type");
        assert_eq!((signed.status, media_type), (200, Some("image/jpeg")));
        let target = format!("{}?variant={variant}", video.content());
        let by_key = Download::of(client, &target);
        assert!(by_key.bytes == signed.body);
        assert_eq!(media::picture_size(&by_key.path()), (854, 480));
        let shown = Frame::all_of(&by_key.path(), COVER).remove(0);
        let likeness = shown.psnr_db(own);
        assert!(likeness > 25.0, "{variant}: {likeness} dB");
        assert!(likeness > shown.psnr_db(other), "{variant} is another one");

        let part = client
            .request("GET", &target)
            .header("range", "bytes=0-2")
            .send();
        assert_eq!(
            (part.status, &part.body[..]),
            (206, &[0xff, 0xd8, 0xff][..])
        );
        let head = client.request("HEAD", &target).send();
        assert_eq!(
            head.number("content-length"),
            Some(signed.body.len() as u64)
        );
        let etag = head.header("etag").unwrap();
        let known = client.request("GET", &target).header("if-none-match", etag);
        assert_eq!(known.send().status, 304);
    }
}

#[test]
fn a_signed_address_opens_nothing_else() {
    let (_, video) = completed();
    let anonymous = shared().anonymous();
    let address = video.text("result_url");
    let (plain, query) = address.split_once('?').unwrap();
    let (expires, signature) = query.split_once('&').unwrap();
    let (_, last) = address.split_at(address.len() - 1);
    let flipped = if last == "0" { "1" } else { "0" };
    let other = shared().newcomer().submit(&quick("kinora-b1"));
    for wrong in [
        plain.to_owned(),
        format!("{plain}?{expires}"),
        format!("{plain}?{signature}"),
        format!("{}{flipped}", &address[..address.len() - 1]),
        format!("{plain}?{expires}0&{signature}"),
        format!("{plain}?{expires}&signature="),
        format!("{plain}?{expires}&{signature}00"),
        format!("{plain}?variant=thumbnail&{expires}&{signature}"),
        format!("{plain}?{expires}&{expires}&{signature}"),
        format!("{}?{query}", other.content()),
        video
            .text("thumbnail_url")
            .replace("variant=thumbnail&", ""),
        video.text("last_frame_url").replace("last", "first"),
    ] {
        let reply = anonymous.get(&wrong);
        assert_eq!(reply.status, 401, "{wrong}: {}", reply.shown());
        reply.refused(401, "invalid_api_key");
    }
}

#[test]
fn an_address_past_its_time_is_410_only_where_it_is_rightly_signed() {
    let (client, video) = completed();
    let signer = UrlSigner::new(SigningSecret::new(signing_key(shared().data())), None);
    let query = signer.sign(video.id().parse().unwrap(), "video", 1_700_000_000);
    let past = format!("{}?{query}", video.content());
    let changed = past.replace("expires=17", "expires=16");
    let anonymous = shared().anonymous();
    let strangers = [shared().newcomer(), anonymous.with_key("nonsense")];
    for client in [&anonymous, &strangers[0], &strangers[1]] {
        client.get(&past).refused(410, "video_expired");
    }
    anonymous.get(&changed).refused(401, "invalid_api_key");
    strangers[0].get(&changed).refused(404, "video_not_found");
    strangers[1].get(&changed).refused(401, "invalid_api_key");
    for address in [past, changed] {
        assert_eq!(
            client.get(&address).status,
            200,
            "a good key opens: {address}"
        );
    }
}

/// Without a restart, and in tasks too, which show addresses of the new key.
#[test]
fn addresses_outlive_their_key_unless_they_are_expired_with_it() {
    let server = crate::setup().start();
    let create = ["create", "--name", "leaked"];
    let leaked = server.client_with(keys(server.data(), &create).ok().trim());
    let video = leaked.submit(&quick("kinora-a1"));
    let video = leaked.wait_completed(video.id());
    let (old, anonymous) = (video.text("result_url"), server.anonymous());
    let printed = keys(server.data(), &["revoke", "leaked"]).ok();
    assert!(printed.contains("--expire-addresses"), "{printed}");
    assert_eq!(anonymous.get(old).status, 200, "by design");
    let id = printed.split(' ').next().unwrap();
    let printed = keys(server.data(), &["revoke", id, "--expire-addresses"]).ok();
    assert!(printed.contains("have expired"), "{printed}");
    until("the old address to expire", || {
        (anonymous.get(old).status == 401).then_some(())
    });
    until("a new address", || {
        let shown = server.client().video(video.id());
        (anonymous.get(shown.text("result_url")).status == 200).then_some(())
    });
}

#[test]
fn a_good_address_opens_whatever_key_comes_along() {
    let (_, video) = completed();
    let strangers = format!("Bearer {}", shared().newcomer().key());
    for useless in [&*strangers, "Bearer nonsense", "Basic dXNlcjpwYXNz", ""] {
        let anonymous = shared().anonymous();
        let request = anonymous.request("GET", video.text("result_url"));
        let reply = request.header("authorization", useless).send();
        assert_eq!(reply.status, 200, "{useless:?}: {}", reply.shown());
        assert!(reply.body == whole());
    }
}

#[test]
fn bytes_are_sent_only_where_if_match_names_them() {
    let (client, video) = completed();
    let etag = client
        .get(&video.content())
        .header("etag")
        .unwrap()
        .to_owned();
    for good in [etag.clone(), format!("\"other\", {etag}"), "*".to_owned()] {
        assert_eq!(with("if-match", &good).status, 200, "{good}");
    }
    for bad in ["\"other\"".to_owned(), format!("W/{etag}")] {
        let reply = with("if-match", &bad);
        reply.refused_for(412, "precondition_failed", Some("If-Match"));
        let request = client.request("HEAD", &video.content());
        assert_eq!(request.header("if-match", &bad).send().status, 412);
        // Also where a part is asked for, and where the bytes are known.
        for (name, value) in [("range", "bytes=0-9"), ("if-none-match", &*etag)] {
            let request = client.request("GET", &video.content()).header(name, value);
            assert_eq!(
                request.header("if-match", &bad).send().status,
                412,
                "{name}"
            );
        }
    }
}

#[test]
fn wrong_parameters_are_refused_by_name() {
    let (client, video) = completed();
    for (query, code, param) in [
        ("variant=poster", "invalid_value", "variant"),
        ("variant=", "invalid_value", "variant"),
        ("variant=video&variant=video", "invalid_value", "variant"),
        ("quality=high", "unknown_parameter", "quality"),
    ] {
        let reply = client.get(&format!("{}?{query}", video.content()));
        reply.refused_for(400, code, Some(param));
    }
}

#[test]
fn any_stretch_of_the_bytes_can_be_read() {
    let whole = whole();
    let end = whole.len();
    for (range, first, last) in [
        ("bytes=0-0".to_owned(), 0, 0),
        ("bytes=0-99".to_owned(), 0, 99),
        ("bytes=1000-2999".to_owned(), 1000, 2999),
        (format!("bytes={}-", end / 2), end / 2, end - 1),
        (format!("bytes=10-{}", end * 2), 10, end - 1),
        ("bytes=-500".to_owned(), end - 500, end - 1),
        (format!("bytes=-{}", end * 2), 0, end - 1),
    ] {
        let reply = with("range", &range);
        assert_eq!(reply.status, 206, "{range}: {}", reply.shown());
        assert!(reply.body == whole[first..=last], "{range}: other bytes");
        let said = format!("bytes {first}-{last}/{end}");
        assert_eq!(reply.header("content-range"), Some(&*said));
        assert_eq!(
            reply.number("content-length"),
            Some((last - first + 1) as u64)
        );
    }
    for ignored in ["bytes=5-1", "bytes=a-b", "chapters=1-2", "bytes=0-1,5-6"] {
        let reply = with("range", ignored);
        assert!(reply.status == 200 && reply.body == whole, "{ignored}");
    }
}

#[test]
fn a_stretch_past_the_end_is_416_with_the_length() {
    let end = whole().len();
    for range in [format!("bytes={end}-"), "bytes=-0".to_owned()] {
        let reply = with("range", &range);
        reply.refused_for(416, "range_not_satisfiable", Some("Range"));
        let said = format!("bytes */{end}");
        assert_eq!(reply.header("content-range"), Some(&*said));
    }
}

#[test]
fn known_bytes_are_not_sent_again() {
    let (client, video) = completed();
    let head = client.request("HEAD", &video.content()).send();
    let etag = head.header("etag").unwrap().to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"'), "{etag}");
    for known in [
        etag.clone(),
        format!("\"other\", {etag}"),
        format!("W/{etag}"),
        "*".to_owned(),
    ] {
        let reply = with("if-none-match", &known);
        assert_eq!(reply.status, 304, "{known}: {}", reply.shown());
        assert_eq!((reply.body.len(), reply.header("etag")), (0, Some(&*etag)));
    }
    assert_eq!(with("if-none-match", "\"other\"").status, 200);
    for (validator, status, length) in [(&*etag, 206, 10), ("\"other\"", 200, whole().len())] {
        let request = client.request("GET", &video.content());
        let request = request.header("range", "bytes=0-9");
        let reply = request.header("if-range", validator).send();
        assert_eq!(
            (reply.status, reply.body.len()),
            (status, length),
            "{validator}"
        );
    }
}

#[test]
fn head_is_get_without_the_bytes() {
    let (client, video) = completed();
    let get = client.get(&video.content());
    let head = client.request("HEAD", &video.content()).send();
    assert_eq!((head.status, head.body.len()), (200, 0));
    for name in ["content-length", "content-type", "etag", "accept-ranges"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
}
