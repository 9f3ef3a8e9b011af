//! The format of a clip: picture size, rate, exact length, sound. Refuses formats that H.264 4:2:0
//! at level 5.2 or the sound encoders do not support.

use crate::MediaError;

/// Maximum picture size of H.264 level 5.2 in macroblocks (Rec. ITU-T H.264, table A-1, `MaxFS`).
pub(crate) const MACROBLOCKS_MAX: u32 = 36_864;
/// One hour at 60 frames/s: far above any clip, and sample tables stay within a few megabytes.
pub(crate) const FRAMES_MAX: u32 = 216_000;
/// Above this, one second of frames is no longer a useful unit for closed runs.
const FPS_MAX: u32 = 120;

/// The only sample rate: native to Opus, common for AAC.
pub(crate) const SAMPLE_RATE_HZ: u32 = 48_000;

/// The format of a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClipFormat {
    /// Picture width in pixels: even, 16 to 4096.
    pub width: u32,
    /// Picture height in pixels: even, 16 to 4096.
    pub height: u32,
    /// Frames per second, 1 to 120, constant.
    pub fps: u32,
    /// The exact number of frames, 1 to 216,000.
    pub frames: u32,
    /// The sound track, if any. It becomes exactly as long as the picture.
    pub audio: Option<AudioFormat>,
}

/// The format of the pushed sound (PCM).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioFormat {
    /// Samples per second and channel: 48,000.
    pub sample_rate_hz: u32,
    /// 1 or 2, interleaved.
    pub channels: u16,
}

/// How the sound track is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AudioCodec {
    /// AAC-LC by the Fraunhofer FDK library: plays everywhere.
    #[cfg(feature = "aac")]
    #[default]
    Aac,
    /// Opus in MP4: permissively licensed; silent in Safari before version 17.
    #[cfg_attr(not(feature = "aac"), default)]
    Opus,
}

/// Encoder settings. The same frames and settings give the same bytes, for any number of threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Constant quantiser, 10 to 51: 24 for finals, 30 for drafts. Lower is better and larger.
    pub qp: u8,
    /// Number of threads that encode closed runs of frames in parallel; clamped to 1 to 16.
    pub encoder_threads: usize,
    /// Maximum size of a run in thousandths of a bit per pixel: a run that would exceed it (film
    /// grain, noise) is encoded with a higher quantiser. 300 is about 6.6 Mbit/s at 1280x720, 24
    /// frames/s.
    pub millibits_per_pixel_max: u32,
    /// Sound codec.
    pub audio_codec: AudioCodec,
    /// Sound bit rate per channel in bit/s, 24,000 to 128,000.
    pub audio_bitrate_per_channel: u32,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            qp: 24,
            // A video has few runs of frames to share out, and other tasks use the other cores.
            encoder_threads: cores.clamp(1, 4),
            millibits_per_pixel_max: 300,
            audio_codec: AudioCodec::default(),
            audio_bitrate_per_channel: 64_000,
        }
    }
}

impl ClipFormat {
    /// Bytes of one pushed frame: `height * width * 3`.
    pub fn frame_bytes(&self) -> usize {
        self.width as usize * self.height as usize * 3
    }

    /// Samples per channel of a sound track as long as the picture, rounded to nearest.
    pub(crate) fn audio_samples(&self) -> u64 {
        let fps = u64::from(self.fps.max(1));
        (u64::from(self.frames) * u64::from(SAMPLE_RATE_HZ) + fps / 2) / fps
    }

    /// Refuses formats that cannot be encoded, before opening anything.
    pub(crate) fn validate(&self) -> Result<(), MediaError> {
        if !is_valid_side(self.width) || !is_valid_side(self.height) {
            return Err(MediaError::InvalidFormat(
                "sides must be even, 16 to 4096 pixels",
            ));
        }
        if self.width.div_ceil(16) * self.height.div_ceil(16) > MACROBLOCKS_MAX {
            return Err(MediaError::InvalidFormat(
                "the picture exceeds H.264 level 5.2",
            ));
        }
        if !(1..=FPS_MAX).contains(&self.fps) {
            return Err(MediaError::InvalidFormat(
                "frames per second must be 1 to 120",
            ));
        }
        if !(1..=FRAMES_MAX).contains(&self.frames) {
            return Err(MediaError::InvalidFormat("a clip has 1 to 216,000 frames"));
        }
        match self.audio {
            Some(audio) if audio.sample_rate_hz != SAMPLE_RATE_HZ => Err(
                MediaError::InvalidFormat("sound must be sampled at 48,000 Hz"),
            ),
            Some(audio) if !(1..=2).contains(&audio.channels) => Err(MediaError::InvalidFormat(
                "sound must have one or two channels",
            )),
            _ => Ok(()),
        }
    }
}

fn is_valid_side(pixels: u32) -> bool {
    (16..=4096).contains(&pixels) && pixels.is_multiple_of(2)
}

impl RecorderOptions {
    /// Refuses settings on which an encoder would fail later.
    pub(crate) fn validate(&self) -> Result<(), MediaError> {
        if !(10..=51).contains(&self.qp) {
            return Err(MediaError::InvalidFormat("the quantiser must be 10 to 51"));
        }
        if self.millibits_per_pixel_max == 0 {
            return Err(MediaError::InvalidFormat(
                "the bits per pixel must be above zero",
            ));
        }
        if !(24_000..=128_000).contains(&self.audio_bitrate_per_channel) {
            return Err(MediaError::InvalidFormat(
                "the sound bit rate must be 24 to 128 kbit/s per channel",
            ));
        }
        Ok(())
    }
}
