//! The transformer of LTX-2.3 and its connectors, by the names of the original checkpoint. The
//! library reads widths, heads and numbers of blocks off the tensors (`LTXAVConfig` in
//! `ltxv.hpp`), so this one is small: a clip takes seconds, apart from its words.

use super::gemma;
use super::tensor::{Kind, Tensor};
use super::writer::Writer;

/// The published model has 48.
const BLOCKS: u64 = 2;
/// The published model has 8 in each connector.
const CONNECTOR_BLOCKS: u64 = 1;
const REGISTERS: u64 = 128;
const FREQUENCIES: u64 = 256;
/// Channels of latents, of pictures and of sound.
const LATENT: u64 = 128;

/// One of the two streams. Its text conditioning is as wide as the library projects it
/// (`LTXAVTextProjection` in `conditioner.hpp`).
struct Stream {
    /// What stands before its modules' names.
    prefix: &'static str,
    width: u64,
    heads: u64,
    words: u64,
}

/// The published model's is 4096 wide.
const VIDEO: Stream = Stream {
    prefix: "",
    width: 512,
    heads: 8,
    words: 4096,
};

/// As published: the library takes its width and that of its words for one.
const AUDIO: Stream = Stream {
    prefix: "audio_",
    width: 2048,
    heads: 32,
    words: 2048,
};

/// Widths of an attention: of what asks, of what is asked, and inside.
struct Widths {
    query: u64,
    context: u64,
    inner: u64,
    heads: u64,
}

impl Writer {
    fn gated_attention(&mut self, name: &str, widths: &Widths) {
        let Widths {
            query,
            context,
            inner,
            heads,
        } = *widths;
        self.scale(&format!("{name}.q_norm.weight"), &[inner]);
        self.scale(&format!("{name}.k_norm.weight"), &[inner]);
        self.linear(&format!("{name}.to_q"), inner, query);
        self.linear(&format!("{name}.to_k"), inner, context);
        self.linear(&format!("{name}.to_v"), inner, context);
        self.linear(&format!("{name}.to_gate_logits"), heads, query);
        self.linear(&format!("{name}.to_out.0"), query, inner);
    }

    fn self_attention(&mut self, name: &str, width: u64, heads: u64) {
        let widths = Widths {
            query: width,
            context: width,
            inner: width,
            heads,
        };
        self.gated_attention(name, &widths);
    }

    fn feed_forward(&mut self, name: &str, width: u64) {
        self.linear(&format!("{name}.net.0.proj"), 4 * width, width);
        self.linear(&format!("{name}.net.2"), width, 4 * width);
    }

    /// `AdaLayerNormSingle`: from a time to `parts` rows of shifts, scales and gates.
    fn time(&mut self, name: &str, width: u64, parts: u64) {
        let embedder = format!("{name}.emb.timestep_embedder");
        self.linear(&format!("{embedder}.linear_1"), width, FREQUENCIES);
        self.linear(&format!("{embedder}.linear_2"), width, width);
        self.linear(&format!("{name}.linear"), parts * width, width);
    }

    /// What one stream has of its own in a block.
    fn stream(&mut self, block: &str, stream: &Stream) {
        let (prefix, width) = (stream.prefix, stream.width);
        let table = format!("{block}.{prefix}scale_shift_table");
        self.bias(&table, &[9, width]);
        let prompt = format!("{block}.{prefix}prompt_scale_shift_table");
        self.bias(&prompt, &[2, width]);
        self.self_attention(&format!("{block}.{prefix}attn1"), width, stream.heads);
        let words = Widths {
            query: width,
            context: stream.words,
            inner: width,
            heads: stream.heads,
        };
        self.gated_attention(&format!("{block}.{prefix}attn2"), &words);
        self.feed_forward(&format!("{block}.{prefix}ff"), width);
    }

    fn both_streams(&mut self, block: &str) {
        self.stream(block, &VIDEO);
        self.stream(block, &AUDIO);
        for (name, asks, asked) in [
            ("audio_to_video_attn", &VIDEO, &AUDIO),
            ("video_to_audio_attn", &AUDIO, &VIDEO),
        ] {
            let widths = Widths {
                query: asks.width,
                context: asked.width,
                inner: AUDIO.width,
                heads: AUDIO.heads,
            };
            self.gated_attention(&format!("{block}.{name}"), &widths);
        }
        let table = format!("{block}.scale_shift_table_a2v_ca");
        self.bias(&format!("{table}_video"), &[5, VIDEO.width]);
        self.bias(&format!("{table}_audio"), &[5, AUDIO.width]);
    }
}

pub(crate) fn transformer(kind: Kind) -> Vec<Tensor> {
    let mut writer = Writer::new(kind);
    for stream in [&VIDEO, &AUDIO] {
        let (prefix, width) = (stream.prefix, stream.width);
        writer.linear(&format!("{prefix}patchify_proj"), width, LATENT);
        writer.time(&format!("{prefix}adaln_single"), width, 9);
        writer.time(&format!("{prefix}prompt_adaln_single"), width, 2);
        writer.bias(&format!("{prefix}scale_shift_table"), &[2, width]);
        writer.linear(&format!("{prefix}proj_out"), LATENT, width);
    }
    for (name, width, parts) in [
        ("video_scale_shift", VIDEO.width, 4),
        ("a2v_gate", VIDEO.width, 1),
        ("audio_scale_shift", AUDIO.width, 4),
        ("v2a_gate", AUDIO.width, 1),
    ] {
        writer.time(&format!("av_ca_{name}_adaln_single"), width, parts);
    }
    for index in 0..BLOCKS {
        writer.both_streams(&format!("transformer_blocks.{index}"));
    }
    writer.tensors
}

/// What stands between the text encoder and the transformer, as it is published in a file of its
/// own: whole names, since the library puts nothing before them.
pub(crate) fn connectors(kind: Kind) -> Vec<Tensor> {
    let mut writer = Writer::new(kind);
    let states = gemma::WIDTH * gemma::STATES;
    for (name, stream) in [("video", &VIDEO), ("audio", &AUDIO)] {
        let aggregate = format!("text_embedding_projection.{name}_aggregate_embed");
        writer.linear(&aggregate, stream.words, states);
        let connector = format!("model.diffusion_model.{name}_embeddings_connector");
        let registers = format!("{connector}.learnable_registers");
        writer.bias(&registers, &[REGISTERS, stream.words]);
        for index in 0..CONNECTOR_BLOCKS {
            let block = format!("{connector}.transformer_1d_blocks.{index}");
            writer.self_attention(&format!("{block}.attn1"), stream.words, 32);
            writer.feed_forward(&format!("{block}.ff"), stream.words);
        }
    }
    writer.tensors
}
