//! The recorder: takes frames and sound, writes a complete MP4 and its stills. It blocks the caller
//! when the encoders fall behind, and leaves no file if dropped.

use std::path::{Path, PathBuf};

use crate::audio::AudioEncoder;
use crate::colour::rgb_to_i420;
use crate::probe::{ProbeInfo, check, probe};
use crate::provenance::{Provenance, in_jpeg, in_webp};
use crate::spool::SampleSpool;
use crate::stills::StillCollector;
use crate::video::VideoEncoder;
use crate::{ClipFormat, MediaError, RecorderOptions, WrittenFile, mux};

/// Records one clip. Dropping it unfinished stops its threads and leaves no file.
pub struct Recorder {
    path: PathBuf,
    format: ClipFormat,
    video: VideoEncoder,
    audio: Option<AudioEncoder>,
    stills: StillCollector,
    provenance: Option<Provenance>,
    pushed: u32,
}

/// A finished clip.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Read back from the written file.
    pub info: ProbeInfo,
    /// A frame about one third in, lossy WebP, longest side at most 1280 pixels.
    pub poster_webp: Vec<u8>,
    /// Up to 5 x 5 evenly sampled frames, JPEG, longest side of a cell at most 320 pixels.
    pub spritesheet_jpeg: Vec<u8>,
    /// The first frame in full size, JPEG; `None` for a film that cannot be decoded here.
    pub first_frame_jpeg: Option<Vec<u8>>,
    /// The last frame, likewise.
    pub last_frame_jpeg: Option<Vec<u8>>,
}

impl Recorder {
    /// Starts a clip that [`Recorder::finish`] writes to `path`. Until then, coded samples go to
    /// unnamed files in the same folder, and `path` does not exist.
    pub fn create(
        path: &Path,
        format: ClipFormat,
        options: RecorderOptions,
    ) -> Result<Self, MediaError> {
        format.validate()?;
        options.validate()?;
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let audio = match format.audio {
            Some(audio) => {
                let spool = SampleSpool::create_in(folder)?;
                Some(AudioEncoder::new(
                    audio,
                    format.audio_samples(),
                    &options,
                    spool,
                )?)
            }
            None => None,
        };
        Ok(Self {
            path: path.to_owned(),
            format,
            video: VideoEncoder::start(&format, &options, SampleSpool::create_in(folder)?)?,
            audio,
            stills: StillCollector::new(&format),
            provenance: None,
            pushed: 0,
        })
    }

    /// Labels the files with `provenance`; in the MP4, that is an additional last box.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = Some(provenance);
        self
    }

    /// Takes the next frame, `rgb: [height][width][3] u8`, full-range sRGB. Blocks while the
    /// encoders are behind.
    pub fn push_frame(&mut self, rgb: &[u8]) -> Result<(), MediaError> {
        let expected = self.format.frame_bytes();
        if rgb.len() != expected {
            return Err(MediaError::FrameLength {
                expected,
                actual: rgb.len(),
            });
        }
        if self.pushed == self.format.frames {
            return Err(MediaError::FrameCount {
                expected: self.format.frames,
                actual: self.pushed + 1,
            });
        }
        // Before the wait for a free picture: scaling for the stills overlaps with the encoders.
        self.stills.sample(self.pushed, rgb)?;
        let mut frame = self.video.next_frame()?;
        rgb_to_i420(rgb, &self.format, &mut frame)?;
        self.video.push(frame)?;
        self.pushed += 1;
        Ok(())
    }

    /// Takes interleaved samples, -1 to 1, in chunks of any size, ahead of or behind the frames.
    /// Samples beyond the picture's length are dropped.
    pub fn push_audio(&mut self, pcm: &[f32]) -> Result<(), MediaError> {
        match &mut self.audio {
            Some(audio) => audio.push(pcm),
            None => Err(MediaError::InvalidAudio("the clip has no sound track")),
        }
    }

    /// Completes the file: all frames must have been pushed; missing sound becomes silence. Does
    /// not sync the file to disk.
    pub fn finish(self) -> Result<(Recording, WrittenFile), MediaError> {
        if self.pushed != self.format.frames {
            return Err(MediaError::FrameCount {
                expected: self.format.frames,
                actual: self.pushed,
            });
        }
        // Meanwhile the encoder threads finish their last runs.
        let mut poster_webp = self.stills.poster_webp()?;
        let mut spritesheet_jpeg = self.stills.spritesheet_jpeg()?;
        let mut frame_jpegs = self.stills.into_frame_jpegs();
        let packet = self.provenance.as_ref().map(Provenance::packet);
        if let Some(packet) = &packet {
            poster_webp = in_webp(&poster_webp, packet)?;
            spritesheet_jpeg = in_jpeg(&spritesheet_jpeg, packet)?;
            for jpeg in frame_jpegs.iter_mut().flatten() {
                *jpeg = in_jpeg(jpeg, packet)?;
            }
        }
        let [first_frame_jpeg, last_frame_jpeg] = frame_jpegs;
        let audio = self.audio.map(AudioEncoder::finish).transpose()?;
        let video = self.video.finish()?;
        // From here on the path exists; every early return must remove it.
        let unfinished = RemoveOnDrop(Some(&self.path));
        let written = mux::write(&self.path, &self.format, video, audio, packet.as_deref())?;
        // Read our own file back: a muxer or encoder fault must fail this attempt, not surprise
        // a player.
        let info = probe(&self.path)?;
        check(&info, &self.format).map_err(|mismatch| MediaError::Mux(mismatch.to_string()))?;
        unfinished.disarm();
        let recording = Recording {
            info,
            poster_webp,
            spritesheet_jpeg,
            first_frame_jpeg,
            last_frame_jpeg,
        };
        Ok((recording, written))
    }
}

/// Removes an incomplete file.
struct RemoveOnDrop<'a>(Option<&'a Path>);

impl RemoveOnDrop<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // Nothing better can be done; the caller gets the original error.
            let _ = std::fs::remove_file(path);
        }
    }
}
