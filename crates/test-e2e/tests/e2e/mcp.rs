//! `kinora mcp` as AI assistants use it: over its standard input and output, by the client of the Rust SDK, and by the official
//! Python SDK, unmodified (`python/mcp_client.py`).

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use kinora_test_e2e::{Client, kinora, media, run, studio, workspace};
use rmcp::model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::support::shared;

/// Notes the progress notifications.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<f64>>>);

impl ClientHandler for Notes {
    async fn on_progress(
        &self,
        note: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        assert_eq!(note.total, Some(100.0));
        self.0.lock().unwrap().push(note.progress);
    }
}

/// An assistant, and the `kinora mcp` that it has started.
struct Assistant {
    program: Child,
    session: RunningService<RoleClient, Notes>,
}

impl Assistant {
    async fn of(user: &Client) -> Self {
        let mut program = kinora()
            .arg("mcp")
            .env("KINORA_URL", user.base_url())
            .env("KINORA_KEY", user.key())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = program.stdin.take().unwrap().into();
        let output = program.stdout.take().unwrap().into();
        let streams = (
            Receiver::from_owned_fd(output).unwrap(),
            Sender::from_owned_fd(input).unwrap(),
        );
        let session = Notes::default().serve(streams).await.unwrap();
        Self { program, session }
    }

    async fn call(&self, name: &'static str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().unwrap().clone();
        let request = CallToolRequestParams::new(name).with_arguments(arguments);
        self.session.call_tool(request).await.unwrap()
    }

    async fn succeeded(&self, name: &'static str, arguments: Value) -> Value {
        let result = self.call(name, arguments).await;
        assert_eq!(result.is_error, Some(false), "{result:?}");
        result.structured_content.unwrap()
    }

    async fn refused(&self, name: &'static str, arguments: Value, code: &str) -> Value {
        let result = self.call(name, arguments).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        let error = result.structured_content.unwrap()["error"].take();
        assert_eq!(error["code"], code, "{error}");
        error
    }

    /// Closes its standard input, at which it ends by itself.
    async fn closed(mut self) {
        self.session.cancel().await.unwrap();
        assert!(self.program.wait().unwrap().success());
    }
}

fn block_on(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work);
}

#[test]
fn an_assistant_makes_watches_and_saves_a_video_from_a_picture_of_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (picture, film) = (folder.path().join("day.png"), folder.path().join("out.mp4"));
    std::fs::write(&picture, studio::picture("mcp.png", (320, 320), "navy")).unwrap();
    let user = shared().newcomer();
    block_on(async {
        let assistant = Assistant::of(&user).await;
        let wanted = json!({"prompt": "Day turns into night", "seconds": 2, "size": "480x480",
                            "first_frame": picture.to_str().unwrap()});
        let task = assistant.succeeded("create_video", wanted).await;
        let id = task["id"].as_str().unwrap();
        let wait = json!({"id": id, "timeout_seconds": 600});
        let done = assistant.succeeded("wait_for_video", wait).await;
        assert_eq!(done["status"], "completed", "{done}");
        let notes = assistant.session.service().0.lock().unwrap().clone();
        assert!(notes.is_sorted_by(|one, next| one < next), "{notes:?}");
        assert_eq!(notes.last(), Some(&100.0), "{notes:?}");
        let place = json!({"id": id, "path": film.to_str().unwrap()});
        let saved = assistant.succeeded("download_video", place.clone()).await;
        assert_eq!(saved["bytes"], std::fs::metadata(&film).unwrap().len());
        assistant
            .refused("download_video", place, "file_exists")
            .await;
        let listed = assistant.succeeded("list_videos", json!({})).await;
        assert_eq!(listed["videos"][0]["id"], id, "{listed}");
        let small = json!({"prompt": "A boat", "size": "1x1"});
        let error = assistant
            .refused("create_video", small, "invalid_value")
            .await;
        assert_eq!(error["param"], "size", "{error}");
        let error = assistant
            .refused("cancel_video", json!({"id": id}), "not_cancellable")
            .await;
        assert!(error["advice"].is_string(), "{error}");
        assistant.closed().await;
    });
    media::assert_decodes(&film);
}

#[test]
fn the_python_sdk_of_the_protocol_works_unmodified() {
    let python = workspace().join(".venv/bin/python");
    assert!(
        python.exists(),
        "{} is missing: ./test installs it",
        python.display()
    );
    let user = shared().newcomer();
    let mut command = Command::new(python);
    command
        .arg("-u")
        .arg(workspace().join("crates/test-e2e/python/mcp_client.py"))
        .env("KINORA_PROGRAM", kinora().get_program())
        .env("KINORA_URL", user.base_url())
        .env("KINORA_API_KEY", user.key());
    let done = run(command);
    assert!(done.status.success(), "{}\n{}", done.stdout, done.stderr);
    assert!(done.stdout.ends_with("all passed\n"), "{}", done.stdout);
}
