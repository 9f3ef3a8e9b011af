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
    fn residuals(&mut self, name: &str, width: u64, count: u64) {
        for index in 0..count {
            for conv in ["conv1", "conv2"] {
                let name = format!("{name}.res_blocks.{index}.{conv}.conv");
                self.conv(&name, width, width, &KERNEL);
            }
        }
    }
}

/// A video VAE with everything that the library looks for; what it does not read is left out.
pub(crate) fn tensors() -> Vec<Tensor> {
    let mut writer = Writer::new(Kind::F16);
    let mut width = ENCODER_WIDTH;
    writer.conv("encoder.conv_in.conv", width, PATCH, &KERNEL);
    for (index, block) in ENCODER.iter().enumerate() {
        let name = format!("encoder.down_blocks.{index}");
        match *block {
            Residual(count) => writer.residuals(&name, width, count),
            Resample(time, side, growth) => {
                let next = width * growth;
                let outputs = next / (time * side * side);
                writer.conv(&format!("{name}.conv.conv"), outputs, width, &KERNEL);
                width = next;
            }
        }
    }
    // The last channel is the logarithm of a variance, which all others share.
    writer.conv("encoder.conv_out.conv", LATENT + 1, width, &KERNEL);

    width = DECODER_WIDTH;
    writer.conv("decoder.conv_in.conv", width, LATENT, &KERNEL);
    for (index, block) in DECODER.iter().enumerate() {
        let name = format!("decoder.up_blocks.{index}");
        match *block {
            Residual(count) => writer.residuals(&name, width, count),
            Resample(time, side, shrink) => {
                let next = width / shrink;
                let outputs = next * time * side * side;
                writer.conv(&format!("{name}.conv.conv"), outputs, width, &KERNEL);
                width = next;
            }
        }
    }
    writer.conv("decoder.conv_out.conv", PATCH, width, &KERNEL);
    writer.bias("per_channel_statistics.mean-of-means", &[LATENT]);
    writer.scale("per_channel_statistics.std-of-means", &[LATENT]);
    writer.tensors
}
