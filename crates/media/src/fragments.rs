//! Reads the fragments of a film (ISO/IEC 14496-12, 8.8): which samples its tracks have, and where they are. As in
//! [`crate::movie`], no stated size or count is trusted, and memory is bounded by the bytes of the indexes.

use std::fs::File;
use std::ops::Range;

use crate::MediaError;
use crate::boxes::{BoxFields, child, children, optional_child};
use crate::format::FRAMES_MAX;
use crate::movie::{MOOV_BYTES_MAX, MovieTrack, TopBox, read_body, top_level_up_to};
use crate::sample_table::TrackSample;

/// Above the number of boxes of the longest film at the highest rate with a fragment for each
/// frame and sound packet.
const TOP_LEVEL_BOXES_MAX: usize = 16_384;
/// Uncompressed sound of the longest film has fewer samples.
const OTHER_SAMPLES_MAX: u32 = 1 << 20;

const NO_SYNC_SAMPLE: u32 = 0x0001_0000;

/// Samples of a track that follow each other in the file.
#[derive(Clone, Copy)]
pub(crate) struct SampleChunk {
    pub offset: u64,
    pub bytes: u64,
    pub samples: u32,
}

/// A track, with the samples of all its fragments.
pub(crate) struct FragmentedTrack<'a> {
    id: u32,
    pub timescale: u32,
    samples_max: u32,
    defaults: SampleDefaults,
    pub samples: Vec<TrackSample>,
    pub chunks: Vec<SampleChunk>,
    /// Decoding time of the first sample.
    pub begins_at: u64,
    /// Decoding time of the next sample.
    ends_at: u64,
    pub trak: &'a [u8],
}

/// Default values for samples of a fragment (`trex`, 8.8.3; `tfhd`, 8.8.7).
#[derive(Clone, Copy, Default)]
struct SampleDefaults {
    duration: u32,
    bytes: u32,
    flags: u32,
}

/// The index and the fragments of a film, and where its media data is.
pub(crate) struct FragmentedMovie {
    pub ftyp: Vec<u8>,
    pub moov: Vec<u8>,
    pub media: Vec<Range<u64>>,
    moofs: Vec<MovieFragment>,
}

struct MovieFragment {
    /// File offset of its box.
    start: u64,
    body: Vec<u8>,
}

impl FragmentedMovie {
    /// Reads the boxes of a fragmented film; `None` for any other file, also for one that is no film.
    ///
    /// # Errors
    /// As [`crate::defragment`].
    pub(crate) fn read(file: &mut File) -> Result<Option<Self>, MediaError> {
        let boxes = match top_level_up_to(file, TOP_LEVEL_BOXES_MAX) {
            Ok(boxes) => boxes,
            Err(error @ MediaError::Io(_)) => return Err(error),
            // Not a film, or a broken one: the examination that follows says what is wrong.
            Err(_) => return Ok(None),
        };
        let [Some(ftyp), Some(moov), Some(_)] =
            [b"ftyp", b"moov", b"moof"].map(|kind| boxes.iter().find(|one| &one.kind == kind))
        else {
            return Ok(None);
        };
        let mut read = Self {
            ftyp: read_body(file, &ftyp.body)?,
            moov: read_body(file, &moov.body)?,
            media: Vec::new(),
            moofs: Vec::new(),
        };
        let mut bytes_left = MOOV_BYTES_MAX;
        for TopBox { kind, start, body } in boxes {
            match &kind {
                b"mdat" => read.media.push(body),
                b"moof" => {
                    bytes_left = bytes_left
                        .checked_sub(body.end - body.start)
                        .ok_or(MediaError::Malformed("its indexes are too large"))?;
                    let body = read_body(file, &body)?;
                    read.moofs.push(MovieFragment { start, body });
                }
                _ => {}
            }
        }
        Ok(Some(read))
    }

    /// The tracks, with the samples of the index and of all fragments in their order.
    ///
    /// # Errors
    /// [`MediaError::Malformed`].
    pub(crate) fn tracks(&self) -> Result<Vec<FragmentedTrack<'_>>, MediaError> {
        let Some(mvex) = optional_child(&self.moov, b"mvex")? else {
            return Err(MediaError::Malformed(
                "it has fragments, but its index announces none",
            ));
        };
        let mut tracks = tracks_of_index(&self.moov, mvex, &self.media)?;
        for MovieFragment { start, body } in &self.moofs {
            // Without explicit offsets, the first track's data begins at the fragment and each further
            // track's data follows that of the one before.
            let mut data_at = *start;
            for entry in children(body) {
                let (kind, traf) = entry?;
                if &kind == b"traf" {
                    let mut tfhd = BoxFields::new(child(traf, b"tfhd")?);
                    let id = tfhd.skip(4)?.u32()?;
                    let track = tracks.iter_mut().find(|track| track.id == id);
                    let track =
                        track.ok_or(MediaError::Malformed("a fragment belongs to no track"))?;
                    data_at = track.add_fragment(traf, *start, data_at)?;
                }
            }
        }
        if tracks.iter().all(|track| track.samples.is_empty()) {
            return Err(MediaError::Malformed(
                "its fragments have no samples (no 'trun' boxes)",
            ));
        }
        Ok(tracks)
    }
}

/// The tracks, with the samples that the index itself has.
fn tracks_of_index<'a>(
    moov: &'a [u8],
    mvex: &[u8],
    media: &'a [Range<u64>],
) -> Result<Vec<FragmentedTrack<'a>>, MediaError> {
    let mut tracks = Vec::new();
    for entry in children(moov) {
        let (kind, trak) = entry?;
        if &kind != b"trak" {
            continue;
        }
        let track = MovieTrack::read(trak, media)?;
        let mut tkhd = BoxFields::new(child(trak, b"tkhd")?);
        let is_wide = tkhd.u32()? >> 24 == 1;
        let id = tkhd.skip(if is_wide { 16 } else { 8 })?.u32()?;
        let is_picture = &track.handler == b"vide";
        let mut read = FragmentedTrack {
            id,
            timescale: track.timescale,
            samples_max: if is_picture {
                FRAMES_MAX
            } else {
                OTHER_SAMPLES_MAX
            },
            defaults: SampleDefaults::find(mvex, id)?,
            samples: Vec::new(),
            chunks: Vec::new(),
            begins_at: 0,
            ends_at: 0,
            trak,
        };
        read.add_indexed_samples(&track)?;
        tracks.push(read);
    }
    Ok(tracks)
}

impl SampleDefaults {
    fn find(mvex: &[u8], id: u32) -> Result<Self, MediaError> {
        for entry in children(mvex) {
            let (kind, body) = entry?;
            let mut fields = BoxFields::new(body);
            if &kind == b"trex" && fields.skip(4)?.u32()? == id {
                return Ok(Self {
                    duration: fields.skip(4)?.u32()?,
                    bytes: fields.u32()?,
                    flags: fields.u32()?,
                });
            }
        }
        Ok(Self::default())
    }
}

impl FragmentedTrack<'_> {
    /// Sum of the sample durations in units of the track's time scale.
    pub(crate) const fn ticks(&self) -> u64 {
        self.ends_at - self.begins_at
    }

    /// End of the last shown sample, from the decoding time of the first one, in units of the
    /// track's time scale. Later than [`Self::ticks`] where samples are shown after they are decoded.
    pub(crate) fn shown_until(&self) -> u64 {
        let (mut decoded, mut until) = (0_u64, 0);
        for sample in &self.samples {
            decoded = decoded.saturating_add(sample.duration.into());
            let shown = decoded.saturating_add_signed(sample.shown_after.cast_signed().into());
            until = until.max(shown);
        }
        until
    }

    fn push(&mut self, sample: TrackSample) -> Result<(), MediaError> {
        if self.samples.len() >= self.samples_max as usize {
            return Err(MediaError::Malformed("a track has too many samples"));
        }
        self.ends_at = self
            .ends_at
            .checked_add(sample.duration.into())
            .ok_or(MediaError::Malformed("a track lasts too long"))?;
        self.samples.push(sample);
        Ok(())
    }

    /// Adds the samples of the index: some files have their first ones there.
    fn add_indexed_samples(&mut self, track: &MovieTrack<'_>) -> Result<(), MediaError> {
        let table = track.table()?;
        if table.samples() > self.samples_max {
            return Err(MediaError::Malformed("a track has too many samples"));
        }
        for (location, sample) in table.located_samples()? {
            self.push(sample)?;
            self.chunks.push(SampleChunk {
                offset: location.offset,
                bytes: location.bytes.into(),
                samples: 1,
            });
        }
        Ok(())
    }

    /// Adds the samples of a `traf` in the `moof` at `moof_at`; returns the end of their data.
    /// `data_at` is the start of the data if the boxes state none.
    fn add_fragment(&mut self, traf: &[u8], moof_at: u64, data_at: u64) -> Result<u64, MediaError> {
        let mut tfhd = BoxFields::new(child(traf, b"tfhd")?);
        let flags = tfhd.u32()?;
        tfhd.skip(4)?;
        // Offsets of the runs count from an explicit base, from the fragment's own box
        // (`default-base-is-moof`), or from the end of the previous track's data (8.8.7.1).
        let base = match flags {
            flags if flags & 0x01 != 0 => tfhd.u64()?,
            flags if flags & 0x02_0000 != 0 => moof_at,
            _ => data_at,
        };
        // The rewritten index has one sample description, so every sample must refer to the
        // first.
        if flags & 0x02 != 0 && tfhd.u32()? != 1 {
            return Err(MediaError::Malformed("its samples are described twice"));
        }
        let defaults = SampleDefaults {
            duration: tfhd.u32_if(flags & 0x08 != 0, self.defaults.duration)?,
            bytes: tfhd.u32_if(flags & 0x10 != 0, self.defaults.bytes)?,
            flags: tfhd.u32_if(flags & 0x20 != 0, self.defaults.flags)?,
        };
        if let Some(tfdt) = optional_child(traf, b"tfdt")? {
            let mut tfdt = BoxFields::new(tfdt);
            let is_wide = tfdt.u32()? >> 24 == 1;
            self.set_next_time(if is_wide {
                tfdt.u64()?
            } else {
                tfdt.u32()?.into()
            })?;
        }
        let mut data_at = base;
        for entry in children(traf) {
            let (kind, trun) = entry?;
            if &kind == b"trun" {
                data_at = self.add_run(trun, base, data_at, defaults)?;
            }
        }
        Ok(data_at)
    }

    /// Sets the decoding time of the next sample. The last one is shown until then.
    fn set_next_time(&mut self, time: u64) -> Result<(), MediaError> {
        const WRONG: MediaError = MediaError::Malformed("its fragments overlap in time");
        match self.samples.last_mut() {
            None => self.begins_at = time,
            Some(last) => {
                // A gap between fragments (a lost segment, a variable rate) lengthens the last
                // sample; a smaller time than its own start would need a negative duration.
                let last_at = self.ends_at - u64::from(last.duration);
                let duration = time.checked_sub(last_at).ok_or(WRONG)?;
                last.duration = u32::try_from(duration).map_err(|_| WRONG)?;
            }
        }
        self.ends_at = time;
        Ok(())
    }

    /// Adds the samples of a `trun` (8.8.8); returns the end of their data.
    fn add_run(
        &mut self,
        trun: &[u8],
        base: u64,
        data_at: u64,
        defaults: SampleDefaults,
    ) -> Result<u64, MediaError> {
        const OUTSIDE: MediaError = MediaError::Malformed("samples lie outside the media data");
        let mut fields = BoxFields::new(trun);
        let (flags, samples) = (fields.u32()?, fields.u32()?);
        let offset = match flags & 0x01 {
            0 => data_at,
            _ => base
                .checked_add_signed(fields.u32()?.cast_signed().into())
                .ok_or(OUTSIDE)?,
        };
        // Most files mark the first sample of a run as a sync sample this way, and give all
        // others one default.
        let mut first_flags = match flags & 0x04 {
            0 => None,
            _ => Some(fields.u32()?),
        };
        let mut bytes = 0_u64;
        for _ in 0..samples {
            let duration = fields.u32_if(flags & 0x100 != 0, defaults.duration)?;
            let length = fields.u32_if(flags & 0x200 != 0, defaults.bytes)?;
            let sample_flags = fields.u32_if(flags & 0x400 != 0, defaults.flags)?;
            let shown_after = fields.u32_if(flags & 0x800 != 0, 0)?;
            // The limit on samples ends a run whose samples take no bytes of the index.
            self.push(TrackSample {
                bytes: length,
                duration,
                shown_after,
                is_sync: first_flags.take().unwrap_or(sample_flags) & NO_SYNC_SAMPLE == 0,
            })?;
            bytes += u64::from(length);
        }
        let end = offset.checked_add(bytes).ok_or(OUTSIDE)?;
        if samples > 0 {
            self.chunks.push(SampleChunk {
                offset,
                bytes,
                samples,
            });
        }
        Ok(end)
    }
}
