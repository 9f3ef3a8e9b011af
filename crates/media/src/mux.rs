//! Writes encoded tracks to an MP4 with its index first (fast start), samples interleaved every
//! half second, and a metadata packet last, so that the bytes before it do not depend on it.
//! Formats: ISO/IEC 14496-12 (boxes), 14496-15 (`avc1`). Copies from the spools; never holds the
//! clip in memory.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use mp4_atom::{
    AnySampleGroupEntry, Audio, Avc1, Avcc, AvccExt, Btrt, Co64, Codec, Colr, Dinf, Dops, Dref,
    Edts, Elst, ElstEntry, Encode, FourCC, Ftyp, Hdlr, Header, Mdhd, Mdia, Minf, Moov, Mvhd, Opus,
    Pasp, Sbgp, SbgpEntry, Sgpd, SgpdEntry, Smhd, Stbl, Stco, Stsc, StscEntry, Stsd, Stss, Stsz,
    StszSamples, Stts, SttsEntry, Tkhd, Trak, Url, Visual, Vmhd,
};

use crate::audio::{AudioConfig, AudioTrack, CodecConfig};
use crate::format::SAMPLE_RATE_HZ;
use crate::provenance::uuid_box;
use crate::video::VideoTrack;
use crate::written::{HashingWriter, WrittenFile};
use crate::{ClipFormat, MediaError};

/// Writes the whole file to `path`, from first byte to last, replacing an existing one.
pub(crate) fn write(
    path: &Path,
    format: &ClipFormat,
    mut video: VideoTrack,
    mut audio: Option<AudioTrack>,
    packet: Option<&str>,
) -> Result<WrittenFile, MediaError> {
    let interleaving = ChunkPlan::plan(format, &video.spooled.sizes, audio.as_ref());
    let mdat_bytes = usize::try_from(interleaving.bytes).map_err(|_| too_large())?;
    let mut head = Vec::new();
    encode(&file_type(), &mut head)?;
    let media_header = {
        let mut header = Vec::new();
        encode(
            &Header {
                kind: FourCC::new(b"mdat"),
                size: Some(mdat_bytes),
            },
            &mut header,
        )?;
        header
    };
    let index = IndexBuilder {
        format,
        video: &video,
        audio: audio.as_ref(),
        interleaving: &interleaving,
    };
    // Offsets count from the start of the file, past the index that contains them. The size of the
    // index does not depend on their values, so it is built twice.
    let mut moov = Vec::new();
    encode(&index.moov(0)?, &mut moov)?;
    let media_start = (head.len() + moov.len() + media_header.len()) as u64;
    let moov_bytes = moov.len();
    moov.clear();
    encode(&index.moov(media_start)?, &mut moov)?;
    if moov.len() != moov_bytes {
        return Err(MediaError::Mux("the index changed its size".into()));
    }
    // Hashed while written: the store needs the SHA-256, and reading the file again would double
    // the I/O.
    let file = HashingWriter::new(File::create(path)?);
    let mut file = BufWriter::with_capacity(256 << 10, file);
    file.write_all(&head)?;
    file.write_all(&moov)?;
    file.write_all(&media_header)?;
    for chunk in &interleaving.chunks {
        let source = match (chunk.track, &mut audio) {
            (ChunkTrack::Video, _) => &mut video.spooled.samples,
            (ChunkTrack::Audio, Some(audio)) => &mut audio.spooled.samples,
            (ChunkTrack::Audio, None) => return Err(MediaError::Mux("no sound track".into())),
        };
        let copied = io::copy(&mut source.take(chunk.bytes), &mut file)?;
        if copied != chunk.bytes {
            return Err(MediaError::Mux("a spool is shorter than its sizes".into()));
        }
    }
    if let Some(packet) = packet {
        file.write_all(&uuid_box(packet)?)?;
    }
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(file.finish())
}

fn file_type() -> Ftyp {
    Ftyp {
        major_brand: b"isom".into(),
        minor_version: 512,
        compatible_brands: vec![
            b"isom".into(),
            b"iso2".into(),
            b"avc1".into(),
            b"mp41".into(),
        ],
    }
}

fn encode(atom: &impl Encode, bytes: &mut Vec<u8>) -> Result<(), MediaError> {
    atom.encode(bytes)
        .map_err(|cause| MediaError::Mux(cause.to_string()))
}

fn too_large() -> MediaError {
    MediaError::Mux("the clip is too large for this machine".into())
}

// Assigns samples to chunks, and orders the chunks. A player that reads the file front to back
// never needs more than half a second ahead.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkTrack {
    Video,
    Audio,
}

/// Consecutive samples of one track.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MediaChunk {
    track: ChunkTrack,
    samples: u32,
    /// Offset from the start of the media data.
    offset: u64,
    bytes: u64,
}

/// All chunks in file order.
struct ChunkPlan {
    chunks: Vec<MediaChunk>,
    bytes: u64,
}

impl ChunkPlan {
    fn plan(format: &ClipFormat, video: &[u32], audio: Option<&AudioTrack>) -> Self {
        let mut plan = Self {
            chunks: Vec::new(),
            bytes: 0,
        };
        let (mut video_done, mut audio_done) = (0, 0);
        let (audio, packet_samples) = audio.map_or((&[][..], 1), |track| {
            (&track.spooled.sizes[..], track.config.packet_samples)
        });
        // Picture first, then the sound of the same half second, so a player that reads front to
        // back never buffers more than that.
        for half_second in 1u64.. {
            // Rounded down, so odd rates alternate: 25 frames/s give 12, 13, 12, ... frames.
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
        self.chunks.push(MediaChunk {
            track,
            samples,
            offset: self.bytes,
            bytes,
        });
        self.bytes += bytes;
    }

    /// The chunks of one track in file order.
    fn chunks_of(&self, track: ChunkTrack) -> impl Iterator<Item = &MediaChunk> {
        self.chunks.iter().filter(move |chunk| chunk.track == track)
    }
}

// The `moov` box: tracks, times and tables. The sound's edit list skips the encoder's priming, so
// it starts on time.

const VIDEO_TRACK_ID: u32 = 1;
const AUDIO_TRACK_ID: u32 = 2;
/// Movie and picture ticks per frame: fine enough for sound edits within a frame.
const TICKS_PER_FRAME: u32 = 1_000;

/// The inputs of the index.
struct IndexBuilder<'a> {
    format: &'a ClipFormat,
    video: &'a VideoTrack,
    audio: Option<&'a AudioTrack>,
    interleaving: &'a ChunkPlan,
}

impl IndexBuilder<'_> {
    /// The index of a file with media data from `media_start` on.
    fn moov(&self, media_start: u64) -> Result<Moov, MediaError> {
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
        let entry = video_entry(self.format, self.video)?;
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
        let entry = audio_entry(audio);
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
            .chunks_of(track)
            .map(|chunk| media_start + chunk.offset);
        // The index is built twice, and its size must be the same both times: decide by the
        // media data alone, and leave 256 MiB for the index in front of it.
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
        for (first_chunk, chunk) in (1..).zip(self.interleaving.chunks_of(track)) {
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
    // The stated duration of the last packet trims the padding at its end.
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
    // Negative: that many packets before the one at which playback starts.
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

#[cfg(feature = "aac")]
mod aac;

/// Rec. ITU-T H.273: code point 1 is BT.709 for primaries, transfer and matrix alike.
const BT709: u16 = 1;

fn video_entry(format: &ClipFormat, track: &VideoTrack) -> Result<Codec, MediaError> {
    let sets = &track.parameter_sets;
    let mut avcc =
        Avcc::new(&sets.sps, &sets.pps).map_err(|cause| MediaError::Mux(cause.to_string()))?;
    // High profile carries its chroma format and depths: 4:2:0, 8 bits.
    avcc.ext = Some(AvccExt::default());
    let visual = Visual {
        data_reference_index: 1,
        width: entry_side(format.width)?,
        height: entry_side(format.height)?,
        ..Visual::default()
    };
    Ok(Codec::Avc1(Avc1 {
        visual,
        avcc,
        btrt: Some(bit_rates(&track.spooled.sizes, 1, format.fps)),
        colr: Some(Colr::Nclx {
            colour_primaries: BT709,
            transfer_characteristics: BT709,
            matrix_coefficients: BT709,
            full_range_flag: false,
        }),
        pasp: Some(Pasp {
            h_spacing: 1,
            v_spacing: 1,
        }),
        ..Avc1::default()
    }))
}

fn audio_entry(track: &AudioTrack) -> Codec {
    let AudioConfig {
        channels,
        packet_samples,
        priming,
        ..
    } = track.config;
    let rates = bit_rates(&track.spooled.sizes, packet_samples, SAMPLE_RATE_HZ);
    let audio = Audio {
        data_reference_index: 1,
        channel_count: channels,
        sample_size: 16,
        sample_rate: (SAMPLE_RATE_HZ as u16).into(),
    };
    match &track.config.codec {
        #[cfg(feature = "aac")]
        CodecConfig::Aac { specific } => aac::entry(audio, specific, rates).into(),
        CodecConfig::Opus => Codec::Opus(Opus {
            audio,
            dops: Dops {
                output_channel_count: channels as u8,
                pre_skip: priming,
                input_sample_rate: SAMPLE_RATE_HZ,
                output_gain: 0,
                channel_mapping: None,
            },
            btrt: Some(rates),
        }),
    }
}

fn entry_side(pixels: u32) -> Result<u16, MediaError> {
    u16::try_from(pixels).map_err(|_| MediaError::InvalidFormat("sides above 65,535"))
}

fn bits(sizes: &[u32]) -> u64 {
    sizes.iter().copied().map(u64::from).sum::<u64>() * 8
}

/// Largest sample, busiest second and mean of a track with samples of `ticks` each.
fn bit_rates(sizes: &[u32], ticks: u32, timescale: u32) -> Btrt {
    // Samples in about a second: 24 frames, or 46 AAC packets of 1,024 samples.
    let per_second = (timescale / ticks.max(1)).max(1) as usize;
    let duration = (sizes.len() as u64 * u64::from(ticks)).max(1);
    let mean = bits(sizes) * u64::from(timescale) / duration;
    let busiest = sizes
        .chunks(per_second)
        .map(bits)
        .max()
        .unwrap_or(0)
        .max(mean);
    Btrt {
        buffer_size_db: sizes.iter().copied().max().unwrap_or(0),
        max_bitrate: u32::try_from(busiest).unwrap_or(u32::MAX),
        avg_bitrate: u32::try_from(mean).unwrap_or(u32::MAX),
    }
}
