//! Uploaded files on the real binary: a clip from a caller's own picture, and deaths during an upload.

use kinora_test_e2e::{DataFolder, Form, Reply, Setup, raw, studio};
use serde_json::json;

use crate::support::{assert_plays, quick, shared};

/// An upload of a picture.
pub(crate) fn day() -> Form {
    let picture = studio::picture("day.png", (640, 480), "red");
    Form::default().part("; name=\"file\"; filename=\"day.png\"", &picture)
}

#[test]
fn a_picture_of_the_caller_becomes_a_clip() {
    let client = shared().newcomer();
    let file = client.request("POST", "/v1/files").form(&day()).send().ok();
    let mut body = quick("kinora-a1");
    body["first_frame"] = file["url"].clone();
    body["resolution"] = json!("480p");
    let video = client.submit(&body);
    let video = client.wait_completed(video.id());
    assert_plays(&client, &video);
}

#[test]
fn a_death_at_any_point_of_an_upload_leaves_one_file() {
    let sent = day();
    for point in kinora_system::crash::UPLOAD_POINTS {
        let data = DataFolder::default();
        // Its first key is made and printed before.
        Setup::on(&data).start().kill();
        let dying = Setup::on(&data)
            .set("CRASH_AT", format!("{point}:1"))
            .start();
        let head = format!(
            "POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nidempotency-key: k\r\n\
             content-type: {}\r\ncontent-length: {}\r\n\r\n",
            data.key().unwrap(),
            Form::media_type(),
            sent.bytes().len()
        );
        let request = [head.as_bytes(), &sent.bytes()].concat();
        let answer: Option<Reply> = raw::try_exchange(dying.address(), &request);
        assert!(answer.is_none(), "{point}: it answered");
        assert_eq!(dying.wait().0.code(), None, "{point}");

        let server = Setup::on(&data).start();
        let client = server.client();
        let upload = client
            .request("POST", "/v1/files")
            .header("idempotency-key", "k");
        let file = upload.form(&sent).send().ok();
        let list = client.get("/v1/files").ok();
        assert_eq!(list["data"], json!([file]), "{point}");
        let content = client.get(file["url"].as_str().unwrap());
        assert_eq!(content.status, 200, "{point}: {}", content.shown());
        assert_eq!(data.files("uploads").len(), 1, "{point}");
    }
}
