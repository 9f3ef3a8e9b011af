//! The transformer of Wan 2.1 T2V 1.3B, and its VACE extension, by the names of the original
//! checkpoint. The library fixes every shape by the number of blocks (`wan.hpp`).

use super::tensor::{Kind, Tensor};

const BLOCKS: u64 = 30;
/// The published model has 15; the library takes any number that divides the blocks.
const VACE_BLOCKS: u64 = 1;
const WIDTH: u64 = 1536;
const HIDDEN: u64 = 8960;
const LATENT: u64 = 16;
const VACE_CHANNELS: u64 = 96;
const TEXT: u64 = 4096;
const FREQUENCIES: u64 = 256;
const PATCH: [u64; 3] = [1, 2, 2];

struct Writer {
    kind: Kind,
    tensors: Vec<Tensor>,
}

impl Writer {
    fn linear(&mut self, name: &str, outputs: u64, inputs: u64) {
        let weight = format!("{name}.weight");
        self.tensors
            .push(Tensor::weight(weight, &[outputs, inputs], self.kind));
        self.tensors
            .push(Tensor::bias(format!("{name}.bias"), &[outputs]));
    }

    fn patches(&mut self, name: &str, channels: u64) {
        let [time, height, width] = PATCH;
        let shape = [WIDTH, channels, time, height, width];
        let weight = format!("{name}.weight");
        self.tensors.push(Tensor::weight(weight, &shape, Kind::F16));
        self.tensors
            .push(Tensor::bias(format!("{name}.bias"), &[WIDTH]));
    }

    fn attention(&mut self, name: &str) {
        for part in ["q", "k", "v", "o"] {
            self.linear(&format!("{name}.{part}"), WIDTH, WIDTH);
        }
        for part in ["norm_q", "norm_k"] {
            let weight = format!("{name}.{part}.weight");
            self.tensors.push(Tensor::scale(weight, &[WIDTH]));
        }
    }

    fn block(&mut self, name: &str) {
        let modulation = format!("{name}.modulation");
        self.tensors.push(Tensor::bias(modulation, &[1, 6, WIDTH]));
        self.attention(&format!("{name}.self_attn"));
        self.attention(&format!("{name}.cross_attn"));
        self.tensors
            .push(Tensor::scale(format!("{name}.norm3.weight"), &[WIDTH]));
        self.tensors
            .push(Tensor::bias(format!("{name}.norm3.bias"), &[WIDTH]));
        self.linear(&format!("{name}.ffn.0"), HIDDEN, WIDTH);
        self.linear(&format!("{name}.ffn.2"), WIDTH, HIDDEN);
    }
}

pub(crate) fn tensors(kind: Kind, vace: bool) -> Vec<Tensor> {
    let mut writer = Writer {
        kind,
        tensors: Vec::new(),
    };
    writer.patches("patch_embedding", LATENT);
    writer.linear("text_embedding.0", WIDTH, TEXT);
    writer.linear("text_embedding.2", WIDTH, WIDTH);
    writer.linear("time_embedding.0", WIDTH, FREQUENCIES);
    writer.linear("time_embedding.2", WIDTH, WIDTH);
    writer.linear("time_projection.1", 6 * WIDTH, WIDTH);
    for index in 0..BLOCKS {
        writer.block(&format!("blocks.{index}"));
    }
    if vace {
        writer.patches("vace_patch_embedding", VACE_CHANNELS);
        for index in 0..VACE_BLOCKS {
            let name = format!("vace_blocks.{index}");
            writer.block(&name);
            if index == 0 {
                writer.linear(&format!("{name}.before_proj"), WIDTH, WIDTH);
            }
            writer.linear(&format!("{name}.after_proj"), WIDTH, WIDTH);
        }
    }
    let head = Tensor::bias("head.modulation", &[1, 2, WIDTH]);
    writer.tensors.push(head);
    writer.linear("head.head", LATENT * PATCH.iter().product::<u64>(), WIDTH);
    writer.tensors
}
