//! Workflows for the classes of this server, as ComfyUI exports them.

use serde_json::{Value, json};

/// A film from text, and an image if there is one.
pub fn workflow() -> Value {
    json!({
        "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "model.safetensors"}},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a prompt", "clip": ["4", 1]}, "_meta": {"title": "Prompt"}},
        "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "blurry", "clip": ["4", 1]}},
        "10": {"class_type": "LoadImage", "inputs": {"image": "example.png"}},
        "5": {"class_type": "ImageToVideo", "inputs": {"positive": ["6", 0], "negative": ["7", 0],
            "start_image": ["10", 0], "width": 832, "height": 480, "length": 81}},
        "3": {"class_type": "KSampler", "inputs": {"model": ["4", 0], "seed": 0, "steps": 20,
            "positive": ["5", 0], "negative": ["5", 1], "latent_image": ["5", 2]}},
        "8": {"class_type": "CreateVideo", "inputs": {"images": ["3", 0], "fps": 16}},
        "9": {"class_type": "SaveVideo", "inputs": {"video": ["8", 0], "filename_prefix": "video/ComfyUI"}},
        "11": {"class_type": "PreviewImage", "inputs": {"images": ["10", 0]}},
    })
}

/// A film from another film.
pub fn edit_workflow() -> Value {
    json!({
        "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a prompt"}},
        "14": {"class_type": "LoadVideo", "inputs": {"file": "example.mp4"}},
        "3": {"class_type": "KSampler", "inputs": {"seed": 0, "steps": 4, "denoise": 0.5,
            "positive": ["6", 0], "latent_image": ["14", 0]}},
        "9": {"class_type": "SaveVideo", "inputs": {"video": ["3", 0], "filename_prefix": "video/ComfyUI"}},
    })
}
