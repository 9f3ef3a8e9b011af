//! The video VAE of LTX-2.3, by the names of the original checkpoint. The library reads the row of
//! blocks and their widths off the tensors (`ltx_vae.hpp`): the encoder has the published row, and
//! both are far narrower.

use super::tensor::{Kind, Tensor};
use super::writer::Writer;

const LATENT: u64 = 128;
/// Colours of a square of four by four pixels.
const PATCH: u64 = 3 * 4 * 4;
const KERNEL: [u64; 3] = [3, 3, 3];

/// A block of the row.
enum Block {
    /// So many residual blocks.
    Residual(u64),
    /// Factors of time and of each side, and by how much the width grows or shrinks.
    Resample(u64, u64, u64),
}
use Block::{Resample, Residual};

/// The published one is 128 wide at first.
const ENCODER_WIDTH: u64 = 16;
const ENCODER: &[Block] = &[
    Residual(4),
    Resample(1, 2, 2),
    Residual(6),
    Resample(2, 1, 2),
    Residual(4),
    Resample(2, 2, 2),
    Residual(2),
    Resample(2, 2, 1),
    Residual(2),
];

const DECODER_WIDTH: u64 = 128;
const DECODER: &[Block] = &[
    Residual(2),
    Resample(2, 2, 2),
    Residual(2),
    Resample(2, 2, 2),
    Residual(2),
    Resample(2, 1, 2),
    Residual(2),
    Resample(1, 2, 1),
    Residual(2),
];

impl Writer {
    /// A row of blocks from `width`; returns the width after it. `scaled` is the width after a resampling by a factor of width and
    /// a volume, and the channels that its convolution gives.
    fn row(
        &mut self,
        name: &str,
        mut width: u64,
        blocks: &[Block],
        scaled: fn(u64, u64, u64) -> (u64, u64),
    ) -> u64 {
        for (index, block) in blocks.iter().enumerate() {
            let name = format!("{name}.{index}");
            match *block {
                Residual(count) => {
                    for index in 0..count {
                        let name = format!("{name}.res_blocks.{index}");
                        self.conv(&format!("{name}.conv1.conv"), width, width, &KERNEL);
                        self.conv(&format!("{name}.conv2.conv"), width, width, &KERNEL);
                    }
                }
                Resample(time, side, factor) => {
                    let (next, outputs) = scaled(width, factor, time * side * side);
                    self.conv(&format!("{name}.conv.conv"), outputs, width, &KERNEL);
                    width = next;
                }
            }
        }
        width
    }
}

/// A video VAE with everything that the library looks for; what it does not read is left out.
pub(crate) fn tensors() -> Vec<Tensor> {
    let mut writer = Writer::new(Kind::F16);
    let narrowed = |width: u64, growth: u64, volume: u64| (width * growth, width * growth / volume);
    let widened = |width: u64, shrink: u64, volume: u64| (width / shrink, width / shrink * volume);

    writer.conv("encoder.conv_in.conv", ENCODER_WIDTH, PATCH, &KERNEL);
    let width = writer.row("encoder.down_blocks", ENCODER_WIDTH, ENCODER, narrowed);
    // The last channel is the logarithm of a variance, which all others share.
    writer.conv("encoder.conv_out.conv", LATENT + 1, width, &KERNEL);

    writer.conv("decoder.conv_in.conv", DECODER_WIDTH, LATENT, &KERNEL);
    let width = writer.row("decoder.up_blocks", DECODER_WIDTH, DECODER, widened);
    writer.conv("decoder.conv_out.conv", PATCH, width, &KERNEL);
    writer.bias("per_channel_statistics.mean-of-means", &[LATENT]);
    writer.scale("per_channel_statistics.std-of-means", &[LATENT]);
    writer.tensors
}
