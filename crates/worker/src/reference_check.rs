//! Checks references when they arrive, while their task still waits, and keeps only the part that
//! the task will use: a large picture as the pixels of its frame, a large sound as 16-bit samples.
//! Small valid files are kept unchanged.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kinora_blobs::{BlobError, measure_file};
use kinora_contract::limits::REFERENCE_AUDIO_SECONDS_MAX;
use kinora_contract::{FrameSize, ReferenceItem, Resolution, Size, VideoSpec};
use kinora_media_decode::{
    DecodeError, DecodedImage, DecodedSound, PROFILE_IGNORED_CHUNK, SAMPLE_RATE,
};
use kinora_system::pool::BlockingPool;
use tokio::sync::Semaphore;

use crate::error::GatherError;

/// Files of up to this size are kept unchanged: shrinking them gains little.
const AS_SENT_BYTES_MAX: u64 = 512 << 10;

/// Tolerance for the padding of lossy codecs, so that three sounds of 5 s are not too long.
const PADDING_SECONDS: f64 = 0.25;

/// Checks the references of one task, one at a time.
pub(crate) struct ReferenceChecker {
    cover: Size,
    /// The whole process decodes one picture at a time, since that takes 150 MB for a moment.
    decoding: Arc<Semaphore>,
    /// All arrivals together wait for only one place of `decoding`, so a run that decodes its files
    /// waits for at most one arriving picture.
    arrivals: Arc<Semaphore>,
    /// A task waits for only one place, however many files it has.
    own: Semaphore,
    /// Threads that check files.
    files: BlockingPool,
    sound_seconds: Mutex<f64>,
}

impl ReferenceChecker {
    pub(crate) fn new(
        spec: &VideoSpec,
        decoding: &Arc<Semaphore>,
        arrivals: &Arc<Semaphore>,
        files: &BlockingPool,
    ) -> Self {
        Self {
            cover: cover(spec.frame),
            decoding: decoding.clone(),
            arrivals: arrivals.clone(),
            own: Semaphore::new(1),
            files: files.clone(),
            sound_seconds: Mutex::default(),
        }
    }

    /// Threads for files.
    pub(crate) const fn files(&self) -> &BlockingPool {
        &self.files
    }

    /// Checks the file at `path`, replaces it by the part that the task will use, and returns the
    /// length and SHA-256 of that part.
    pub(crate) async fn check_and_reduce(
        &self,
        index: usize,
        reference: ReferenceItem<'_>,
        path: &Path,
    ) -> Result<(u64, String), GatherError> {
        // Three gates, from the narrowest to the widest, so that nobody holds a wide one while it
        // waits for a narrow one: one file of this task, one arriving file of the process, one
        // decoder of the process, for which runs compete too. None of them is ever closed.
        let _own = self.own.acquire().await;
        let arrival = self.arrivals.clone().acquire_owned().await;
        let turn = self.decoding.clone().acquire_owned().await;
        let (read, cover) = (path.to_owned(), self.cover);
        let is_image = matches!(reference, ReferenceItem::Image(_));
        let judged = self.files.run(move || {
            // Decoding continues when the fetch is dropped: its turn ends when it does.
            let _turns = (arrival, turn);
            if is_image {
                check_image(&read, cover)
            } else {
                check_sound(&read)
            }
        });
        let judged = judged.await.unwrap_or_else(|stopped| Err(stopped.into()));
        let CheckedReference {
            seconds,
            smaller,
            measured,
        } = judged.map_err(|error| match error {
            // The fetched file cannot be read, or the kept part cannot be written.
            DecodeError::Io(error) => GatherError::Blobs(BlobError::Unavailable(error)),
            error => GatherError::Invalid { index, error },
        })?;
        if let Some(smaller) = smaller {
            // Not on the thread: the fetch and its file may be gone when the thread ends.
            std::fs::rename(&smaller.0, path).map_err(BlobError::from)?;
        }
        let mut together = self
            .sound_seconds
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *together += seconds;
        if audio_too_long(*together) {
            return Err(GatherError::AudioTooLong(*together));
        }
        Ok(measured)
    }
}

/// Whether sounds with this total length are too long.
pub(crate) fn audio_too_long(seconds: f64) -> bool {
    seconds > REFERENCE_AUDIO_SECONDS_MAX + PADDING_SECONDS
}

/// The size that every picture of the task must cover: that of its frame, even if a draft is
/// rendered at a smaller size first. An undecided shape may be any of its resolution.
fn cover(frame: FrameSize) -> Size {
    match frame {
        FrameSize::Fixed(size) => size,
        FrameSize::Adaptive(resolution) => widest(resolution),
    }
}

fn widest(resolution: Resolution) -> Size {
    let shapes = kinora_contract::AspectRatio::ALL;
    let sizes = shapes.map(|shape| resolution.size(shape));
    let width = sizes.iter().map(|size| size.width).max();
    let height = sizes.iter().map(|size| size.height).max();
    Size::new(width.unwrap_or(1), height.unwrap_or(1))
}

/// A valid reference.
struct CheckedReference {
    /// Length of a sound.
    seconds: f64,
    /// The bytes to keep instead of the file.
    smaller: Option<ReducedFile>,
    /// Length and SHA-256 of the kept bytes.
    measured: (u64, String),
}

fn check_image(path: &Path, cover: Size) -> Result<CheckedReference, DecodeError> {
    let image = kinora_media_decode::image(path, (cover.width, cover.height))?;
    let smaller = reduce(path, |file| write_png(file, &image))?;
    checked(path, 0.0, smaller)
}

fn check_sound(path: &Path) -> Result<CheckedReference, DecodeError> {
    let sound = kinora_media_decode::sound(path)?;
    let smaller = reduce(path, |file| write_wav(file, &sound))?;
    checked(path, sound.seconds(), smaller)
}

fn checked(
    path: &Path,
    seconds: f64,
    smaller: Option<ReducedFile>,
) -> Result<CheckedReference, DecodeError> {
    let kept = smaller.as_ref().map_or(path, |smaller| &smaller.0);
    Ok(CheckedReference {
        seconds,
        measured: measure_file(kept)?,
        smaller,
    })
}

/// The output of `write` for a large file, if it is smaller.
fn reduce(
    path: &Path,
    write: impl FnOnce(BufWriter<File>) -> std::io::Result<()>,
) -> Result<Option<ReducedFile>, DecodeError> {
    let sent = std::fs::metadata(path)?.len();
    if sent <= AS_SENT_BYTES_MAX {
        return Ok(None);
    }
    let kept = ReducedFile(path.with_extension("kept"));
    write(BufWriter::new(File::create(&kept.0)?))?;
    // A picture that is smaller than its frame, or was well compressed, would grow.
    let bytes = std::fs::metadata(&kept.0)?.len();
    Ok((bytes < sent).then_some(kept))
}

/// A file that is removed unless it was renamed.
struct ReducedFile(PathBuf);

impl Drop for ReducedFile {
    fn drop(&mut self) {
        // Absent if it was renamed. If the removal fails, the scratch folder's removal takes the
        // file along.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Lossless 8-bit RGB: engines get the same pixels as from the original file, with the same warning.
fn write_png(file: BufWriter<File>, image: &DecodedImage) -> std::io::Result<()> {
    let mut encoder = png::Encoder::new(file, image.width, image.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().map_err(std::io::Error::from)?;
    if image.profile_ignored {
        let chunk = png::chunk::ChunkType(PROFILE_IGNORED_CHUNK);
        writer
            .write_chunk(chunk, &[])
            .map_err(std::io::Error::from)?;
    }
    writer
        .write_image_data(&image.rgb)
        .map_err(std::io::Error::from)?;
    writer.finish().map_err(std::io::Error::from)
}

/// RIFF WAVE, PCM of 16 bits, stereo (Microsoft, "Multimedia Programming Interface and Data
/// Specifications 1.0", 1991).
fn write_wav(mut file: BufWriter<File>, sound: &DecodedSound) -> std::io::Result<()> {
    const CHANNELS: u16 = 2;
    const SAMPLE_BYTES: u16 = 2;
    let frame_bytes = CHANNELS * SAMPLE_BYTES;
    // 15 s at most: far below the format's limit.
    let data_bytes = u32::try_from(sound.pcm.len()).unwrap_or(0) * u32::from(SAMPLE_BYTES);
    file.write_all(b"RIFF")?;
    file.write_all(&(36 + data_bytes).to_le_bytes())?;
    file.write_all(b"WAVEfmt ")?;
    file.write_all(&16_u32.to_le_bytes())?;
    file.write_all(&1_u16.to_le_bytes())?;
    file.write_all(&CHANNELS.to_le_bytes())?;
    file.write_all(&SAMPLE_RATE.to_le_bytes())?;
    file.write_all(&(SAMPLE_RATE * u32::from(frame_bytes)).to_le_bytes())?;
    file.write_all(&frame_bytes.to_le_bytes())?;
    file.write_all(&(8 * SAMPLE_BYTES).to_le_bytes())?;
    file.write_all(b"data")?;
    file.write_all(&data_bytes.to_le_bytes())?;
    for sample in &sound.pcm {
        let sample = (sample * f32::from(i16::MAX)).round();
        file.write_all(&(sample as i16).to_le_bytes())?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        (0..count).map(next).collect()
    }

    /// Does the work of a fetch, and returns the length of a sound.
    fn keep(path: &Path, judged: Result<CheckedReference, DecodeError>) -> f64 {
        let judged = judged.unwrap();
        if let Some(smaller) = judged.smaller {
            std::fs::rename(&smaller.0, path).unwrap();
        }
        assert_eq!(measure_file(path).unwrap(), judged.measured);
        judged.seconds
    }

    fn png_file(path: &Path, width: u32, height: u32) -> DecodedImage {
        let rgb = noise((width * height * 3) as usize);
        let image = DecodedImage {
            width,
            height,
            rgb,
            profile_ignored: false,
        };
        write_png(BufWriter::new(File::create(path).unwrap()), &image).unwrap();
        image
    }

    #[test]
    fn junk_behind_a_picture_is_not_kept_and_its_pixels_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reference-0");
        let image = png_file(&path, 256, 256);
        let whole = std::fs::metadata(&path).unwrap().len();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&vec![0; 20_000_000]).unwrap();
        keep(&path, check_image(&path, Size::new(1280, 720)));
        assert!(std::fs::metadata(&path).unwrap().len() <= whole + 1000);
        assert_eq!(
            kinora_media_decode::image(&path, (1280, 720)).unwrap(),
            image
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_picture_larger_than_its_frame_is_kept_at_the_frame_s_size_with_the_same_result() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reference-0");
        png_file(&path, 1600, 1200);
        let before = kinora_media_decode::image(&path, (640, 480)).unwrap();
        keep(&path, check_image(&path, Size::new(640, 480)));
        assert!(std::fs::metadata(&path).unwrap().len() < 1_000_000);
        assert_eq!(
            kinora_media_decode::image(&path, (640, 480)).unwrap(),
            before
        );
    }

    #[test]
    fn an_ignored_colour_profile_is_known_after_the_file_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reference-0");
        let mut encoder = png::Encoder::new(File::create(&path).unwrap(), 700, 700);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        // BT.2020 with PQ.
        let chunk = png::chunk::ChunkType(*b"cICP");
        writer.write_chunk(chunk, &[9, 16, 0, 1]).unwrap();
        writer.write_image_data(&noise(700 * 700 * 3)).unwrap();
        writer.finish().unwrap();
        keep(&path, check_image(&path, Size::new(300, 300)));
        assert!(std::fs::metadata(&path).unwrap().len() < 400_000);
        let kept = kinora_media_decode::image(&path, (300, 300)).unwrap();
        assert!(kept.profile_ignored);
    }

    #[test]
    fn a_small_file_stays_as_it_was_sent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reference-0");
        png_file(&path, 300, 300);
        let sent = std::fs::read(&path).unwrap();
        keep(&path, check_image(&path, Size::new(256, 256)));
        assert_eq!(std::fs::read(&path).unwrap(), sent);
    }

    #[test]
    fn a_large_sound_is_kept_in_16_bits_and_sounds_alike() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reference-0");
        let pcm: Vec<f32> = (0..2 * 5 * SAMPLE_RATE)
            .map(|at| (at as f32 / 40.0).sin() / 2.0)
            .collect();
        write_wav(
            BufWriter::new(File::create(&path).unwrap()),
            &DecodedSound { pcm },
        )
        .unwrap();
        let before = kinora_media_decode::sound(&path).unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&vec![0; 5_000_000]).unwrap();
        let seconds = keep(&path, check_sound(&path));
        assert!((seconds - 5.0).abs() < 0.01, "{seconds}");
        assert!(std::fs::metadata(&path).unwrap().len() < 1_000_000);
        let after = kinora_media_decode::sound(&path).unwrap();
        assert_eq!(before.pcm.len(), after.pcm.len());
        let most = before
            .pcm
            .iter()
            .zip(&after.pcm)
            .map(|(a, b)| (a - b).abs());
        assert!(most.fold(0.0, f32::max) < 1e-3);
    }
}
