//! The VAE of Wan 2.1, by the names of the original checkpoint (`Wan2.1_VAE.pth`). The library
//! fixes every shape (`wan_vae.hpp`).

use super::tensor::{Kind, Tensor};

const WIDTH: u64 = 96;
const LATENT: u64 = 16;
const COLOURS: u64 = 3;
/// Widths after each stage, as multiples of [`WIDTH`].
const STAGES: [u64; 4] = [1, 2, 4, 4];
const ENCODER_BLOCKS: u64 = 2;
const DECODER_BLOCKS: u64 = 3;

#[derive(Default)]
struct Writer(Vec<Tensor>);

impl Writer {
    fn conv(&mut self, name: &str, outputs: u64, inputs: u64, kernel: &[u64]) {
        let shape = [&[outputs, inputs], kernel].concat();
        self.0
            .push(Tensor::weight(format!("{name}.weight"), &shape, Kind::F16));
        self.0
            .push(Tensor::bias(format!("{name}.bias"), &[outputs]));
    }

    fn norm(&mut self, name: &str, width: u64) {
        let gamma = format!("{name}.gamma");
        self.0.push(Tensor::scale(gamma, &[width, 1, 1, 1]));
    }

    fn residual(&mut self, name: &str, inputs: u64, outputs: u64) {
        self.norm(&format!("{name}.residual.0"), inputs);
        self.conv(&format!("{name}.residual.2"), outputs, inputs, &[3, 3, 3]);
        self.norm(&format!("{name}.residual.3"), outputs);
        self.conv(&format!("{name}.residual.6"), outputs, outputs, &[3, 3, 3]);
        if inputs != outputs {
            self.conv(&format!("{name}.shortcut"), outputs, inputs, &[1, 1, 1]);
        }
    }

    fn middle(&mut self, name: &str, width: u64) {
        self.residual(&format!("{name}.middle.0"), width, width);
        let attention = format!("{name}.middle.1");
        let gamma = format!("{attention}.norm.gamma");
        self.0.push(Tensor::scale(gamma, &[width, 1, 1]));
        self.conv(&format!("{attention}.to_qkv"), 3 * width, width, &[1, 1]);
        self.conv(&format!("{attention}.proj"), width, width, &[1, 1]);
        self.residual(&format!("{name}.middle.2"), width, width);
    }

    fn encoder(&mut self) {
        self.conv("encoder.conv1", WIDTH, COLOURS, &[3, 3, 3]);
        let (mut index, mut width) = (0, WIDTH);
        for (stage, multiple) in STAGES.iter().enumerate() {
            for _ in 0..ENCODER_BLOCKS {
                let name = format!("encoder.downsamples.{index}");
                self.residual(&name, width, WIDTH * multiple);
                width = WIDTH * multiple;
                index += 1;
            }
            if stage < 3 {
                let name = format!("encoder.downsamples.{index}");
                self.conv(&format!("{name}.resample.1"), width, width, &[3, 3]);
                // Time shrinks in the last two.
                if stage > 0 {
                    self.conv(&format!("{name}.time_conv"), width, width, &[3, 1, 1]);
                }
                index += 1;
            }
        }
        self.middle("encoder", width);
        self.norm("encoder.head.0", width);
        self.conv("encoder.head.2", 2 * LATENT, width, &[3, 3, 3]);
    }

    fn decoder(&mut self) {
        let mut width = WIDTH * STAGES[3];
        self.conv("decoder.conv1", width, LATENT, &[3, 3, 3]);
        self.middle("decoder", width);
        let mut index = 0;
        for (stage, multiple) in STAGES.iter().rev().enumerate() {
            for _ in 0..DECODER_BLOCKS {
                let name = format!("decoder.upsamples.{index}");
                self.residual(&name, width, WIDTH * multiple);
                width = WIDTH * multiple;
                index += 1;
            }
            if stage < 3 {
                let name = format!("decoder.upsamples.{index}");
                self.conv(&format!("{name}.resample.1"), width / 2, width, &[3, 3]);
                // Time grows in the first two.
                if stage < 2 {
                    self.conv(&format!("{name}.time_conv"), 2 * width, width, &[3, 1, 1]);
                }
                width /= 2;
                index += 1;
            }
        }
        self.norm("decoder.head.0", width);
        self.conv("decoder.head.2", COLOURS, width, &[3, 3, 3]);
    }
}

pub(crate) fn tensors() -> Vec<Tensor> {
    let mut writer = Writer::default();
    writer.encoder();
    writer.conv("conv1", 2 * LATENT, 2 * LATENT, &[1, 1, 1]);
    writer.conv("conv2", LATENT, LATENT, &[1, 1, 1]);
    writer.decoder();
    writer.0
}
