//! CLIP vision ViT-H/14, by the names of the Transformers library. The library fixes every shape
//! (`clip.hpp`).

use super::tensor::{Kind, Tensor};
use super::writer::Writer;

const LAYERS: u64 = 32;
const WIDTH: u64 = 1280;
const HIDDEN: u64 = 5120;
const PROJECTION: u64 = 1024;
const PATCH: u64 = 14;
/// Squares of a picture of 224 by 224 pixels, and one for all of it.
const POSITIONS: u64 = 16 * 16 + 1;

pub(crate) fn tensors() -> Vec<Tensor> {
    let mut writer = Writer::new(Kind::F16);
    let name = "vision_model.embeddings";
    writer.bias(&format!("{name}.class_embedding"), &[WIDTH]);
    writer.kernel(
        &format!("{name}.patch_embedding"),
        WIDTH,
        3,
        &[PATCH, PATCH],
    );
    writer.matrix(&format!("{name}.position_embedding"), POSITIONS, WIDTH);
    // So it is spelt in every checkpoint.
    writer.layer_norm("vision_model.pre_layrnorm", WIDTH);
    for layer in 0..LAYERS {
        let name = format!("vision_model.encoder.layers.{layer}");
        for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
            writer.linear(&format!("{name}.self_attn.{part}"), WIDTH, WIDTH);
        }
        writer.layer_norm(&format!("{name}.layer_norm1"), WIDTH);
        writer.layer_norm(&format!("{name}.layer_norm2"), WIDTH);
        writer.linear(&format!("{name}.mlp.fc1"), HIDDEN, WIDTH);
        writer.linear(&format!("{name}.mlp.fc2"), WIDTH, HIDDEN);
    }
    writer.layer_norm("vision_model.post_layernorm", WIDTH);
    writer.matrix("visual_projection", PROJECTION, WIDTH);
    writer.tensors
}
