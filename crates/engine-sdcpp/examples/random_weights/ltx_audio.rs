//! The sound VAE of LTX-2.3 with its vocoder and the generator that widens the band to 48 kHz, by
//! the names of the original checkpoint. The library reads some widths off the tensors and fixes
//! the generator (`ltx_audio_vae.hpp`).

use super::tensor::{Kind, Tensor};
use super::writer::Writer;

const CHANNELS: u64 = 2;
const LATENT: u64 = 8;
const LATENT_BINS: u64 = 16;
const MEL_BINS: u64 = 64;
/// Widths of the decoder's levels; the published ones are four times as wide.
const LEVELS: [u64; 3] = [32, 64, 128];
const LEVEL_BLOCKS: u64 = 3;
/// Kernels and taps of each residual block, and how many it has of each.
const RESIDUAL_KERNELS: [u64; 3] = [3, 7, 11];
const RESIDUAL_STEPS: u64 = 3;
const FILTER: u64 = 12;
const SPECTRUM: u64 = 512;

/// From a spectrogram to a wave.
struct Vocoder {
    name: &'static str,
    width: u64,
    kernels: &'static [u64],
}

/// The published one is 1536 wide.
const BASE: Vocoder = Vocoder {
    name: "vocoder.vocoder",
    width: 128,
    kernels: &[11, 4, 4, 4, 4, 4],
};

const WIDER: Vocoder = Vocoder {
    name: "vocoder.bwe_generator",
    width: 512,
    kernels: &[12, 11, 4, 4, 4],
};

impl Writer {
    fn resnet(&mut self, name: &str, outputs: u64, inputs: u64) {
        self.conv(&format!("{name}.conv1.conv"), outputs, inputs, &[3, 3]);
        self.conv(&format!("{name}.conv2.conv"), outputs, outputs, &[3, 3]);
        if inputs != outputs {
            let shortcut = format!("{name}.nin_shortcut.conv");
            self.conv(&shortcut, outputs, inputs, &[1, 1]);
        }
    }

    fn spectrogram(&mut self) {
        let name = "audio_vae.decoder";
        let mut width = LEVELS[2];
        self.conv(&format!("{name}.conv_in.conv"), width, LATENT, &[3, 3]);
        self.resnet(&format!("{name}.mid.block_1"), width, width);
        self.resnet(&format!("{name}.mid.block_2"), width, width);
        for (level, outputs) in LEVELS.into_iter().enumerate().rev() {
            for index in 0..LEVEL_BLOCKS {
                let block = format!("{name}.up.{level}.block.{index}");
                self.resnet(&block, outputs, width);
                width = outputs;
            }
            if level > 0 {
                let upsample = format!("{name}.up.{level}.upsample.conv.conv");
                self.conv(&upsample, width, width, &[3, 3]);
            }
        }
        self.conv(&format!("{name}.conv_out.conv"), CHANNELS, width, &[3, 3]);
    }

    /// A snake between two low-pass filters.
    fn activation(&mut self, name: &str, width: u64) {
        self.bias(&format!("{name}.act.alpha"), &[width]);
        self.bias(&format!("{name}.act.beta"), &[width]);
        for filter in ["downsample.lowpass.filter", "upsample.filter"] {
            let even = Tensor {
                mean: 1.0 / FILTER as f32,
                ..Tensor::bias(format!("{name}.{filter}"), &[1, 1, FILTER])
            };
            self.tensors.push(even);
        }
    }

    fn vocoder(&mut self, vocoder: &Vocoder) {
        let Vocoder {
            name,
            width: mut inputs,
            kernels,
        } = *vocoder;
        let spectrum = CHANNELS * MEL_BINS;
        self.conv(&format!("{name}.conv_pre"), inputs, spectrum, &[7]);
        let mut residual = 0;
        for (stage, kernel) in kernels.iter().enumerate() {
            let width = inputs / 2;
            let up = format!("{name}.ups.{stage}");
            // A transposed convolution: inputs first, and the library keeps it whole.
            let shape = [inputs, width, *kernel];
            let weight = Tensor::weight(format!("{up}.weight"), &shape, Kind::F32);
            self.tensors.push(weight);
            self.bias(&format!("{up}.bias"), &[width]);
            for kernel in RESIDUAL_KERNELS {
                let block = format!("{name}.resblocks.{residual}");
                for step in 0..RESIDUAL_STEPS {
                    self.activation(&format!("{block}.acts1.{step}"), width);
                    self.activation(&format!("{block}.acts2.{step}"), width);
                    self.conv(&format!("{block}.convs1.{step}"), width, width, &[kernel]);
                    self.conv(&format!("{block}.convs2.{step}"), width, width, &[kernel]);
                }
                residual += 1;
            }
            inputs = width;
        }
        self.activation(&format!("{name}.act_post"), inputs);
        self.kernel(&format!("{name}.conv_post"), CHANNELS, inputs, &[7]);
    }
}

pub(crate) fn tensors() -> Vec<Tensor> {
    let mut writer = Writer::new(Kind::F16);
    writer.spectrogram();
    let statistics = "audio_vae.per_channel_statistics";
    let latent = LATENT * LATENT_BINS;
    writer.bias(&format!("{statistics}.mean-of-means"), &[latent]);
    writer.scale(&format!("{statistics}.std-of-means"), &[latent]);
    writer.vocoder(&BASE);
    writer.vocoder(&WIDER);
    let bins = SPECTRUM / 2 + 1;
    let mel = Tensor {
        mean: 1.0 / bins as f32,
        ..Tensor::bias("vocoder.mel_stft.mel_basis", &[MEL_BINS, bins])
    };
    writer.tensors.push(mel);
    for basis in ["forward_basis", "inverse_basis"] {
        let name = format!("vocoder.mel_stft.stft_fn.{basis}");
        let basis = Tensor::weight(name, &[2 * bins, 1, SPECTRUM], Kind::F32);
        writer.tensors.push(basis);
    }
    writer.tensors
}
