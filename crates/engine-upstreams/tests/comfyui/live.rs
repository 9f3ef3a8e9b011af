//! Progress, previews, headers and the websocket, which may be lost without harm.

use std::sync::Arc;

use kinora_contract::Size;
use kinora_testkit::comfyui::{TestComfy, Works, workflow};
use serde_json::json;

use crate::support::{BINDINGS, Task, card, patient, until};

pub(crate) fn grey(size: (u32, u32)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size.0, size.1);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    let pixels = vec![0x7f; (size.0 * size.1 * 3) as usize];
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A server at which jobs never end.
fn endless() -> Arc<TestComfy> {
    let server = TestComfy::start();
    server.set(|behaviour| behaviour.works = Works::Endless);
    Arc::new(server)
}

/// Waits for the socket of the only job; returns the job.
async fn socket_of(server: &TestComfy) -> String {
    until(|| {
        server
            .begun()
            .first()
            .is_some_and(|id| server.has_socket(id))
    })
    .await;
    server.begun().remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_and_previews_come_over_the_websocket() {
    let server = endless();
    let engine = patient(card(&workflow(), BINDINGS), server.base_url(), &[]);
    let task = Task::default();
    let control = task.control.clone();
    let making = tokio::spawn(async move { task.must_film(&engine).await });
    let job = socket_of(&server).await;
    server.tell(
        &job,
        "progress_state",
        json!({"nodes": {"3": {"state": "running", "value": 15, "max": 20}}}),
    );
    until(|| control.progress.fraction() > 0.5).await;
    server.tell(
        "another",
        "progress_state",
        json!({"nodes": {"3": {"state": "finished"}}}),
    );
    server.show(&job, &grey((64, 36)));
    until(|| !control.preview.is_wanted()).await;
    let picture = control.preview.take().unwrap();
    assert_eq!((picture.size, picture.rgb[0]), (Size::new(64, 36), 0x7f));
    server.set(|behaviour| behaviour.works = Works::Well);
    making.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_go_with_every_call_and_with_the_websocket() {
    let server = endless();
    server.set(|behaviour| behaviour.wants = Some(("x-gate", "open")));
    let engine = patient(
        card(&workflow(), BINDINGS),
        server.base_url(),
        &[("X-Gate", "open")],
    );
    let making = tokio::spawn(async move { Task::default().must_film(&engine).await });
    socket_of(&server).await;
    server.set(|behaviour| behaviour.works = Works::Well);
    making.await.unwrap();
    let requests = server.requests();
    assert!(requests.iter().any(|request| request.line == "GET /ws"));
    assert!(
        requests
            .iter()
            .all(|request| request.header("x-gate") == Some("open"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_goes_on_takes_the_place_of_the_socket_before_and_both_get_the_film() {
    let server = endless();
    let engine = Arc::new(patient(card(&workflow(), BINDINGS), server.base_url(), &[]));
    let make = |engine: Arc<kinora_engine_upstreams::comfyui::ComfyEngine>| {
        tokio::spawn(async move { Task::default().must_film(&*engine).await })
    };
    let first = make(engine.clone());
    socket_of(&server).await;
    let second = make(engine);
    until(|| server.evicted() > 0).await;
    server.set(|behaviour| behaviour.works = Works::Well);
    assert_eq!(first.await.unwrap(), second.await.unwrap());
    assert_eq!(server.begun().len(), 1);
}
