//! The transformers of Wan, by the names of the original checkpoints. The library fixes every shape
//! by the number of blocks and by which modules there are (`wan.hpp`).

use super::tensor::{Kind, Tensor};
use super::writer::Writer;

const TEXT: u64 = 4096;
const FREQUENCIES: u64 = 256;
const PATCH: [u64; 3] = [1, 2, 2];
const VACE_CHANNELS: u64 = 96;
/// Width and number of what CLIP vision says of a picture.
const VISION: u64 = 1280;
const VISION_TOKENS: u64 = 257;
/// Latents, and for a first frame as many again and four of a mask.
const LATENT: u64 = 16;
const WITH_FRAME: u64 = 36;

/// What CLIP vision looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vision {
    Nothing,
    First,
    FirstAndLast,
}

/// A transformer.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    blocks: u64,
    width: u64,
    hidden: u64,
    /// Channels of what goes in, and of the latents that come out.
    inputs: u64,
    latent: u64,
    /// The published VACE has 15; the library takes any number that divides the blocks.
    vace_blocks: u64,
    pub vision: Vision,
}

/// Wan 2.1 T2V 1.3B.
pub(crate) const SMALL: Shape = Shape {
    blocks: 30,
    width: 1536,
    hidden: 8960,
    inputs: LATENT,
    latent: LATENT,
    vace_blocks: 0,
    vision: Vision::Nothing,
};

/// Wan 2.1 VACE 1.3B.
pub(crate) const VACE: Shape = Shape {
    vace_blocks: 1,
    ..SMALL
};

/// A first frame at the size of 1.3B, which the library knows (`Wan2.1-I2V-1.3B`) and nobody
/// published.
pub(crate) const SMALL_I2V: Shape = Shape {
    inputs: WITH_FRAME,
    vision: Vision::First,
    ..SMALL
};

/// Wan 2.2 TI2V 5B.
pub(crate) const TI2V: Shape = Shape {
    width: 3072,
    hidden: 14_336,
    inputs: 48,
    latent: 48,
    ..SMALL
};

/// One of the two of Wan 2.2 I2V A14B.
pub(crate) const I2V_22: Shape = Shape {
    blocks: 40,
    width: 5120,
    hidden: 13_824,
    inputs: WITH_FRAME,
    ..SMALL
};

/// Wan 2.1 FLF2V 14B.
pub(crate) const FLF2V: Shape = Shape {
    vision: Vision::FirstAndLast,
    ..I2V_22
};

struct Wan {
    shape: Shape,
    writer: Writer,
}

impl Wan {
    fn patches(&mut self, name: &str, channels: u64) {
        self.writer.conv(name, self.shape.width, channels, &PATCH);
    }

    fn attention(&mut self, name: &str, with_vision: bool) {
        let width = self.shape.width;
        let (mut parts, mut norms) = (vec!["q", "k", "v", "o"], vec!["norm_q", "norm_k"]);
        if with_vision {
            parts.extend(["k_img", "v_img"]);
            norms.push("norm_k_img");
        }
        for part in parts {
            self.writer.linear(&format!("{name}.{part}"), width, width);
        }
        for part in norms {
            let weight = format!("{name}.{part}.weight");
            self.writer.scale(&weight, &[width]);
        }
    }

    fn block(&mut self, name: &str) {
        let Shape { width, hidden, .. } = self.shape;
        let with_vision = self.shape.vision != Vision::Nothing;
        self.writer
            .bias(&format!("{name}.modulation"), &[1, 6, width]);
        self.attention(&format!("{name}.self_attn"), false);
        self.attention(&format!("{name}.cross_attn"), with_vision);
        self.writer.layer_norm(&format!("{name}.norm3"), width);
        self.writer.linear(&format!("{name}.ffn.0"), hidden, width);
        self.writer.linear(&format!("{name}.ffn.2"), width, hidden);
    }

    /// From what CLIP vision says to the words' width.
    fn vision(&mut self) {
        let writer = &mut self.writer;
        writer.layer_norm("img_emb.proj.0", VISION);
        writer.linear("img_emb.proj.1", VISION, VISION);
        writer.linear("img_emb.proj.3", self.shape.width, VISION);
        writer.layer_norm("img_emb.proj.4", self.shape.width);
        if self.shape.vision == Vision::FirstAndLast {
            let positions = [1, 2 * VISION_TOKENS, VISION];
            writer.bias("img_emb.emb_pos", &positions);
        }
    }

    fn vace(&mut self) {
        let width = self.shape.width;
        self.patches("vace_patch_embedding", VACE_CHANNELS);
        for index in 0..self.shape.vace_blocks {
            let name = format!("vace_blocks.{index}");
            self.block(&name);
            if index == 0 {
                let before = format!("{name}.before_proj");
                self.writer.linear(&before, width, width);
            }
            let after = format!("{name}.after_proj");
            self.writer.linear(&after, width, width);
        }
    }
}

pub(crate) fn tensors(kind: Kind, shape: Shape) -> Vec<Tensor> {
    let width = shape.width;
    let writer = Writer::new(kind);
    let mut wan = Wan { shape, writer };
    wan.patches("patch_embedding", shape.inputs);
    for (name, outputs, inputs) in [
        ("text_embedding.0", width, TEXT),
        ("text_embedding.2", width, width),
        ("time_embedding.0", width, FREQUENCIES),
        ("time_embedding.2", width, width),
        ("time_projection.1", 6 * width, width),
    ] {
        wan.writer.linear(name, outputs, inputs);
    }
    for index in 0..shape.blocks {
        wan.block(&format!("blocks.{index}"));
    }
    if shape.vace_blocks > 0 {
        wan.vace();
    }
    if shape.vision != Vision::Nothing {
        wan.vision();
    }
    wan.writer.bias("head.modulation", &[1, 2, width]);
    let pixels = PATCH.iter().product::<u64>();
    wan.writer.linear("head.head", shape.latent * pixels, width);
    wan.writer.tensors
}
