//! The `moov` box: tracks, times and tables. The sound's edit list skips the encoder's priming, so
//! it starts on time.

use mp4_atom::{
    AnySampleGroupEntry, Co64, Codec, Dinf, Dref, Edts, Elst, ElstEntry, FourCC, Hdlr, Mdhd, Mdia,
    Minf, Moov, Mvhd, Sbgp, SbgpEntry, Sgpd, SgpdEntry, Smhd, Stbl, Stco, Stsc, StscEntry, Stsd,
    Stss, Stsz, StszSamples, Stts, SttsEntry, Tkhd, Trak, Url, Vmhd,
};

use super::chunks::{ChunkTrack, Interleaving};
use super::entries;
use crate::audio::{AudioTrack, CodecConfig};
use crate::format::SAMPLE_RATE_HZ;
use crate::video::VideoTrack;
use crate::{ClipFormat, MediaError};

const VIDEO_TRACK_ID: u32 = 1;
const AUDIO_TRACK_ID: u32 = 2;
/// Movie and picture ticks per frame: fine enough for sound edits within a frame.
const TICKS_PER_FRAME: u32 = 1_000;

/// The inputs of the index.
pub(super) struct Index<'a> {
    pub(super) format: &'a ClipFormat,
    pub(super) video: &'a VideoTrack,
    pub(super) audio: Option<&'a AudioTrack>,
    pub(super) interleaving: &'a Interleaving,
}

impl Index<'_> {
    /// The index of a file with media data from `media_start` on.
    pub(super) fn moov(&self, media_start: u64) -> Result<Moov, MediaError> {
        let mut trak = vec![self.video_track(media_start)?];
        trak.extend(self.audio.map(|audio| self.audio_track(audio, media_start)));
        Ok(Moov {
            mvhd: Mvhd {
                timescale: self.timescale(),
                duration: self.duration(),
                rate: 1.into(),
                volume: 1.into(),
                next_track_id: trak.len() as u32 + 1,
                ..Mvhd::default()
            },
            trak,
            ..Moov::default()
        })
    }

    fn timescale(&self) -> u32 {
        self.format.fps * TICKS_PER_FRAME
    }

    fn duration(&self) -> u64 {
        u64::from(self.format.frames) * u64::from(TICKS_PER_FRAME)
    }

    fn video_track(&self, media_start: u64) -> Result<Trak, MediaError> {
        let entry = entries::video(self.format, self.video)?;
        let sizes = &self.video.spooled.sizes;
        let times = SttsEntry {
            sample_count: sizes.len() as u32,
            sample_delta: TICKS_PER_FRAME,
        };
        let mut stbl = self.table(ChunkTrack::Video, entry, sizes, vec![times], media_start);
        let sync = self
            .video
            .sync_frames
            .iter()
            .map(|frame| frame + 1)
            .collect();
        stbl.stss = Some(Stss { entries: sync });
        Ok(Trak {
            tkhd: Tkhd {
                track_id: VIDEO_TRACK_ID,
                duration: self.duration(),
                enabled: true,
                in_movie: true,
                width: (self.format.width as u16).into(),
                height: (self.format.height as u16).into(),
                ..Tkhd::default()
            },
            edts: Some(edit(self.duration(), 0)),
            mdia: Mdia {
                mdhd: Mdhd {
                    timescale: self.timescale(),
                    duration: self.duration(),
                    language: "und".into(),
                    ..Mdhd::default()
                },
                hdlr: Hdlr {
                    handler: b"vide".into(),
                    name: "Kinora video".into(),
                },
                minf: Minf {
                    vmhd: Some(Vmhd::default()),
                    dinf: same_file(),
                    stbl,
                    ..Minf::default()
                },
            },
            ..Trak::default()
        })
    }

    fn audio_track(&self, audio: &AudioTrack, media_start: u64) -> Trak {
        let entry = entries::audio(audio);
        let sizes = &audio.spooled.sizes;
        let times = packet_times(audio);
        let mut stbl = self.table(ChunkTrack::Audio, entry, sizes, times, media_start);
        let (sgpd, sbgp) = pre_roll(audio);
        stbl.sgpd.push(sgpd);
        stbl.sbgp.push(sbgp);
        // Never past the picture's end, though rounding may add a sample.
        let heard = audio.samples * u64::from(self.timescale()) / u64::from(SAMPLE_RATE_HZ);
        let heard = heard.min(self.duration());
        Trak {
            tkhd: Tkhd {
                track_id: AUDIO_TRACK_ID,
                duration: heard,
                alternate_group: 1,
                enabled: true,
                in_movie: true,
                volume: 1.into(),
                ..Tkhd::default()
            },
            edts: Some(edit(heard, audio.config.priming.into())),
            mdia: Mdia {
                mdhd: Mdhd {
                    timescale: SAMPLE_RATE_HZ,
                    duration: audio.samples + u64::from(audio.config.priming),
                    language: "und".into(),
                    ..Mdhd::default()
                },
                hdlr: Hdlr {
                    handler: b"soun".into(),
                    name: "Kinora sound".into(),
                },
                minf: Minf {
                    smhd: Some(Smhd::default()),
                    dinf: same_file(),
                    stbl,
                    ..Minf::default()
                },
            },
            ..Trak::default()
        }
    }

    /// The tables common to all tracks.
    fn table(
        &self,
        track: ChunkTrack,
        entry: Codec,
        sizes: &[u32],
        times: Vec<SttsEntry>,
        media_start: u64,
    ) -> Stbl {
        let (stco, co64) = self.chunk_offsets(track, media_start);
        Stbl {
            stsd: Stsd {
                codecs: vec![entry],
            },
            stts: Stts { entries: times },
            stsc: self.samples_per_chunk(track),
            stsz: Stsz {
                samples: StszSamples::Different {
                    sizes: sizes.to_vec(),
                },
            },
            stco,
            co64,
            ..Stbl::default()
        }
    }

    /// Offsets of 32 bits, or of 64 if the file needs them. The choice depends only on sizes, with
    /// room for the index, and not on `media_start`.
    fn chunk_offsets(&self, track: ChunkTrack, media_start: u64) -> (Option<Stco>, Option<Co64>) {
        let offsets = self
            .interleaving
            .of(track)
            .map(|chunk| media_start + chunk.offset);
        if self.interleaving.bytes < u64::from(u32::MAX) - (256 << 20) {
            let entries = offsets.map(|offset| offset as u32).collect();
            (Some(Stco { entries }), None)
        } else {
            (
                None,
                Some(Co64 {
                    entries: offsets.collect(),
                }),
            )
        }
    }

    /// Groups of consecutive chunks with the same number of samples.
    fn samples_per_chunk(&self, track: ChunkTrack) -> Stsc {
        let mut entries: Vec<StscEntry> = Vec::new();
        for (first_chunk, chunk) in (1..).zip(self.interleaving.of(track)) {
            if entries
                .last()
                .is_none_or(|last| last.samples_per_chunk != chunk.samples)
            {
                entries.push(StscEntry {
                    first_chunk,
                    samples_per_chunk: chunk.samples,
                    sample_description_index: 1,
                });
            }
        }
        Stsc { entries }
    }
}

/// Full packets except the last, which is cut at the end of the sound.
fn packet_times(audio: &AudioTrack) -> Vec<SttsEntry> {
    let packet = audio.config.packet_samples;
    let full = (audio.spooled.sizes.len() as u32).saturating_sub(1);
    let all = audio.samples + u64::from(audio.config.priming);
    let last = all.saturating_sub(u64::from(full) * u64::from(packet));
    let entries = [(full, packet), (1, u32::try_from(last).unwrap_or(packet))];
    let entries = entries.into_iter().filter(|(count, _)| *count > 0);
    entries
        .map(|(sample_count, sample_delta)| SttsEntry {
            sample_count,
            sample_delta,
        })
        .collect()
}

/// Shows `duration` movie ticks of the track, starting at `media_time` (ISO/IEC 14496-12, 8.6.6).
fn edit(duration: u64, media_time: u64) -> Edts {
    let entry = ElstEntry {
        segment_duration: duration,
        media_time: Some(media_time),
        media_rate: 1.into(),
    };
    Edts {
        elst: Some(Elst {
            entries: vec![entry],
        }),
    }
}

fn same_file() -> Dinf {
    Dinf {
        dref: Dref {
            entries: vec![Url::default().into()],
        },
    }
}

/// How many packets a decoder needs before its output is correct: one for AAC, 80 ms for Opus
/// (ISO/IEC 14496-12, 10.1; "Encapsulation of Opus in ISO Base Media File Format", 4.3.6.2).
fn pre_roll(audio: &AudioTrack) -> (Sgpd, Sbgp) {
    let distance: i16 = match audio.config.codec {
        #[cfg(feature = "aac")]
        CodecConfig::Aac { .. } => -1,
        CodecConfig::Opus => -4,
    };
    let roll = FourCC::new(b"roll");
    let entry = SgpdEntry {
        description_length: Some(2),
        entry: AnySampleGroupEntry::UnknownGroupingType(roll, distance.to_be_bytes().to_vec()),
    };
    let sgpd = Sgpd {
        grouping_type: roll,
        default_length: Some(2),
        default_group_description_index: None,
        static_group_description: false,
        static_mapping: false,
        essential: false,
        entries: vec![entry],
    };
    let sample_count = audio.spooled.sizes.len() as u32;
    let entries = vec![SbgpEntry {
        sample_count,
        group_description_index: 1,
    }];
    (
        sgpd,
        Sbgp {
            grouping_type: roll,
            grouping_type_parameter: None,
            entries,
        },
    )
}
