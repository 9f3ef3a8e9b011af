//! Time in samples, and ramps over it.

use kinora_engine::SAMPLE_RATE_HZ;

/// Samples per channel that belong to the first `frames` frames.
pub(crate) fn samples(frames: u32, fps: u32) -> usize {
    (u64::from(frames) * u64::from(SAMPLE_RATE_HZ) / u64::from(fps.max(1))) as usize
}

pub(super) fn ease(share: f32) -> f32 {
    let t = share.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
