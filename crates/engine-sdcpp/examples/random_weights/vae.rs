//! The VAEs of Wan 2.1 and 2.2, by the names of the original checkpoints (`Wan2.1_VAE.pth`,
//! `Wan2.2_VAE.pth`). The library fixes every shape (`wan_vae.hpp`).

use super::tensor::{Kind, Tensor};
use super::writer::Writer;

/// Widths of each stage, as multiples of the first.
const STAGES: [u64; 4] = [1, 2, 4, 4];
const ENCODER_BLOCKS: u64 = 2;
const DECODER_BLOCKS: u64 = 3;

/// One of the two VAEs.
#[derive(Clone, Copy)]
pub(crate) struct Vae {
    encoder_width: u64,
    decoder_width: u64,
    latent: u64,
    /// Colours of a square of pixels.
    patch: u64,
    /// Whether a stage is a module of its own, and resampling keeps its width.
    pub staged: bool,
}

pub(crate) const WAN_21: Vae = Vae {
    encoder_width: 96,
    decoder_width: 96,
    latent: 16,
    patch: 3,
    staged: false,
};

pub(crate) const WAN_22: Vae = Vae {
    encoder_width: 160,
    decoder_width: 256,
    latent: 48,
    patch: 12,
    staged: true,
};

impl Writer {
    fn gamma(&mut self, name: &str, width: u64) {
        self.scale(&format!("{name}.gamma"), &[width, 1, 1, 1]);
    }

    fn residual(&mut self, name: &str, inputs: u64, outputs: u64) {
        self.gamma(&format!("{name}.residual.0"), inputs);
        self.conv(&format!("{name}.residual.2"), outputs, inputs, &[3, 3, 3]);
        self.gamma(&format!("{name}.residual.3"), outputs);
        self.conv(&format!("{name}.residual.6"), outputs, outputs, &[3, 3, 3]);
        if inputs != outputs {
            self.conv(&format!("{name}.shortcut"), outputs, inputs, &[1, 1, 1]);
        }
    }

    fn middle(&mut self, name: &str, width: u64) {
        self.residual(&format!("{name}.middle.0"), width, width);
        let attention = format!("{name}.middle.1");
        self.scale(&format!("{attention}.norm.gamma"), &[width, 1, 1]);
        self.conv(&format!("{attention}.to_qkv"), 3 * width, width, &[1, 1]);
        self.conv(&format!("{attention}.proj"), width, width, &[1, 1]);
        self.residual(&format!("{name}.middle.2"), width, width);
    }

    fn encoder(&mut self, vae: &Vae) {
        let mut width = vae.encoder_width;
        self.conv("encoder.conv1", width, vae.patch, &[3, 3, 3]);
        let mut names = Names::new("encoder.downsamples", "downsamples", vae.staged);
        for (stage, multiple) in STAGES.iter().enumerate() {
            let outputs = vae.encoder_width * multiple;
            for _ in 0..ENCODER_BLOCKS {
                self.residual(&names.next(stage), width, outputs);
                width = outputs;
            }
            if stage < 3 {
                let name = names.next(stage);
                self.conv(&format!("{name}.resample.1"), width, width, &[3, 3]);
                // Time shrinks in the last two.
                if stage > 0 {
                    self.conv(&format!("{name}.time_conv"), width, width, &[3, 1, 1]);
                }
            }
        }
        self.middle("encoder", width);
        self.gamma("encoder.head.0", width);
        self.conv("encoder.head.2", 2 * vae.latent, width, &[3, 3, 3]);
    }

    fn decoder(&mut self, vae: &Vae) {
        let mut width = vae.decoder_width * STAGES[3];
        self.conv("decoder.conv1", width, vae.latent, &[3, 3, 3]);
        self.middle("decoder", width);
        let mut names = Names::new("decoder.upsamples", "upsamples", vae.staged);
        for (stage, multiple) in STAGES.iter().rev().enumerate() {
            let outputs = vae.decoder_width * multiple;
            for _ in 0..DECODER_BLOCKS {
                self.residual(&names.next(stage), width, outputs);
                width = outputs;
            }
            if stage < 3 {
                let name = names.next(stage);
                let resampled = if vae.staged { width } else { width / 2 };
                self.conv(&format!("{name}.resample.1"), resampled, width, &[3, 3]);
                // Time grows in the first two.
                if stage < 2 {
                    self.conv(&format!("{name}.time_conv"), 2 * width, width, &[3, 1, 1]);
                }
                width = resampled;
            }
        }
        self.gamma("decoder.head.0", width);
        self.conv("decoder.head.2", vae.patch, width, &[3, 3, 3]);
    }
}

/// Names of modules: counted through, or anew in each stage.
struct Names {
    outer: &'static str,
    inner: &'static str,
    staged: bool,
    stage: usize,
    index: u64,
}

impl Names {
    const fn new(outer: &'static str, inner: &'static str, staged: bool) -> Self {
        Self {
            outer,
            inner,
            staged,
            stage: 0,
            index: 0,
        }
    }

    fn next(&mut self, stage: usize) -> String {
        if self.staged && stage != self.stage {
            (self.stage, self.index) = (stage, 0);
        }
        let (outer, inner, index) = (self.outer, self.inner, self.index);
        self.index += 1;
        match self.staged {
            true => format!("{outer}.{stage}.{inner}.{index}"),
            false => format!("{outer}.{index}"),
        }
    }
}

pub(crate) fn tensors(vae: &Vae) -> Vec<Tensor> {
    let mut writer = Writer::new(Kind::F16);
    let latent = vae.latent;
    writer.encoder(vae);
    writer.conv("conv1", 2 * latent, 2 * latent, &[1, 1, 1]);
    writer.conv("conv2", latent, latent, &[1, 1, 1]);
    writer.decoder(vae);
    writer.tensors
}
