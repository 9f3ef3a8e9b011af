//! Assigns samples to chunks, and orders the chunks. A player that reads the file front to back
//! never needs more than half a second ahead.

use crate::ClipFormat;
use crate::audio::AudioTrack;
use crate::format::SAMPLE_RATE_HZ;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkTrack {
    Video,
    Audio,
}

/// Consecutive samples of one track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) track: ChunkTrack,
    pub(super) samples: u32,
    /// Offset from the start of the media data.
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// All chunks in file order.
pub(super) struct Interleaving {
    pub(super) chunks: Vec<Chunk>,
    pub(super) bytes: u64,
}

impl Interleaving {
    pub(super) fn plan(format: &ClipFormat, video: &[u32], audio: Option<&AudioTrack>) -> Self {
        let mut plan = Self {
            chunks: Vec::new(),
            bytes: 0,
        };
        let (mut video_done, mut audio_done) = (0, 0);
        let (audio, packet_samples) = audio.map_or((&[][..], 1), |track| {
            (&track.spooled.sizes[..], track.config.packet_samples)
        });
        for half_second in 1u64.. {
            let video_end = half_second * u64::from(format.fps) / 2;
            let video_end = usize::try_from(video_end)
                .unwrap_or(usize::MAX)
                .min(video.len());
            plan.push(ChunkTrack::Video, &video[video_done..video_end]);
            video_done = video_end;
            let audio_end = if video_done == video.len() {
                // The picture's end brings all of the remaining sound.
                audio.len()
            } else {
                let samples = half_second * u64::from(SAMPLE_RATE_HZ) / 2;
                let packets = samples / u64::from(packet_samples);
                usize::try_from(packets)
                    .unwrap_or(usize::MAX)
                    .min(audio.len())
            };
            plan.push(ChunkTrack::Audio, &audio[audio_done..audio_end]);
            audio_done = audio_end;
            if video_done == video.len() {
                break;
            }
        }
        plan
    }

    fn push(&mut self, track: ChunkTrack, sizes: &[u32]) {
        if sizes.is_empty() {
            return;
        }
        let bytes = sizes.iter().copied().map(u64::from).sum();
        let samples = sizes.len() as u32;
        self.chunks.push(Chunk {
            track,
            samples,
            offset: self.bytes,
            bytes,
        });
        self.bytes += bytes;
    }

    /// The chunks of one track in file order.
    pub(super) fn of(&self, track: ChunkTrack) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter(move |chunk| chunk.track == track)
    }
}
