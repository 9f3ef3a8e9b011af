//! The decoder of a tiny autoencoder of videos (TAEHV), for previews, by the names of the original
//! checkpoints. The library fixes every shape by the model that it is for (`tae.hpp`).

use super::tensor::{Kind, Tensor};
use super::writer::Writer;

/// Widths of its stages and of what comes out of the last.
const WIDTHS: [u64; 4] = [256, 128, 64, 64];
const STAGE_BLOCKS: u64 = 3;

/// For latents of Wan 2.1.
pub(crate) const WAN_21: Tae = Tae {
    latent: 16,
    patch: 3,
    grow: [1, 2, 2],
};

/// For latents of Wan 2.2 TI2V.
pub(crate) const WAN_22: Tae = Tae {
    latent: 48,
    patch: 3 * 2 * 2,
    grow: [1, 2, 2],
};

/// For latents of LTX-2.
pub(crate) const LTX: Tae = Tae {
    latent: 128,
    patch: 3 * 4 * 4,
    grow: [2, 2, 2],
};

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct Tae {
    latent: u64,
    /// Colours of a square of pixels.
    patch: u64,
    /// By how much each stage lengthens time.
    grow: [u64; 3],
}

pub(crate) fn tensors(tae: &Tae) -> Vec<Tensor> {
    let mut writer = Writer::new(Kind::F16);
    // Modules without numbers (a clamp, rectifiers, enlargements) are counted too.
    let mut index = 1;
    let mut next = |skip: u64| {
        let name = format!("decoder.{index}");
        index += 1 + skip;
        name
    };
    writer.conv(&next(1), WIDTHS[0], tae.latent, &[3, 3]);
    for (stage, grow) in tae.grow.into_iter().enumerate() {
        let width = WIDTHS[stage];
        for block in 0..STAGE_BLOCKS {
            // The last one is followed by an enlargement.
            let name = next(u64::from(block + 1 == STAGE_BLOCKS));
            writer.conv(&format!("{name}.conv.0"), width, 2 * width, &[3, 3]);
            writer.conv(&format!("{name}.conv.2"), width, width, &[3, 3]);
            writer.conv(&format!("{name}.conv.4"), width, width, &[3, 3]);
        }
        writer.kernel(&format!("{}.conv", next(0)), grow * width, width, &[1, 1]);
        let last = u64::from(stage == 2);
        writer.kernel(&next(last), WIDTHS[stage + 1], width, &[3, 3]);
    }
    writer.conv(&next(0), tae.patch, WIDTHS[3], &[3, 3]);
    writer.tensors
}
