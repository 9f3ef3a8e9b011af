//! A track's sample table: how many samples, how long, and whether all lie in the media data.
//! Work and memory are linear in the bytes of the table, whatever counts it states.

use std::ops::Range;

use crate::MediaError;
use crate::boxes::{Fields, child, optional_child};

/// The sums of a track's sample table (ISO/IEC 14496-12, 8.6 and 8.7).
pub(crate) struct SampleTable {
    pub(crate) samples: u32,
    /// Sum of the sample durations in units of the track's time scale.
    pub(crate) ticks: u64,
}

impl SampleTable {
    /// Reads the body of an `stbl` whose samples must lie within `media`, ranges of file offsets.
    pub(crate) fn read(stbl: &[u8], media: &[Range<u64>]) -> Result<Self, MediaError> {
        let sizes = Sizes::read(child(stbl, b"stsz")?)?;
        let (timed_samples, ticks) = read_times(child(stbl, b"stts")?)?;
        if timed_samples != u64::from(sizes.samples) {
            return Err(MediaError::Malformed(
                "samples and their durations differ in number",
            ));
        }
        if sizes.samples > 0 {
            check_chunks(stbl, &sizes, media)?;
        }
        Ok(Self {
            samples: sizes.samples,
            ticks,
        })
    }
}

/// The sample sizes: one for all, or four bytes each.
struct Sizes<'a> {
    samples: u32,
    same: u32,
    each: &'a [u8],
}

impl<'a> Sizes<'a> {
    fn read(stsz: &'a [u8]) -> Result<Self, MediaError> {
        let mut fields = Fields::new(stsz);
        let (same, samples) = (fields.skip(4)?.u32()?, fields.u32()?);
        let bytes = if same == 0 { samples as usize * 4 } else { 0 };
        let each = fields
            .rest()
            .get(..bytes)
            .ok_or(MediaError::Malformed("sample sizes are missing"))?;
        Ok(Self {
            samples,
            same,
            each,
        })
    }

    /// Bytes of `count` samples from `first` on; `None` beyond the last sample.
    fn sum(&self, first: u64, count: u64) -> Option<u64> {
        let end = first
            .checked_add(count)
            .filter(|end| *end <= u64::from(self.samples))?;
        if self.same != 0 {
            return count.checked_mul(u64::from(self.same));
        }
        let bytes = self.each.get(first as usize * 4..end as usize * 4)?;
        let (sizes, _) = bytes.as_chunks::<4>();
        Some(
            sizes
                .iter()
                .map(|size| u64::from(u32::from_be_bytes(*size)))
                .sum(),
        )
    }
}

/// Number and summed duration of the samples in `stts`.
fn read_times(stts: &[u8]) -> Result<(u64, u64), MediaError> {
    let mut fields = Fields::new(stts);
    let entries = fields.skip(4)?.u32()?;
    let (mut samples, mut ticks) = (0u64, 0u64);
    for _ in 0..entries {
        let (count, delta) = (u64::from(fields.u32()?), u64::from(fields.u32()?));
        // Neither sum can overflow: entries are bounded by the bytes of the box.
        samples += count;
        ticks = ticks
            .checked_add(count * delta)
            .ok_or(MediaError::Malformed("a track lasts too long"))?;
    }
    Ok((samples, ticks))
}

/// Walks the chunks (`stsc`, `stco` or `co64`): all samples must be placed, each in `media`.
fn check_chunks(stbl: &[u8], sizes: &Sizes<'_>, media: &[Range<u64>]) -> Result<(), MediaError> {
    const WRONG: MediaError = MediaError::Malformed("the chunk table is inconsistent");
    let (mut offsets, wide) = match optional_child(stbl, b"stco")? {
        Some(stco) => (Fields::new(stco), false),
        None => (Fields::new(child(stbl, b"co64")?), true),
    };
    let chunks = u64::from(offsets.skip(4)?.u32()?);
    let mut runs = Fields::new(child(stbl, b"stsc")?);
    let mut runs_left = runs.skip(4)?.u32()?;
    let mut next = read_run(&mut runs, &mut runs_left)?;
    let (mut per_chunk, mut placed) = (0, 0);
    for chunk in 1..=chunks {
        if let Some((first_chunk, samples)) = next
            && u64::from(first_chunk) == chunk
        {
            per_chunk = u64::from(samples);
            next = read_run(&mut runs, &mut runs_left)?;
        }
        let offset = if wide {
            offsets.u64()?
        } else {
            u64::from(offsets.u32()?)
        };
        let bytes = sizes.sum(placed, per_chunk).ok_or(WRONG)?;
        let end = offset.checked_add(bytes).ok_or(WRONG)?;
        if per_chunk == 0
            || !media
                .iter()
                .any(|data| data.start <= offset && end <= data.end)
        {
            return Err(MediaError::Malformed(
                "samples lie outside of the media data",
            ));
        }
        placed += per_chunk;
    }
    if placed != u64::from(sizes.samples) || next.is_some() {
        return Err(WRONG);
    }
    Ok(())
}

/// The next `stsc` entry as (first chunk, samples per chunk).
fn read_run(runs: &mut Fields<'_>, left: &mut u32) -> Result<Option<(u32, u32)>, MediaError> {
    if *left == 0 {
        return Ok(None);
    }
    *left -= 1;
    let run = (runs.u32()?, runs.u32()?);
    runs.skip(4)?;
    Ok(Some(run))
}
