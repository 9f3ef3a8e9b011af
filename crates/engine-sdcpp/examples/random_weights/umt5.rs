//! The encoder of umt5-xxl, by the names that llama.cpp's converter gives. The library fixes every
//! shape (`t5.hpp`).

use super::tensor::{Kind, Tensor};

const LAYERS: u64 = 24;
const WIDTH: u64 = 4096;
const HIDDEN: u64 = 10_240;
const WORDS: u64 = 256_384;
const HEADS: u64 = 64;
const BUCKETS: u64 = 32;

pub(crate) fn tensors(kind: Kind) -> Vec<Tensor> {
    let weight = |name: String, shape: [u64; 2]| Tensor::weight(name, &shape, kind);
    let mut tensors = vec![weight("token_embd.weight".to_owned(), [WORDS, WIDTH])];
    for layer in 0..LAYERS {
        let name = |part: &str| format!("enc.blk.{layer}.{part}.weight");
        tensors.push(Tensor::scale(name("attn_norm"), &[WIDTH]));
        for part in ["attn_q", "attn_k", "attn_v", "attn_o"] {
            tensors.push(weight(name(part), [WIDTH, WIDTH]));
        }
        tensors.push(Tensor::bias(name("attn_rel_b"), &[BUCKETS, HEADS]));
        tensors.push(Tensor::scale(name("ffn_norm"), &[WIDTH]));
        tensors.push(weight(name("ffn_gate"), [HIDDEN, WIDTH]));
        tensors.push(weight(name("ffn_up"), [HIDDEN, WIDTH]));
        tensors.push(weight(name("ffn_down"), [WIDTH, HIDDEN]));
    }
    tensors.push(Tensor::scale("enc.output_norm.weight", &[WIDTH]));
    tensors
}
