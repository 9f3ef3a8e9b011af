//! Clients of other makers, unmodified, against the service: each makes a video from words, and one from a
//! picture of its user where it can send one. What they do is written in their own languages under
//! `python/clients` and `node/clients`; here they get a service, a key and a picture.

#![allow(deprecated, reason = "async-openai marks what OpenAI itself has ended")]

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::types::videos::{
    CreateVideoRequest, ImageInput, VideoResource, VideoSeconds, VideoSize, VideoStatus,
};
use kinora_test_e2e::{Server, run, studio, workspace};

/// A service that takes files in the form of a submit, as most of these clients send pictures.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let setup = crate::setup().config("[files]\nform_uploads = true\n");
        setup.start()
    })
}

/// Runs a client's script in a project of its own.
fn passes(interpreter: impl Into<PathBuf>, script: &str) {
    let (interpreter, folder) = (interpreter.into(), tempfile::tempdir().unwrap());
    let picture = folder.path().join("first.png");
    std::fs::write(&picture, studio::picture("first.png", (640, 360), "teal")).unwrap();
    let user = server().newcomer();
    let mut command = Command::new(&interpreter);
    command
        .arg(workspace().join("crates/test-e2e").join(script))
        .env("KINORA_BASE_URL", format!("{}/v1", user.base_url()))
        .env("KINORA_API_KEY", user.key())
        .env("KINORA_PICTURE", picture);
    let done = run(command);
    let output = format!("{}\n{}", done.stdout, done.stderr);
    assert!(done.status.success(), "does ./test install it? {output}");
    assert!(done.stdout.ends_with("all passed\n"), "{output}");
}

fn python(script: &str) {
    let script = format!("python/clients/{script}");
    passes(workspace().join(".venv/bin/python"), &script);
}

fn node(script: &str) {
    passes("node", &format!("node/clients/{script}"));
}

#[test]
fn openrouter_s_sdk_for_python_makes_a_video() {
    python("openrouter_sdk.py");
}

#[test]
fn openrouter_s_sdk_for_node_makes_a_video() {
    node("openrouter_sdk.mjs");
}

#[test]
fn the_ai_sdk_with_openrouter_s_provider_makes_a_video() {
    node("ai_sdk.mjs");
}

#[test]
fn tanstack_ai_with_its_openai_adapter_makes_videos() {
    node("tanstack_openai.mjs");
}

#[test]
fn tanstack_ai_with_its_openrouter_adapter_makes_a_video() {
    node("tanstack_openrouter.mjs");
}

#[test]
fn portkey_s_sdk_for_python_makes_videos() {
    python("portkey_sdk.py");
}

#[test]
fn portkey_s_sdk_for_node_makes_videos() {
    node("portkey.mjs");
}

#[test]
fn litellm_as_a_library_makes_videos() {
    python("litellm_library.py");
}

#[test]
fn litellm_s_proxy_passes_the_openai_sdk_on() {
    python("litellm_proxy.py");
}

#[test]
fn the_openai_node_of_n8n_makes_videos() {
    node("n8n.mjs");
}

#[test]
fn async_openai_makes_lists_and_deletes_videos() {
    let user = server().newcomer();
    let config = OpenAIConfig::new()
        .with_api_base(format!("{}/v1", user.base_url()))
        .with_api_key(user.key());
    let client = Client::with_config(config);
    let work = async {
        let first = make(&client, None).await;
        let picture = studio::picture("first.png", (640, 360), "teal");
        let picture = ImageInput::from_vec_u8("first.png".to_owned(), picture);
        let second = make(&client, Some(picture)).await;
        let listed = client.videos().list().await.unwrap();
        let ids: Vec<&String> = listed.data.iter().map(|one| &one.id).collect();
        assert_eq!(ids, [&second.id, &first.id]);
        let deleted = client.videos().delete(&second.id).await.unwrap();
        assert!(deleted.deleted && deleted.id == second.id, "{deleted:?}");
        assert!(client.videos().retrieve(&second.id).await.is_err());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work);
}

/// A clip of async-openai's: of Sora's size, the only ones that it can read.
async fn make(client: &Client<OpenAIConfig>, picture: Option<ImageInput>) -> VideoResource {
    let videos = client.videos();
    let wanted = CreateVideoRequest {
        model: "kinora-b1".to_owned(),
        prompt: "A kite over a windy beach".to_owned(),
        size: Some(VideoSize::S1280x720),
        seconds: Some(VideoSeconds::Other("2".to_owned())),
        input_reference: picture,
        ..CreateVideoRequest::default()
    };
    let mut video = videos.create(wanted).await.unwrap();
    while matches!(video.status, VideoStatus::Queued | VideoStatus::InProgress) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        video = videos.retrieve(&video.id).await.unwrap();
    }
    assert!(matches!(video.status, VideoStatus::Completed), "{video:?}");
    let film = videos.download_content(&video.id).await.unwrap();
    assert_eq!(&film[4..8], b"ftyp");
    video
}
