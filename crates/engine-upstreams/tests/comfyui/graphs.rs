//! What a server is sent for a request: values in their inputs, files in the task's folder, and nothing that
//! the output does not need.

use kinora_contract::{EditSpec, TaskId, VideoInputs};
use kinora_engine::{EngineError, FilmEngine};
use kinora_testkit::comfyui::{TestComfy, edit_workflow, workflow};
use serde_json::json;

use crate::support::{BINDINGS, Task, card, engine, first_frame};

#[tokio::test]
async fn a_request_is_written_into_the_bound_inputs_and_files_go_to_the_task_s_folder() {
    let server = TestComfy::start();
    let mut task = Task::default();
    task.spec.inputs = first_frame();
    task.spec.negative_prompt = Some("rain".to_owned());
    task.references = vec![task.file("a.png", "image/png")];
    task.must_film(&engine(card(&workflow(), BINDINGS), &[&server]))
        .await;
    let graph = server.graphs().remove(0);
    let id = server.begun().remove(0);
    let input = |node: &str, name: &str| graph[node]["inputs"][name].clone();
    assert_eq!(input("6", "text"), json!("A boat \"on\" a lake"));
    assert_eq!(input("7", "text"), json!("rain"));
    assert_eq!(input("3", "seed"), json!(7));
    // The nearest size on the grid, and the next length.
    assert_eq!(
        [input("5", "width"), input("5", "height")],
        [json!(848), json!(480)]
    );
    assert_eq!(
        [input("5", "length"), input("8", "fps")],
        [json!(81), json!(16)]
    );
    assert_eq!(input("9", "filename_prefix"), json!(format!("kinora/{id}")));
    let name = format!("kinora/{id}/first_frame-1.png");
    assert_eq!(input("10", "image"), json!(name));
    assert_eq!(server.uploads(), [(name, b"a.png".to_vec())]);
    assert!(graph.get("11").is_none(), "another output is left out");
}

#[tokio::test]
async fn a_file_that_a_request_lacks_is_left_out_with_the_links_to_it() {
    let server = TestComfy::start();
    let task = Task::default();
    task.must_film(&engine(card(&workflow(), BINDINGS), &[&server]))
        .await;
    let graph = server.graphs().remove(0);
    assert!(graph.get("10").is_none() && graph["5"]["inputs"].get("start_image").is_none());
    assert_eq!(
        graph["7"]["inputs"]["text"], "blurry",
        "what the workflow says stays"
    );
}

#[tokio::test]
async fn a_video_to_edit_is_uploaded_like_any_file() {
    let server = TestComfy::start();
    let bindings = "prompt = \"6.text\"\nsource_video = \"14.file\"\nedit_strength = \"3.denoise\"\noutput = \"9\"";
    let engine = engine(card(&edit_workflow(), bindings), &[&server]);
    assert!(engine.describe().features.edit && !engine.describe().features.text_to_video);
    assert_eq!(
        engine.warnings(&crate::support::spec()).len(),
        1,
        "no seed is bound"
    );
    let mut task = Task::default();
    task.spec.edit = Some(EditSpec {
        task_id: TaskId::from_parts(0, [7; 10]),
        strength: 0.25,
    });
    task.source = Some(task.file("source.mp4", "video/mp4"));
    task.must_film(&engine).await;
    let graph = server.graphs().remove(0);
    let file = graph["14"]["inputs"]["file"].as_str().unwrap().to_owned();
    assert!(file.ends_with("/source_video-1.mp4"), "{file}");
    assert_eq!(graph["3"]["inputs"]["denoise"], 0.25);
    assert_eq!(server.uploads()[0].1, b"source.mp4");
}

#[tokio::test]
async fn what_the_bindings_do_not_take_is_refused_before_any_call() {
    let server = TestComfy::start();
    let mut task = Task::default();
    task.spec.inputs = VideoInputs::References {
        images: vec!["https://host/a.png".to_owned()],
        audios: Vec::new(),
    };
    task.references = vec![task.file("a.png", "image/png")];
    let refused = task
        .film(&engine(card(&workflow(), BINDINGS), &[&server]))
        .await;
    assert!(matches!(refused, Err(EngineError::Unsupported(_))));
    assert!(server.requests().is_empty());
}
