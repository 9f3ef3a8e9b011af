//! The encoder of umt5-xxl, by the names that llama.cpp's converter gives. The library fixes every
//! shape (`t5.hpp`).

use super::tensor::{Kind, Tensor};
use super::writer::Writer;

const LAYERS: u64 = 24;
const WIDTH: u64 = 4096;
const HIDDEN: u64 = 10_240;
const WORDS: u64 = 256_384;
const HEADS: u64 = 64;
const BUCKETS: u64 = 32;

pub(crate) fn tensors(kind: Kind) -> Vec<Tensor> {
    let mut writer = Writer::new(kind);
    writer.matrix("token_embd", WORDS, WIDTH);
    for layer in 0..LAYERS {
        let name = |part: &str| format!("enc.blk.{layer}.{part}");
        writer.scale(&name("attn_norm.weight"), &[WIDTH]);
        for part in ["attn_q", "attn_k", "attn_v", "attn_o"] {
            writer.matrix(&name(part), WIDTH, WIDTH);
        }
        writer.bias(&name("attn_rel_b.weight"), &[BUCKETS, HEADS]);
        writer.scale(&name("ffn_norm.weight"), &[WIDTH]);
        writer.matrix(&name("ffn_gate"), HIDDEN, WIDTH);
        writer.matrix(&name("ffn_up"), HIDDEN, WIDTH);
        writer.matrix(&name("ffn_down"), WIDTH, HIDDEN);
    }
    writer.scale("enc.output_norm.weight", &[WIDTH]);
    writer.tensors
}
