//! The same against a real ComfyUI, with nodes that need no model.

use kinora_engine::FilmEngine;
use serde_json::json;

use crate::support::{Task, card, patient};

#[tokio::test]
async fn a_real_server_makes_a_film_of_one_colour() {
    let Ok(url) = std::env::var("KINORA_COMFYUI_URL") else {
        eprintln!("left out: KINORA_COMFYUI_URL names no ComfyUI");
        return;
    };
    let graph = json!({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 320, "height": 192, "batch_size": 17, "color": 255}},
        "2": {"class_type": "CreateVideo", "inputs": {"images": ["1", 0], "fps": 16.0}},
        "9": {"class_type": "SaveVideo", "inputs": {"video": ["2", 0], "filename_prefix": "x",
            "format": "mp4", "codec": "h264"}},
    });
    // Nothing here draws a prompt; the output's name takes it, and is replaced.
    let bindings = "prompt = \"9.filename_prefix\"\nwidth = \"1.width\"\nheight = \"1.height\"\n\
                    frames = \"1.batch_size\"\nfps = \"2.fps\"\noutput = \"9\"";
    let engine = patient(card(&graph, bindings), url, &[]);
    let told = engine.ask_servers().await.remove(0);
    assert_eq!(told.refusal, None);
    let film = Task::default().must_film(&engine).await;
    assert_eq!(&film[4..8], b"ftyp");
}
