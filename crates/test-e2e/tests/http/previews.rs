//! What people see of a video that is being made: its thumbnail is a preview, which changes, and is
//! the poster once it is done.

use crate::support::{Download, assert_plays, busy_on, narrow, preview, quick, thumbnail};
use crate::tenancy::visible;
use kinora_test_e2e::routes::NO_TASK;

#[test]
fn while_a_video_is_made_its_thumbnail_is_the_latest_preview() {
    let (server, made) = busy_on(narrow());
    let client = server.client();
    let id = made.id();
    let first = preview(&client, id, &[]);
    assert_eq!(first.status, 200, "{}", first.shown());
    assert_eq!(first.header("content-type"), Some("image/webp"));
    assert_eq!(first.header("cache-control"), Some("no-store"));
    assert_eq!(first.header("etag"), None, "it will change");
    let second = preview(&client, id, &first.body);
    assert_eq!(second.status, 200, "{}", second.shown());
    let folder = tempfile::tempdir().unwrap();
    for (name, reply) in [("first", &first), ("second", &second)] {
        let path = folder.path().join(name);
        std::fs::write(&path, &reply.body).unwrap();
        assert_eq!(kinora_test_e2e::media::picture_size(&path), (320, 180));
    }

    // Nothing else of it can be read, and by nobody else.
    for name in ["thumbnail_url", "first_frame_url", "last_frame_url"] {
        assert!(client.video(id).get(name).is_none(), "{name}");
    }
    for variant in ["video", "spritesheet", "first_frame", "last_frame"] {
        let target = format!("/v1/videos/{id}/content?variant={variant}");
        client.get(&target).refused(409, "video_not_ready");
    }
    thumbnail(&server.anonymous(), id).refused(401, "invalid_api_key");
    let stranger = server.newcomer();
    let (foreign, unknown) = (thumbnail(&stranger, id), thumbnail(&stranger, NO_TASK));
    foreign.refused(404, "video_not_found");
    assert_eq!(visible(&foreign, id), visible(&unknown, NO_TASK));
    assert_eq!(
        thumbnail(&client, id).status,
        200,
        "there was one to be seen"
    );
    let waiting = client.submit(&quick("kinora-a1"));
    thumbnail(&client, waiting.id()).refused(409, "video_not_ready");
    // A browser would write each refusal into its console.
    let quiet = |variant: &str| {
        let target = format!("/v1/videos/{}/content?variant={variant}", waiting.id());
        let request = client.request("GET", &target);
        request.header("prefer", "return=minimal").send()
    };
    let nothing = quiet("thumbnail");
    assert_eq!((nothing.status, nothing.body.len()), (204, 0));
    assert_eq!(nothing.header("preference-applied"), Some("return=minimal"));
    quiet("video").refused(409, "video_not_ready");

    client.post(&format!("/v1/videos/{id}/cancel")).video();
    for variant in ["thumbnail", "first_frame", "last_frame"] {
        let target = format!("/v1/videos/{id}/content?variant={variant}");
        client.get(&target).refused(409, "video_failed");
    }
    assert!(client.video(id).get("last_frame_url").is_none());
    let done = client.wait_completed(waiting.id());
    assert_plays(&client, &done);
    let target = format!("/v1/videos/{}/content?variant=thumbnail", done.id());
    let poster = Download::of(&client, &target);
    assert_eq!(
        kinora_test_e2e::media::picture_size(&poster.path()),
        (854, 480),
        "the poster is not a preview"
    );
    assert!(client.get(&target).header("etag").is_some());
}
