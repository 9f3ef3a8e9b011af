//! What each kind of server is sent, byte for byte where it matters, and what its answers lead to.

use kinora_contract::{EditSpec, FailureCode, TaskId, VideoLength};
use kinora_engine_upstreams::dialects::{KeySource, UpstreamError};
use serde_json::json;

use crate::common::{MP4, frames, references};
use crate::server::{Server, answer, task, well};
use crate::support::{Stage, is_absent, request};

#[tokio::test]
async fn kinora_is_sent_json_with_an_idempotency_key_and_gives_its_own_poll_interval() {
    let server = Server::start(|seen, before| match (seen.line.as_str(), before) {
        ("GET /v1/videos/video_9", 0) => answer(
            200,
            "openai-poll-after-ms: 250\r\n",
            r#"{"id":"video_9","status":"in_progress","progress":70}"#,
        ),
        ("GET /v1/videos/video_9", 1) => task("video_9", "in_progress", 30),
        _ => well("video_9", MP4, seen, before),
    })
    .await;
    let stage = Stage::new("kinora", &[&server]);
    let mut request = request();
    request.spec.negative_prompt = Some("rain".to_owned());
    request.spec.inputs = frames("https://e.org/1.png", Some("https://e.org/2.png"));
    request.audio_switch = true;
    let file = stage.reference("1.png", "image/png", b"png");
    request.references = vec![file.clone(), file];
    assert_eq!(stage.run_request(&request, None).await.unwrap(), 12);
    assert_eq!(std::fs::read(stage.result()).unwrap(), MP4);

    let submit = &server.seen()[0];
    assert_eq!(submit.header("idempotency-key"), Some("video_0001"));
    assert_eq!(submit.header("authorization"), None);
    assert_eq!(
        submit.json(),
        json!({
            "model": "wan-2.2", "prompt": "A boat \"on\" a lake", "negative_prompt": "rain",
            "seconds": "5", "size": "1280x720", "seed": 7, "generate_audio": false,
            "first_frame": "https://e.org/1.png", "last_frame": "https://e.org/2.png",
        })
    );
    assert_eq!(stage.timer.waits()[0].as_millis(), 250);
    assert_eq!(stage.timer.waits()[1].as_millis(), 2000);
    let progress = &stage.control.progress;
    assert!(!progress.has_fallen());
    assert!((progress.fraction() - (0.05 + 0.7 * 0.93)).abs() < 1e-6);
}

#[tokio::test]
async fn kinora_is_sent_uploaded_files_first_and_then_their_addresses() {
    let address = "http://other/v1/files/file_1/content?expires=1&signature=ab";
    let server = Server::start(move |seen, before| match seen.line.as_str() {
        "POST /v1/files" => answer(200, "", json!({"id": "file_1", "url": address}).to_string()),
        _ => well("video_9", MP4, seen, before),
    })
    .await;
    let stage = Stage::new("kinora", &[&server]);
    let mut request = request();
    let own = "upload:uploads/file_01k3v8r2n8p5c1w9g7d4x6m2ta";
    request.spec.inputs = references(&[own, "https://e.org/2.png", own], &[]);
    let file = stage.reference("1.png", "image/png", b"png");
    request.references = vec![file.clone(), file.clone(), file];
    let _job = stage.remote.submit(&request).await.unwrap();
    let [upload, submit] = &server.seen()[..] else {
        panic!("{:?}", server.seen());
    };
    assert_eq!(upload.header("idempotency-key"), Some("video_0001-0"));
    let parts = upload.form();
    assert_eq!(parts.len(), 1, "once, however often it is named");
    assert!(
        parts[0]
            .0
            .starts_with("name=\"file\"; filename=\"reference.png\"")
    );
    assert_eq!(parts[0].1, b"png");
    let images = json!([address, "https://e.org/2.png", address]);
    assert_eq!(submit.json()["reference_images"], images);

    let old = Server::start(|_, _| answer(404, "", "{}")).await;
    let stage = Stage::new("kinora", &[&old]);
    let refused = stage.remote.submit(&request).await;
    assert!(
        matches!(refused, Err(UpstreamError::Unsupported(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn vllm_omni_is_sent_a_form_with_uploads_and_data_urls() {
    let server = Server::well("video_gen_1", MP4).await;
    let stage = Stage::new("vllm-omni", &[&server]);
    let mut first = request();
    first.spec.inputs = frames("https://e.org/1.jpg", None);
    first.spec.generate_audio = true;
    first.audio_switch = true;
    first.references = vec![stage.reference("1", "image/jpeg", b"\xff\xd8\r\n--x\xff")];
    stage.run_request(&first, None).await.unwrap();
    let submit = &server.seen()[0];
    assert_eq!(submit.header("idempotency-key"), None);
    let parts = submit.form();
    let text = |index: usize| {
        let (name, bytes) = &parts[index];
        (name.as_str(), str::from_utf8(bytes).unwrap())
    };
    assert_eq!(text(0), ("name=\"model\"", "wan-2.2"));
    assert_eq!(text(1), ("name=\"prompt\"", "A boat \"on\" a lake"));
    assert_eq!(text(2), ("name=\"seconds\"", "5"));
    assert_eq!(text(3), ("name=\"size\"", "1280x720"));
    assert_eq!(text(4), ("name=\"seed\"", "7"));
    assert_eq!(text(5), ("name=\"generate_sound\"", "true"));
    assert_eq!(
        parts[6],
        (
            "name=\"input_reference\"; filename=\"reference.jpg\"; content-type: image/jpeg"
                .to_owned(),
            b"\xff\xd8\r\n--x\xff".to_vec()
        )
    );

    let mut speech = request();
    speech.spec.inputs = references(&["https://e.org/face.png"], &["https://e.org/speech.mp3"]);
    speech.references = vec![
        stage.reference("2", "image/png", b"face"),
        stage.reference("3", "audio/mpeg", b"speech"),
    ];
    let _job = stage.remote.submit(&speech).await.unwrap();
    let parts = server.seen().last().unwrap().form_texts();
    assert_eq!(
        parts[5..],
        [
            (
                "name=\"image_reference\"".to_owned(),
                r#"{"image_url":"data:image/png;base64,ZmFjZQ=="}"#.to_owned()
            ),
            (
                "name=\"audio_reference\"".to_owned(),
                r#"{"audio_url":"data:audio/mpeg;base64,c3BlZWNo"}"#.to_owned()
            ),
        ]
    );
}

#[tokio::test]
async fn vllm_omni_s_failure_is_read_also_when_it_comes_with_an_error_status() {
    let server = Server::start(|seen, before| match seen.line.as_str() {
        "GET /v1/videos/v" => answer(
            500,
            "",
            r#"{"id":"v","status":"failed","error":{"code":500,"message":"secret trace"}}"#,
        ),
        _ => well("v", MP4, seen, before),
    })
    .await;
    let stage = Stage::new("vllm-omni", &[&server]);
    let error = stage.run().await.unwrap_err();
    let UpstreamError::Failed { code, text } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*code, FailureCode::GenerationFailed);
    assert_eq!(text, "500: secret trace");
    assert_eq!(server.count("POST /v1/videos"), 1);
}

#[tokio::test]
async fn sglang_is_sent_json_without_and_a_form_with_an_upload() {
    let server = Server::well("s1", MP4).await;
    let stage = Stage::new("sglang", &[&server]);
    stage.run().await.unwrap();
    assert_eq!(
        server.seen()[0].json(),
        json!({
            "model": "wan-2.2", "prompt": "A boat \"on\" a lake", "seconds": 5,
            "size": "1280x720", "seed": 7,
        })
    );
    let mut framed = request();
    framed.spec.inputs = frames("https://e.org/1.webp", None);
    framed.references = vec![stage.reference("1", "image/webp", b"webp")];
    let _job = stage.remote.submit(&framed).await.unwrap();
    let parts = server.seen().last().unwrap().form_texts();
    assert_eq!(parts[2], ("name=\"seconds\"".to_owned(), "5".to_owned()));
    assert!(parts[5].0.contains("reference.webp"));
}

#[tokio::test]
async fn a_result_in_sglang_s_cloud_storage_is_read_from_a_named_origin_only_and_without_the_key() {
    let bucket = Server::start(|_, _| answer(200, "", MP4)).await;
    let url = format!("http://{}/bucket/s1.mp4?signature=1", bucket.address);
    let server = Server::start(move |seen, before| match (seen.line.as_str(), before) {
        ("GET /v1/videos/s1", _) => {
            let body = json!({"id": "s1", "status": "completed", "url": url});
            answer(200, "", body.to_string())
        }
        _ => well("s1", b"never read", seen, before),
    })
    .await;
    let with = |origins: Vec<String>| {
        let key = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(key.path(), "sk-marked").unwrap();
        Stage::with("sglang", &[&server], |options| {
            options.result_origins = origins;
            options.servers.key = KeySource::File(key.path().to_owned());
        })
    };
    let named = with(vec![format!("http://{}", bucket.address)]);
    named.run().await.unwrap();
    assert_eq!(std::fs::read(named.result()).unwrap(), MP4);
    assert_eq!(
        server.seen()[0].header("authorization"),
        Some("Bearer sk-marked")
    );
    assert_eq!(bucket.seen()[0].header("authorization"), None);

    let unnamed = with(Vec::new());
    let error = unnamed.run().await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::ForeignResult(_)),
        "{error:?}"
    );
    assert!(is_absent(&unnamed.result()));
    assert_eq!(bucket.seen().len(), 1);
}

#[tokio::test]
async fn openai_is_sent_its_five_fields_and_a_hosted_provider_s_words_are_understood() {
    let server = Server::start(|seen, before| match (seen.line.as_str(), before) {
        ("GET /v1/videos/dmlkZW8=", 0) => task("dmlkZW8=", "running", 10),
        ("GET /v1/videos/dmlkZW8=", _) => task("dmlkZW8=", "succeeded", 100),
        _ => well("dmlkZW8=", MP4, seen, before),
    })
    .await;
    let stage = Stage::new("openai", &[&server]);
    stage.run().await.unwrap();
    let names: Vec<String> = server.seen()[0]
        .form()
        .into_iter()
        .map(|part| part.0)
        .collect();
    let expected = ["model", "prompt", "seconds", "size"].map(|name| format!("name=\"{name}\""));
    assert_eq!(names, expected);
    assert_eq!(
        server.lines().last().unwrap(),
        "GET /v1/videos/dmlkZW8=/content"
    );
}

#[tokio::test]
async fn an_identifier_is_one_segment_whatever_is_in_it() {
    let server = Server::start(|seen, before| match seen.line.as_str() {
        "GET /v1/videos/a%2F..%2Fb%3Fc%23d" => task("a/../b?c#d", "completed", 100),
        _ => well("a/../b?c#d", MP4, seen, before),
    })
    .await;
    Stage::new("openai", &[&server]).run().await.unwrap();
    assert_eq!(
        server.lines()[2],
        "GET /v1/videos/a%2F..%2Fb%3Fc%23d/content"
    );
}

#[tokio::test]
async fn a_cancel_is_passed_on_in_the_words_of_the_dialect() {
    for (dialect, line) in [
        ("kinora", "POST /v1/videos/t1/cancel"),
        ("openai", "DELETE /v1/videos/t1"),
        ("vllm-omni", "DELETE /v1/videos/t1"),
        ("sglang", "DELETE /v1/videos/t1"),
    ] {
        let server = Server::well("t1", MP4).await;
        let stage = Stage::new(dialect, &[&server]);
        let job = stage.remote.submit(&request()).await.unwrap();
        job.cancel().await.unwrap();
        assert_eq!(server.lines().last().unwrap(), line, "{dialect}");
    }
}

#[tokio::test]
async fn another_kinora_s_failure_codes_are_ours_unless_they_speak_of_itself() {
    for (theirs, ours) in [
        ("out_of_memory", FailureCode::OutOfMemory),
        ("reference_unreachable", FailureCode::ReferenceUnreachable),
        ("worker_lost", FailureCode::GenerationFailed),
        ("cancelled", FailureCode::GenerationFailed),
        ("nonsense", FailureCode::GenerationFailed),
    ] {
        let server = Server::start(move |seen, before| match seen.line.as_str() {
            "GET /v1/videos/t" => {
                let error = json!({"code": theirs, "message": "private"});
                let body = json!({"id": "t", "status": "failed", "error": error});
                answer(200, "", body.to_string())
            }
            _ => well("t", MP4, seen, before),
        })
        .await;
        let error = Stage::new("kinora", &[&server]).run().await.unwrap_err();
        assert_eq!(error.code(), ours, "{theirs}");
    }
}

#[tokio::test]
async fn what_a_dialect_cannot_say_is_refused_before_anything_is_sent() {
    let server = Server::well("t1", MP4).await;
    let ask =
        async |dialect: &str,
               change: &dyn Fn(&mut kinora_engine_upstreams::dialects::RemoteRequest)| {
            let mut request = request();
            change(&mut request);
            let stage = Stage::new(dialect, &[&server]);
            let file = stage.reference("x", "image/png", b"x");
            let count = request.spec.inputs.references().len();
            request.references = vec![file; count];
            stage.remote.submit(&request).await.unwrap_err()
        };
    let refused = [
        ask("openai", &|one| {
            one.spec.negative_prompt = Some("rain".to_owned());
        })
        .await,
        ask("sglang", &|one| one.spec.seconds = VideoLength::Auto).await,
        ask("sglang", &|one| one.spec.generate_audio = true).await,
        ask("kinora", &|one| one.spec.draft = true).await,
        ask("kinora", &|one| {
            let task_id = TaskId::from_parts(1, [0; 10]);
            one.spec.edit = Some(EditSpec {
                task_id,
                strength: 0.5,
            });
        })
        .await,
        ask("vllm-omni", &|one| {
            one.spec.inputs = references(&["https://e.org/1"; 2], &[]);
        })
        .await,
        ask("sglang", &|one| {
            one.spec.inputs = frames("https://e.org/1", Some("https://e.org/2"));
        })
        .await,
    ];
    for error in refused {
        assert!(matches!(error, UpstreamError::Unsupported(_)), "{error:?}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn references_beyond_the_bound_of_a_request_are_refused_unread() {
    let server = Server::well("t1", MP4).await;
    let stage = Stage::with("vllm-omni", &[&server], |options| {
        options.servers.request_bytes_max = 2_000;
    });
    let mut framed = request();
    framed.spec.inputs = frames("https://e.org/1", None);
    for (bytes, fits) in [(500, true), (1_999, false), (2_001, false)] {
        framed.references = vec![stage.reference("x", "image/png", &vec![7; bytes])];
        let submitted = stage.remote.submit(&framed).await;
        assert_eq!(submitted.is_ok(), fits, "{bytes}: {submitted:?}");
    }
}
