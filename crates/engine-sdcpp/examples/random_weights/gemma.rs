//! Gemma 3 12B as LTX-2 reads it, by the names that llama.cpp's converter gives. The library fixes
//! the heads (`llm.hpp`), and the number of layers and their width by what it does with the states
//! of all of them (`LTXAVEmbedder` in `conditioner.hpp`); only the feed-forward's width is free.

use super::tensor::{Kind, Tensor};
use super::writer::Writer;

const LAYERS: u64 = 48;
pub(crate) const WIDTH: u64 = 3840;
/// The published model has 15360: this part would be three quarters of the file and of the time.
const HIDDEN: u64 = 256;
const WORDS: u64 = 262_208;
const HEAD: u64 = 256;
const HEADS: u64 = 16;
const KEY_HEADS: u64 = 8;
/// States that are looked at: the words' embeddings and what each layer makes of them.
pub(crate) const STATES: u64 = LAYERS + 1;

pub(crate) fn tensors(kind: Kind) -> Vec<Tensor> {
    let mut writer = Writer::new(kind);
    writer.matrix("token_embd", WORDS, WIDTH);
    for layer in 0..LAYERS {
        let name = |part: &str| format!("blk.{layer}.{part}");
        for part in [
            "attn_norm",
            "post_attention_norm",
            "ffn_norm",
            "post_ffw_norm",
        ] {
            writer.scale(&format!("{}.weight", name(part)), &[WIDTH]);
        }
        for part in ["attn_q_norm", "attn_k_norm"] {
            writer.scale(&format!("{}.weight", name(part)), &[HEAD]);
        }
        writer.matrix(&name("attn_q"), HEADS * HEAD, WIDTH);
        writer.matrix(&name("attn_k"), KEY_HEADS * HEAD, WIDTH);
        writer.matrix(&name("attn_v"), KEY_HEADS * HEAD, WIDTH);
        writer.matrix(&name("attn_output"), WIDTH, HEADS * HEAD);
        writer.matrix(&name("ffn_gate"), HIDDEN, WIDTH);
        writer.matrix(&name("ffn_up"), HIDDEN, WIDTH);
        writer.matrix(&name("ffn_down"), WIDTH, HIDDEN);
    }
    writer.scale("output_norm.weight", &[WIDTH]);
    writer.tensors
}
