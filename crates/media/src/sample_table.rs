//! A track's sample table: number and duration of samples, and whether all are within the media
//! data. Work and memory are linear in the bytes of the table, whatever counts it states.

use std::ops::Range;

use crate::MediaError;
use crate::boxes::{BoxFields, child, optional_child};

/// A track's sample table (ISO/IEC 14496-12, 8.6 and 8.7), checked as a whole.
pub(crate) struct SampleTable<'a> {
    stbl: &'a [u8],
    media: &'a [Range<u64>],
    sizes: SampleSizes<'a>,
    ticks: u64,
}

/// The location of a sample in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleLocation {
    pub offset: u64,
    pub bytes: u32,
}

/// A sample of a track, without its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrackSample {
    pub bytes: u32,
    pub duration: u32,
    /// Time from decoding to presentation, signed.
    pub shown_after: u32,
    /// Whether decoding may begin there.
    pub is_sync: bool,
}

impl<'a> SampleTable<'a> {
    /// Reads the body of an `stbl`; its samples must be within `media`, ranges of file offsets.
    pub(crate) fn read(stbl: &'a [u8], media: &'a [Range<u64>]) -> Result<Self, MediaError> {
        let sizes = SampleSizes::read(child(stbl, b"stsz")?)?;
        let (timed_samples, ticks) = sum_times(child(stbl, b"stts")?)?;
        if timed_samples != u64::from(sizes.samples) {
            return Err(MediaError::Malformed(
                "samples and their durations differ in number",
            ));
        }
        let table = Self {
            stbl,
            media,
            sizes,
            ticks,
        };
        if table.samples() > 0 {
            table.walk_chunks(|_, _| {})?;
        }
        Ok(table)
    }

    pub(crate) fn samples(&self) -> u32 {
        self.sizes.samples
    }

    /// Sum of the sample durations in units of the track's time scale.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// The location of every sample, in decoding order. A few bytes of table may declare four
    /// billion samples, so the caller must limit [`Self::samples`] first.
    pub(crate) fn locations(&self) -> Result<Vec<SampleLocation>, MediaError> {
        let mut locations = Vec::with_capacity(self.samples() as usize);
        self.walk_chunks(|mut offset, samples| {
            for sample in samples {
                let bytes = self.sizes.size_of_sample(sample);
                locations.push(SampleLocation { offset, bytes });
                offset += u64::from(bytes);
            }
        })?;
        Ok(locations)
    }

    /// Every sample with its location, in decoding order. The caller must limit [`Self::samples`] first.
    pub(crate) fn located_samples(&self) -> Result<Vec<(SampleLocation, TrackSample)>, MediaError> {
        let durations = self.values_per_sample(child(self.stbl, b"stts")?)?;
        let shown_after = match optional_child(self.stbl, b"ctts")? {
            Some(ctts) => self.values_per_sample(ctts)?,
            None => vec![0; durations.len()],
        };
        self.check_sync_samples()?;
        let mut is_sync = vec![true; durations.len()];
        if let Some(stss) = optional_child(self.stbl, b"stss")? {
            is_sync.fill(false);
            let mut fields = BoxFields::new(stss);
            for _ in 0..fields.skip(4)?.u32()? {
                // Numbered from 1; the check above has found them all.
                if let Some(is_sync) = is_sync.get_mut(fields.u32()? as usize - 1) {
                    *is_sync = true;
                }
            }
        }
        let times = durations.into_iter().zip(shown_after).zip(is_sync);
        let located = self.locations()?.into_iter().zip(times);
        Ok(located
            .map(|(location, ((duration, shown_after), is_sync))| {
                let bytes = location.bytes;
                let sample = TrackSample {
                    bytes,
                    duration,
                    shown_after,
                    is_sync,
                };
                (location, sample)
            })
            .collect())
    }

    /// The rank of every sample in presentation order, from 0, listed in decoding order; `None` if
    /// both orders are the same. The caller must limit [`Self::samples`] first.
    pub(crate) fn presentation_ranks(&self) -> Result<Option<Vec<u32>>, MediaError> {
        let Some(ctts) = optional_child(self.stbl, b"ctts")? else {
            return Ok(None);
        };
        let durations = self.values_per_sample(child(self.stbl, b"stts")?)?;
        let offsets = self.values_per_sample(ctts)?;
        let mut decoded_at = 0;
        let times: Vec<i64> = durations
            .into_iter()
            .zip(offsets)
            .map(|(duration, offset)| {
                // Signed in version 1, and never above 2^31 in a sane version 0.
                let shown_at = decoded_at + i64::from(offset.cast_signed());
                decoded_at += i64::from(duration);
                shown_at
            })
            .collect();
        if times.is_sorted() {
            return Ok(None);
        }
        let mut shown: Vec<u32> = (0..self.samples()).collect();
        // Stable, so that equal times keep decoding order.
        shown.sort_by_key(|sample| times[*sample as usize]);
        let mut ranks = vec![0; shown.len()];
        for (rank, sample) in (0..).zip(shown) {
            ranks[sample as usize] = rank;
        }
        Ok(Some(ranks))
    }

    /// Refuses times that do not advance: decoding times must rise from sample to sample, and no
    /// two samples may be shown at once. The caller must limit [`Self::samples`] first.
    pub(crate) fn check_times(&self) -> Result<(), MediaError> {
        const WRONG: MediaError =
            MediaError::Malformed("the times of its samples are inconsistent");
        let mut left = u64::from(self.samples());
        for run in runs(child(self.stbl, b"stts")?)? {
            let (count, delta) = run?;
            left = left.checked_sub(count.into()).ok_or(WRONG)?;
            // No sample begins where the last one ends, so its length may be 0.
            let is_last = count == 1 && left == 0;
            if count == 0 || delta > i32::MAX.unsigned_abs() || (delta == 0 && !is_last) {
                return Err(WRONG);
            }
        }
        let Some(ctts) = optional_child(self.stbl, b"ctts")? else {
            return Ok(());
        };
        let (mut decoded_at, mut shown_at) = (0_i64, Vec::new());
        let durations = self.values_per_sample(child(self.stbl, b"stts")?)?;
        for (duration, offset) in durations.into_iter().zip(self.values_per_sample(ctts)?) {
            let offset = i64::from(offset.cast_signed());
            if offset.unsigned_abs() > self.ticks {
                return Err(WRONG);
            }
            shown_at.push(decoded_at + offset);
            decoded_at += i64::from(duration);
        }
        shown_at.sort_unstable();
        if !shown_at.is_sorted_by(|one, next| one < next) {
            return Err(WRONG);
        }
        Ok(())
    }

    /// The samples at which decoding may begin (`stss`) must exist, in rising order.
    pub(crate) fn check_sync_samples(&self) -> Result<(), MediaError> {
        const WRONG: MediaError = MediaError::Malformed("its sync samples are inconsistent");
        let Some(stss) = optional_child(self.stbl, b"stss")? else {
            return Ok(());
        };
        let mut fields = BoxFields::new(stss);
        let (entries, mut before) = (fields.skip(4)?.u32()?, 0);
        for _ in 0..entries {
            let sample = fields.u32()?;
            if sample <= before || sample > self.samples() {
                return Err(WRONG);
            }
            before = sample;
        }
        Ok(())
    }

    /// The values of a run-length coded box, one per sample.
    fn values_per_sample(&self, body: &[u8]) -> Result<Vec<u32>, MediaError> {
        const WRONG: MediaError = MediaError::Malformed("samples and their times differ in number");
        let samples = self.samples() as usize;
        let mut values = Vec::with_capacity(samples);
        for run in runs(body)? {
            let (count, value) = run?;
            if count as usize > samples - values.len() {
                return Err(WRONG);
            }
            values.extend(std::iter::repeat_n(value, count as usize));
        }
        (values.len() == samples).then_some(values).ok_or(WRONG)
    }

    /// Visits the chunks (`stsc`, `stco` or `co64`), each with its offset and samples. Every sample
    /// must belong to a chunk and be within the media data.
    fn walk_chunks(&self, mut visit: impl FnMut(u64, Range<u64>)) -> Result<(), MediaError> {
        const WRONG: MediaError = MediaError::Malformed("the chunk table is inconsistent");
        let (mut offsets, wide) = match optional_child(self.stbl, b"stco")? {
            Some(stco) => (BoxFields::new(stco), false),
            None => (BoxFields::new(child(self.stbl, b"co64")?), true),
        };
        let chunks = u64::from(offsets.skip(4)?.u32()?);
        let mut runs = BoxFields::new(child(self.stbl, b"stsc")?);
        let mut runs_left = runs.skip(4)?.u32()?;
        let mut next = read_run(&mut runs, &mut runs_left)?;
        // `stsc` is a run-length coded map from chunks to samples per chunk: an entry holds
        // until the next one's first chunk. Work is linear in the chunks because `sizes.sum`
        // adds a slice without copying it.
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
            let bytes = self.sizes.sum(placed, per_chunk).ok_or(WRONG)?;
            let end = offset.checked_add(bytes).ok_or(WRONG)?;
            if per_chunk == 0
                || !self
                    .media
                    .iter()
                    .any(|data| data.start <= offset && end <= data.end)
            {
                return Err(MediaError::Malformed("samples lie outside the media data"));
            }
            visit(offset, placed..placed + per_chunk);
            placed += per_chunk;
        }
        if placed != u64::from(self.sizes.samples) || next.is_some() {
            return Err(WRONG);
        }
        Ok(())
    }
}

/// The sample sizes: one for all, or four bytes each.
struct SampleSizes<'a> {
    samples: u32,
    same: u32,
    each: &'a [u8],
}

impl<'a> SampleSizes<'a> {
    fn read(stsz: &'a [u8]) -> Result<Self, MediaError> {
        let mut fields = BoxFields::new(stsz);
        let (same, samples) = (fields.skip(4)?.u32()?, fields.u32()?);
        // One size for all samples takes no bytes per sample, so `samples` is then bounded only
        // by the callers' limits.
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

    /// The size of a sample in bytes; 0 beyond the last.
    fn size_of_sample(&self, sample: u64) -> u32 {
        if self.same != 0 {
            return self.same;
        }
        let (sizes, _) = self.each.as_chunks::<4>();
        let size = sizes.get(sample as usize);
        size.map_or(0, |size| u32::from_be_bytes(*size))
    }

    /// Total bytes of `count` samples from `first` on; `None` beyond the last sample.
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

/// The entries of a run-length coded box: sample count and value (`stts`, `ctts`).
fn runs(body: &[u8]) -> Result<impl Iterator<Item = Result<(u32, u32), MediaError>>, MediaError> {
    let mut fields = BoxFields::new(body);
    let entries = fields.skip(4)?.u32()?;
    Ok((0..entries).map(move |_| Ok((fields.u32()?, fields.u32()?))))
}

/// Number and summed duration of the samples in `stts`.
fn sum_times(stts: &[u8]) -> Result<(u64, u64), MediaError> {
    let (mut samples, mut ticks) = (0u64, 0u64);
    for run in runs(stts)? {
        let (count, delta) = run?;
        let (count, delta) = (u64::from(count), u64::from(delta));
        // Neither sum can overflow: the size of the box limits the entries.
        samples += count;
        ticks = ticks
            .checked_add(count * delta)
            .ok_or(MediaError::Malformed("a track lasts too long"))?;
    }
    Ok((samples, ticks))
}

/// The next `stsc` entry as (first chunk, samples per chunk).
fn read_run(runs: &mut BoxFields<'_>, left: &mut u32) -> Result<Option<(u32, u32)>, MediaError> {
    if *left == 0 {
        return Ok(None);
    }
    *left -= 1;
    let run = (runs.u32()?, runs.u32()?);
    runs.skip(4)?;
    Ok(Some(run))
}
