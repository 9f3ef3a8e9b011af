//! Rewrites a fragmented film, as some servers deliver it by default, with one index before its media data: players start
//! such a file at once and seek in it by ranges, and everything else here reads only those. Decodes nothing.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::MediaError;
use crate::boxes::{BoxFields, child, children, optional_child};
use crate::fragments::{FragmentedMovie, FragmentedTrack, SampleChunk};

/// Rewrites the film at `path` with one index if it is fragmented; returns whether it was.
/// Leaves any other file unchanged, film or not. Other top-level boxes, such as its maker's
/// signature, are lost.
///
/// # Errors
/// [`MediaError::Malformed`] for fragments that cannot be used, and errors of reading and writing.
pub fn defragment(path: &Path) -> Result<bool, MediaError> {
    let mut file = File::open(path)?;
    let Some(fragments) = FragmentedMovie::read(&mut file)? else {
        return Ok(false);
    };
    let tracks = fragments.tracks()?;
    let chunks = chunks_in_file_order(&tracks, &fragments)?;
    let mut offsets: Vec<_> = tracks
        .iter()
        .map(|track| vec![0; track.chunks.len()])
        .collect();
    let (ftyp, mdat) = (box_with(b"ftyp", &fragments.ftyp)?, mdat_header(&chunks));
    // Offsets change no sizes.
    let moov_bytes = index(&fragments.moov, &tracks, &offsets)?.len();
    let mut offset = (ftyp.len() + moov_bytes + mdat.len()) as u64;
    for PlacedChunk {
        track,
        index,
        chunk,
    } in &chunks
    {
        offsets[*track][*index] = offset;
        offset += chunk.bytes;
    }
    let moov = index(&fragments.moov, &tracks, &offsets)?;
    // In the same folder, so that the final rename is atomic: a crash leaves the old film or the
    // new one.
    let mut target = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    let mut to = BufWriter::new(target.as_file_mut());
    to.write_all(&[ftyp, moov, mdat].concat())?;
    for PlacedChunk { chunk, .. } in chunks {
        file.seek(SeekFrom::Start(chunk.offset))?;
        let copied = io::copy(&mut Read::by_ref(&mut file).take(chunk.bytes), &mut to)?;
        if copied != chunk.bytes {
            return Err(MediaError::Malformed("its media data is cut off"));
        }
    }
    to.flush()?;
    drop(to);
    let permissions = file.metadata()?.permissions();
    target.as_file().set_permissions(permissions)?;
    target.persist(path).map_err(|error| error.error)?;
    Ok(true)
}

/// A chunk with its track.
struct PlacedChunk {
    track: usize,
    /// Index among the chunks of its track.
    index: usize,
    chunk: SampleChunk,
}

/// All chunks in file order. Each must lie within the media data, and none may overlap another:
/// otherwise a small file could become a large one.
fn chunks_in_file_order(
    tracks: &[FragmentedTrack<'_>],
    fragments: &FragmentedMovie,
) -> Result<Vec<PlacedChunk>, MediaError> {
    let mut chunks = Vec::new();
    for (track, of_track) in tracks.iter().enumerate() {
        let placed = of_track.chunks.iter().enumerate();
        chunks.extend(placed.map(|(index, chunk)| PlacedChunk {
            track,
            index,
            chunk: *chunk,
        }));
    }
    chunks.sort_by_key(|placed| placed.chunk.offset);
    // Chunks are sorted by offset, so one comparison with the end of the previous one finds
    // every overlap. Without this check a 1 MB file whose samples all point at the same megabyte
    // would be rewritten as gigabytes.
    let mut free_from = 0;
    for PlacedChunk { chunk, .. } in &chunks {
        let end = chunk.offset + chunk.bytes;
        let after = fragments
            .media
            .partition_point(|data| data.start <= chunk.offset);
        let holder = after
            .checked_sub(1)
            .and_then(|index| fragments.media.get(index));
        if holder.is_none_or(|data| end > data.end) {
            return Err(MediaError::Malformed("samples lie outside the media data"));
        }
        if chunk.offset < free_from {
            return Err(MediaError::Malformed("its samples overlap in the file"));
        }
        free_from = end;
    }
    Ok(chunks)
}

/// The header of a box with the bytes of all chunks.
fn mdat_header(chunks: &[PlacedChunk]) -> Vec<u8> {
    let bytes: u64 = chunks.iter().map(|placed| placed.chunk.bytes).sum();
    // A box of 4 GiB or more states its size in 64 bits, in a header of 16 bytes.
    match u32::try_from(bytes + 8) {
        Ok(size) => [&size.to_be_bytes()[..], b"mdat"].concat(),
        Err(_) => [
            &1_u32.to_be_bytes()[..],
            b"mdat",
            &(bytes + 16).to_be_bytes(),
        ]
        .concat(),
    }
}

/// A box with this body.
fn box_with(kind: &[u8; 4], body: &[u8]) -> Result<Vec<u8>, MediaError> {
    let size = u32::try_from(body.len() + 8)
        .map_err(|_| MediaError::Mux("a box of the index is too large".to_owned()))?;
    Ok([&size.to_be_bytes()[..], kind, body].concat())
}

/// The box `moov` with the samples of all fragments in its tables; `offsets` are those of each track's chunks.
fn index(
    moov: &[u8],
    tracks: &[FragmentedTrack<'_>],
    offsets: &[Vec<u64>],
) -> Result<Vec<u8>, MediaError> {
    let timescale = timescale_of(child(moov, b"mvhd")?)?;
    // Fragments state absolute decoding times. The film begins with its earliest track; the
    // others get an empty edit of the difference.
    let begin = tracks.iter().filter(|track| !track.samples.is_empty());
    let begin = begin.map(|track| seconds(track.begins_at, track.timescale));
    let begin = begin.fold(f64::INFINITY, f64::min);
    let writers: Vec<_> = tracks
        .iter()
        .zip(offsets)
        .map(|(track, offsets)| TrackWriter {
            track,
            offsets,
            movie_timescale: timescale,
            begins_after: if track.samples.is_empty() {
                0.0
            } else {
                seconds(track.begins_at, track.timescale) - begin
            },
        })
        .collect();
    let longest = writers.iter().map(TrackWriter::movie_ticks).max();
    let (mut body, mut next) = (Vec::new(), writers.iter());
    for entry in children(moov) {
        let (kind, old) = entry?;
        match (&kind, next.as_slice()) {
            (b"mvex", _) => {}
            (b"mvhd", _) => {
                let mvhd = with_duration(old, (16, 24), longest.unwrap_or(0))?;
                body.extend(box_with(&kind, &mvhd)?);
            }
            // `tracks_of_index` read the tracks in this same order.
            (b"trak", [track, ..]) => {
                body.extend(box_with(&kind, &track.trak()?)?);
                next.next();
            }
            _ => body.extend(box_with(&kind, old)?),
        }
    }
    box_with(b"moov", &body)
}

fn seconds(ticks: u64, timescale: u32) -> f64 {
    ticks as f64 / f64::from(timescale)
}

/// The time scale of an `mvhd` (8.2.2).
fn timescale_of(mvhd: &[u8]) -> Result<u32, MediaError> {
    let mut fields = BoxFields::new(mvhd);
    let is_wide = fields.u32()? >> 24 == 1;
    match fields.skip(if is_wide { 16 } else { 8 })?.u32()? {
        0 => Err(MediaError::Malformed("it has no time scale")),
        timescale => Ok(timescale),
    }
}

/// A header with another duration, whose place depends on its version.
fn with_duration(
    header: &[u8],
    (at_narrow, at_wide): (usize, usize),
    duration: u64,
) -> Result<Vec<u8>, MediaError> {
    let mut header = header.to_vec();
    let wide = duration.to_be_bytes();
    // All ones: unknown.
    let narrow = u32::try_from(duration).unwrap_or(u32::MAX).to_be_bytes();
    let (at, value) = match header.first() {
        Some(1) => (at_wide, &wide[..]),
        _ => (at_narrow, &narrow[..]),
    };
    let place = header.get_mut(at..at + value.len());
    place
        .ok_or(MediaError::Malformed("a box is too short"))?
        .copy_from_slice(value);
    Ok(header)
}

/// Writes the `trak` of a track.
struct TrackWriter<'a> {
    track: &'a FragmentedTrack<'a>,
    offsets: &'a [u64],
    movie_timescale: u32,
    /// Seconds from the beginning of the film to that of the track.
    begins_after: f64,
}

impl TrackWriter<'_> {
    /// The track's length in units of the movie's time scale, including the delay before it.
    fn movie_ticks(&self) -> u64 {
        let length = seconds(self.track.ticks(), self.track.timescale) + self.begins_after;
        (length * f64::from(self.movie_timescale)).round() as u64
    }

    fn trak(&self) -> Result<Vec<u8>, MediaError> {
        let mut body = Vec::new();
        let mut edits = self.edits()?;
        for entry in children(self.track.trak) {
            let (kind, old) = entry?;
            match &kind {
                b"edts" => {}
                b"tkhd" => {
                    let tkhd = with_duration(old, (20, 28), self.movie_ticks())?;
                    body.extend(box_with(&kind, &tkhd)?);
                }
                b"mdia" => {
                    body.append(&mut edits);
                    body.extend(box_with(&kind, &self.mdia(old)?)?);
                }
                _ => body.extend(box_with(&kind, old)?),
            }
        }
        Ok(body)
    }

    /// The box `edts` (8.6.5), if the track needs one. In fragmented films, an edit of length 0 lasts to the end.
    fn edits(&self) -> Result<Vec<u8>, MediaError> {
        let mut entries: Vec<(u64, i64, u32)> = Vec::new();
        if let Some(edts) = optional_child(self.track.trak, b"edts")?
            && let Some(elst) = optional_child(edts, b"elst")?
        {
            let mut fields = BoxFields::new(elst);
            let is_wide = fields.u32()? >> 24 == 1;
            for _ in 0..fields.u32()? {
                entries.push(if is_wide {
                    (fields.u64()?, fields.u64()?.cast_signed(), fields.u32()?)
                } else {
                    (
                        fields.u32()?.into(),
                        fields.u32()?.cast_signed().into(),
                        fields.u32()?,
                    )
                });
            }
        }
        let to_movie = f64::from(self.movie_timescale);
        let delay = (self.begins_after * to_movie).round() as u64;
        if entries.is_empty() && delay == 0 {
            return Ok(Vec::new());
        }
        // With an edit list, only what it names is shown: name the whole track beside the delay.
        if entries.is_empty() {
            entries.push((0, 0, 0x0001_0000));
        }
        for (length, from, _) in &mut entries {
            if *length == 0 && *from >= 0 {
                let left = self.track.shown_until().saturating_sub(from.unsigned_abs());
                // A length that is rounded down would cut the last sample.
                *length = (seconds(left, self.track.timescale) * to_movie).ceil() as u64;
            }
        }
        if delay > 0 {
            entries.insert(0, (delay, -1, 0x0001_0000));
        }
        let mut elst = table(1 << 24, entries.len());
        for (length, from, rate) in entries {
            elst.extend(length.to_be_bytes());
            elst.extend(from.to_be_bytes());
            elst.extend(rate.to_be_bytes());
        }
        box_with(b"edts", &box_with(b"elst", &elst)?)
    }

    fn mdia(&self, old: &[u8]) -> Result<Vec<u8>, MediaError> {
        let mut body = Vec::new();
        for entry in children(old) {
            let (kind, old) = entry?;
            let new = match &kind {
                b"mdhd" => with_duration(old, (16, 24), self.track.ticks())?,
                b"minf" => self.minf(old)?,
                _ => old.to_vec(),
            };
            body.extend(box_with(&kind, &new)?);
        }
        Ok(body)
    }

    fn minf(&self, old: &[u8]) -> Result<Vec<u8>, MediaError> {
        let mut body = Vec::new();
        for entry in children(old) {
            let (kind, old) = entry?;
            let new = match &kind {
                b"stbl" => self.stbl(child(old, b"stsd")?)?,
                _ => old.to_vec(),
            };
            body.extend(box_with(&kind, &new)?);
        }
        Ok(body)
    }

    /// The sample tables (8.6 and 8.7).
    fn stbl(&self, stsd: &[u8]) -> Result<Vec<u8>, MediaError> {
        let samples = &self.track.samples;
        let mut body = box_with(b"stsd", stsd)?;
        let durations = run_length_table(0, samples.iter().map(|sample| sample.duration));
        body.extend(box_with(b"stts", &durations)?);
        if samples.iter().any(|sample| sample.shown_after != 0) {
            // Version 1: signed.
            let offsets =
                run_length_table(1 << 24, samples.iter().map(|sample| sample.shown_after));
            body.extend(box_with(b"ctts", &offsets)?);
        }
        if !samples.iter().all(|sample| sample.is_sync) {
            let numbered = (1_u32..).zip(samples).filter(|(_, sample)| sample.is_sync);
            let sync: Vec<_> = numbered
                .flat_map(|(number, _)| number.to_be_bytes())
                .collect();
            let stss = [table(0, sync.len() / 4), sync].concat();
            body.extend(box_with(b"stss", &stss)?);
        }
        // Not all of one size.
        let mut stsz = vec![0; 8];
        stsz.extend((samples.len() as u32).to_be_bytes());
        stsz.extend(samples.iter().flat_map(|sample| sample.bytes.to_be_bytes()));
        body.extend(box_with(b"stsz", &stsz)?);
        body.extend(box_with(b"stsc", &self.samples_of_chunks())?);
        // Always 64-bit offsets: the index's size must not depend on their values, because they
        // depend on its size.
        let mut co64 = table(0, self.offsets.len());
        co64.extend(self.offsets.iter().flat_map(|offset| offset.to_be_bytes()));
        body.extend(box_with(b"co64", &co64)?);
        Ok(body)
    }

    /// The body of `stsc` (8.7.4): runs of chunks with the same number of samples.
    fn samples_of_chunks(&self) -> Vec<u8> {
        let mut entries = Vec::new();
        let mut before = 0;
        for (number, chunk) in (1_u32..).zip(&self.track.chunks) {
            // An entry is written only where the number changes: it holds for all following
            // chunks.
            if chunk.samples != before {
                before = chunk.samples;
                entries.extend([number, chunk.samples, 1].map(u32::to_be_bytes).concat());
            }
        }
        [table(0, entries.len() / 12), entries].concat()
    }
}

/// Version and flags of a table, and the number of its entries.
fn table(version_and_flags: u32, entries: usize) -> Vec<u8> {
    [version_and_flags, entries as u32]
        .map(u32::to_be_bytes)
        .concat()
}

/// The body of a run-length coded table (`stts`, `ctts`).
fn run_length_table(version_and_flags: u32, values: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((count, last)) if *last == value => *count += 1,
            _ => runs.push((1, value)),
        }
    }
    let entries = runs.iter().flat_map(|(count, value)| [*count, *value]);
    let entries: Vec<_> = entries.flat_map(u32::to_be_bytes).collect();
    [table(version_and_flags, runs.len()), entries].concat()
}
