//! The node classes that this server has, in the words of `/object_info`.

use serde_json::{Value, json};

use crate::comfyui::behaviour::Behaviour;

/// The description of a class; `None` if the server lacks it.
pub(crate) fn info(class: &str, behaviour: &Behaviour) -> Option<Value> {
    if behaviour.lacks.contains(&class) {
        return None;
    }
    let number = || json!(["INT", {"default": 0}]);
    let of = |required: Value, optional: Value| json!({"required": required, "optional": optional});
    let input = match class {
        "CheckpointLoaderSimple" => of(json!({"ckpt_name": [behaviour.models]}), json!({})),
        "CLIPTextEncode" => of(json!({"text": ["STRING", {}]}), json!({"clip": ["CLIP"]})),
        "LoadImage" => of(
            json!({"image": [["example.png"], {"image_upload": true}]}),
            json!({}),
        ),
        "LoadVideo" => of(
            json!({"file": ["COMBO", {"options": ["example.mp4"], "video_upload": true}]}),
            json!({}),
        ),
        "ImageToVideo" => of(
            json!({"positive": ["CONDITIONING"], "negative": ["CONDITIONING"],
                "width": number(), "height": number(), "length": number()}),
            json!({"start_image": ["IMAGE"]}),
        ),
        "KSampler" => of(
            json!({"seed": number(), "steps": number(), "positive": ["CONDITIONING"]}),
            json!({"model": ["MODEL"], "negative": ["CONDITIONING"], "latent_image": ["LATENT"], "denoise": ["FLOAT", {}]}),
        ),
        "CreateVideo" => of(
            json!({"images": ["IMAGE"], "fps": ["FLOAT", {}]}),
            json!({}),
        ),
        "SaveVideo" => of(
            json!({"video": ["VIDEO"], "filename_prefix": ["STRING", {}]}),
            json!({}),
        ),
        "PreviewImage" => of(json!({"images": ["IMAGE"]}), json!({})),
        _ => return None,
    };
    let is_output = matches!(class, "SaveVideo" | "PreviewImage");
    Some(json!({"input": input, "output_node": is_output, "name": class}))
}

/// The answer to a graph that cannot run, if it cannot.
pub(crate) fn refusal(
    graph: &Value,
    behaviour: &Behaviour,
    is_uploaded: impl Fn(&str) -> bool,
) -> Option<Value> {
    let nodes = graph.as_object()?;
    for (id, node) in nodes {
        let class = node["class_type"].as_str().unwrap_or_default();
        let Some(info) = info(class, behaviour) else {
            let message =
                format!("Node '{class}' not found. The custom node may not be installed.");
            let error = json!({"type": "missing_node_type", "message": message, "details": "", "extra_info": {}});
            return Some(json!({"error": error, "node_errors": {}}));
        };
        let failed = |kind: &str, details: String| {
            let error = json!({"type": kind, "message": kind, "details": details});
            let nodes = json!({id.clone(): {"class_type": class, "errors": [error]}});
            let whole = json!({"type": "prompt_outputs_failed_validation", "message": "Prompt outputs failed validation"});
            Some(json!({"error": whole, "node_errors": nodes}))
        };
        for (name, _) in info["input"]["required"].as_object().into_iter().flatten() {
            if node["inputs"].get(name).is_none() {
                return failed("required_input_missing", name.clone());
            }
        }
        for name in ["image", "file"] {
            if let Some(file) = node["inputs"][name].as_str()
                && !is_uploaded(file)
            {
                return failed("custom_validation_failed", format!("Invalid file: {file}"));
            }
        }
        if let Some(model) = node["inputs"]["ckpt_name"].as_str()
            && !behaviour.models.contains(&model)
        {
            let known = &behaviour.models;
            return failed(
                "value_not_in_list",
                format!("ckpt_name: '{model}' not in {known:?}"),
            );
        }
    }
    None
}
