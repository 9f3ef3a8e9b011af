//! Resamples stereo sound by FFT (rubato's synchronous resampler), without the filter's delay.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler, WindowFunction};

use crate::Cause;
use crate::stereo::Stereo;

/// Approximate number of frames per transform: long enough for a cutoff near the top.
const CHUNK_FRAMES: usize = 1_024;

/// `[n][2]` f32 at `rate`.
pub(crate) fn to_rate(stereo: Stereo, rate: u32) -> Result<Vec<f32>, Cause> {
    let (from, frames) = (stereo.rate(), stereo.frames());
    let pcm = stereo.into_pcm();
    if from == rate {
        return Ok(pcm);
    }
    let mut resampler = Fft::<f32>::new_custom(
        from as usize,
        rate as usize,
        CHUNK_FRAMES,
        1,
        2,
        WindowFunction::BlackmanHarris2,
        FixedSync::Input,
    )?;
    let input = InterleavedSlice::new(&pcm, 2, frames)?;
    let mut pcm = resampler.process_all(&input, frames, None)?.take_data();
    for sample in &mut pcm {
        *sample = sample.clamp(-1.0, 1.0);
    }
    Ok(pcm)
}
