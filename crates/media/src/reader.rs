//! Reads the frames of a stored video one by one, for edits of earlier videos. Memory holds the
//! index and the pictures waiting to be shown, never a clip. Refuses files whose content differs
//! from their index; meant for our own store, not for untrusted files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use rusty_h264_common::YuvFrame;

use crate::avc::{AvcDecoder, catch_panic};
use crate::colour::{self, ColourCoding};
use crate::format::FRAMES_MAX;
use crate::movie::MovieIndex;
use crate::sample_table::SampleLocation;
use crate::{MediaError, ProbeInfo};

/// Reads the frames of a stored video one by one.
///
/// Reads an MP4 with one H.264 track of progressive 4:2:0 pictures, as [`crate::Recorder`] writes
/// it; B pictures are put in presentation order. Returns every coded frame once: edit lists and
/// durations are not applied. Decodes in [`Self::next_frame`], on the caller's thread.
pub struct VideoReader {
    file: File,
    info: ProbeInfo,
    decoder: AvcDecoder,
    coding: ColourCoding,
    /// In decoding order.
    locations: Vec<SampleLocation>,
    order: PresentationOrder,
    decoded: u32,
    returned: u32,
    /// Decoded pictures by rank in presentation order.
    waiting: BTreeMap<u32, YuvFrame>,
    sample: Vec<u8>,
    failed: bool,
}

/// The order in which to show decoded pictures.
enum PresentationOrder {
    AsDecoded,
    /// Each sample's rank in presentation order.
    Ranks(Vec<u32>),
}

impl VideoReader {
    /// Reads the file's index and checks it against the H.264 parameter sets.
    pub fn open(path: &Path) -> Result<Self, MediaError> {
        let mut file = File::open(path)?;
        let movie = MovieIndex::read(&mut file)?;
        let info = ProbeInfo::from_movie(&movie)?;
        if info.frames > FRAMES_MAX {
            return Err(MediaError::Malformed("it has too many frames"));
        }
        let track = movie.picture_track()?;
        let (entry, table) = (track.picture_entry()?, track.table()?);
        if entry.entries != 1 {
            return Err(MediaError::Malformed("its pictures are described twice"));
        }
        let decoder = AvcDecoder::new(entry.avcc, entry.width, entry.height)?;
        let locations = table.locations()?;
        // The buffer for a sample is allocated by the index's word, so refuse what no picture
        // needs.
        let bytes_max = decoder.sample_bytes_max();
        if locations.iter().any(|location| location.bytes > bytes_max) {
            return Err(MediaError::Malformed("a sample exceeds its picture"));
        }
        let order = match table.presentation_ranks()? {
            None => PresentationOrder::AsDecoded,
            Some(ranks) => {
                // The number of decoded pictures in memory at once, known from the index before
                // anything is decoded.
                if waiting_max(&ranks) > decoder.waiting_max() {
                    return Err(MediaError::Malformed(
                        "its pictures are too far out of order",
                    ));
                }
                PresentationOrder::Ranks(ranks)
            }
        };
        Ok(Self {
            file,
            info,
            decoder,
            coding: ColourCoding::read(entry.colr)?,
            locations,
            order,
            decoded: 0,
            returned: 0,
            waiting: BTreeMap::new(),
            sample: Vec::new(),
            failed: false,
        })
    }

    /// The content of the file according to its index; the frames match it in number and size.
    pub fn info(&self) -> &ProbeInfo {
        &self.info
    }

    /// `rgb [height][width][3] u8` of the next frame in presentation order, or `None` after the
    /// last. After an error every further call fails.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, MediaError> {
        if self.failed {
            return Err(MediaError::Decode("an earlier picture has failed".into()));
        }
        // Stays set if a step below returns early.
        self.failed = true;
        let frame = self.advance()?;
        self.failed = false;
        Ok(frame)
    }

    fn advance(&mut self) -> Result<Option<Vec<u8>>, MediaError> {
        if self.returned == self.info.frames {
            return Ok(None);
        }
        let frame = loop {
            if let Some(frame) = self.waiting.remove(&self.returned) {
                break frame;
            }
            let (rank, frame) = self.decode_next()?;
            self.waiting.insert(rank, frame);
        };
        // Converted only when shown: waiting pictures take half the memory as I420.
        let rgb = catch_panic(|| colour::i420_to_rgb(&frame, self.coding))??;
        self.returned += 1;
        Ok(Some(rgb))
    }

    /// Decodes the next picture; returns its rank in presentation order.
    fn decode_next(&mut self) -> Result<(u32, YuvFrame), MediaError> {
        const LOST: MediaError = MediaError::Malformed("a frame is missing");
        let index = self.decoded as usize;
        let location = *self.locations.get(index).ok_or(LOST)?;
        let rank = match &self.order {
            PresentationOrder::AsDecoded => self.decoded,
            PresentationOrder::Ranks(ranks) => *ranks.get(index).ok_or(LOST)?,
        };
        self.sample.resize(location.bytes as usize, 0);
        self.file.seek(SeekFrom::Start(location.offset))?;
        self.file.read_exact(&mut self.sample)?;
        let frame = self.decoder.decode(&self.sample)?;
        self.decoded += 1;
        Ok((rank, frame))
    }
}

/// Maximum number of decoded pictures that wait for an earlier one. `ranks` is a permutation.
fn waiting_max(ranks: &[u32]) -> u32 {
    let mut seen = vec![false; ranks.len()];
    let (mut next, mut most) = (0, 0);
    for (decoded, rank) in (1..).zip(ranks) {
        seen[*rank as usize] = true;
        while seen.get(next).is_some_and(|seen| *seen) {
            next += 1;
        }
        most = most.max(decoded - next as u32);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::waiting_max;

    #[test]
    fn pictures_wait_only_for_earlier_ones() {
        assert_eq!(waiting_max(&[0, 1, 2]), 0);
        assert_eq!(waiting_max(&[0, 3, 1, 2]), 1);
        assert_eq!(waiting_max(&[0, 4, 2, 1, 3]), 2);
        assert_eq!(waiting_max(&[3, 2, 1, 0]), 3);
        assert_eq!(waiting_max(&[]), 0);
    }
}
