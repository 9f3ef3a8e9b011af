//! A stored video's frames, one by one, for edits of earlier videos.
//! Memory is the index and the pictures that wait for their turn, never a clip. Refuses files
//! whose content differs from their index; meant for our own store, not for strangers' files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use rusty_h264_common::YuvFrame;

use crate::avc::{AvcDecoder, guarded};
use crate::colour::{self, Coding};
use crate::format::FRAMES_MAX;
use crate::movie::Movie;
use crate::sample_table::SampleRange;
use crate::{MediaError, ProbeInfo};

/// The frames of a stored video, one by one.
///
/// Reads an MP4 with one H.264 track of progressive 4:2:0 pictures, as [`crate::Recorder`] writes
/// it; B pictures are put in presentation order. Every coded frame is returned once: edit lists
/// and durations are not applied. Decoding happens in [`Self::next_frame`], on the caller's thread.
pub struct VideoReader {
    file: File,
    info: ProbeInfo,
    decoder: AvcDecoder,
    coding: Coding,
    /// In decoding order.
    places: Vec<SampleRange>,
    order: Order,
    decoded: u32,
    returned: u32,
    /// Decoded pictures by their place in presentation order.
    waiting: BTreeMap<u32, YuvFrame>,
    sample: Vec<u8>,
    failed: bool,
}

/// The order in which decoded pictures are shown.
enum Order {
    AsDecoded,
    /// The place in presentation order of each sample.
    Ranks(Vec<u32>),
}

impl VideoReader {
    /// Reads the file's index and checks it against what the H.264 parameter sets say.
    pub fn open(path: &Path) -> Result<Self, MediaError> {
        let mut file = File::open(path)?;
        let movie = Movie::read(&mut file)?;
        let info = ProbeInfo::of(&movie)?;
        if info.frames > FRAMES_MAX {
            return Err(MediaError::Malformed("it has too many frames"));
        }
        let track = movie.picture_track()?;
        let (entry, table) = (track.picture_entry()?, track.table()?);
        if entry.entries != 1 {
            return Err(MediaError::Malformed("its pictures are described twice"));
        }
        let decoder = AvcDecoder::new(entry.avcc, entry.width, entry.height)?;
        let places = table.places()?;
        let bytes_max = decoder.sample_bytes_max();
        if places.iter().any(|place| place.bytes > bytes_max) {
            return Err(MediaError::Malformed("a sample exceeds its picture"));
        }
        let order = match table.presentation_ranks()? {
            None => Order::AsDecoded,
            Some(ranks) => {
                if waiting_max(&ranks) > decoder.waiting_max() {
                    return Err(MediaError::Malformed(
                        "its pictures are too far out of order",
                    ));
                }
                Order::Ranks(ranks)
            }
        };
        Ok(Self {
            file,
            info,
            decoder,
            coding: Coding::read(entry.colr)?,
            places,
            order,
            decoded: 0,
            returned: 0,
            waiting: BTreeMap::new(),
            sample: Vec::new(),
            failed: false,
        })
    }

    /// What the file's index says; the frames are as many and as large.
    pub fn info(&self) -> &ProbeInfo {
        &self.info
    }

    /// `rgb [height][width][3] u8` of the next frame in presentation order, or `None` after the
    /// last. After an error there are no more frames, only errors.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, MediaError> {
        if self.failed {
            return Err(MediaError::Decode("an earlier picture has failed".into()));
        }
        // Also when a step below leaves early.
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
        let rgb = guarded(|| colour::i420_to_rgb(&frame, self.coding))??;
        self.returned += 1;
        Ok(Some(rgb))
    }

    /// The next picture in decoding order and its place in presentation order.
    fn decode_next(&mut self) -> Result<(u32, YuvFrame), MediaError> {
        const LOST: MediaError = MediaError::Malformed("a frame is missing");
        let index = self.decoded as usize;
        let place = *self.places.get(index).ok_or(LOST)?;
        let rank = match &self.order {
            Order::AsDecoded => self.decoded,
            Order::Ranks(ranks) => *ranks.get(index).ok_or(LOST)?,
        };
        self.sample.resize(place.bytes as usize, 0);
        self.file.seek(SeekFrom::Start(place.offset))?;
        self.file.read_exact(&mut self.sample)?;
        let frame = self.decoder.decode(&self.sample)?;
        self.decoded += 1;
        Ok((rank, frame))
    }
}

/// The most pictures that are decoded, but must wait for an earlier one. `ranks` is a permutation.
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
