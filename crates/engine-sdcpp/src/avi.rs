//! Reads the films that the server makes: AVI with a JPEG for each frame, and 16-bit PCM sound
//! (`create_mjpg_avi_from_sd_images_to_vector` of `media_io.cpp`). It borrows everything from the
//! file and believes no length that the file contradicts.

use kinora_contract::Size;

/// Format tag of uncompressed samples in a `WAVEFORMAT`.
const PCM: u16 = 1;
/// The only depth that the server writes.
const SAMPLE_BITS: u16 = 16;

/// A film, as its headers describe it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AviFilm<'a> {
    /// Size of each frame, by the headers.
    pub size: Size,
    /// One JPEG per frame.
    pub frames: Vec<&'a [u8]>,
    pub sound: Option<AviSound<'a>>,
}

/// Sound as stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AviSound<'a> {
    pub rate_hz: u32,
    pub channels: u16,
    /// `[sample][channel] i16`, little-endian, interleaved.
    pub pcm: &'a [u8],
}

/// Why bytes are not such a film.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AviError {
    #[error("it is not an AVI file")]
    NotAvi,
    #[error("it ends within a chunk")]
    Truncated,
    #[error("it has no video of JPEG frames")]
    NoVideo,
    #[error("its sound is not 16-bit PCM")]
    SoundFormat,
    #[error("it has more frames than were asked for")]
    TooManyFrames,
}

/// Reads `file`, which may have up to `frames_max` frames.
///
/// # Errors
/// [`AviError`].
pub(crate) fn parse(file: &[u8], frames_max: usize) -> Result<AviFilm<'_>, AviError> {
    let (id, body) = Chunks(file).next().ok_or(AviError::NotAvi)??;
    let body = (id == *b"RIFF").then_some(body);
    let body = body.and_then(|body| body.strip_prefix(b"AVI "));
    let (mut streams, mut film) = (Streams::default(), None);
    for chunk in Chunks(body.ok_or(AviError::NotAvi)?) {
        match list(chunk?) {
            Some((b"hdrl", headers)) => streams.read(headers)?,
            Some((b"movi", frames)) => film = Some(frames),
            _ => {}
        }
    }
    let (frames, pcm) = read_frames(film.ok_or(AviError::NoVideo)?, frames_max)?;
    let sound = match (streams.sound, pcm) {
        (Some((rate_hz, channels)), Some(pcm)) => Some(AviSound {
            rate_hz,
            channels,
            pcm,
        }),
        _ => None,
    };
    Ok(AviFilm {
        size: streams.size.ok_or(AviError::NoVideo)?,
        frames,
        sound,
    })
}

/// The JPEG of each frame, and samples.
type Contents<'a> = (Vec<&'a [u8]>, Option<&'a [u8]>);

/// The contents of the list `movi`; its sound is one chunk.
fn read_frames(film: &[u8], frames_max: usize) -> Result<Contents<'_>, AviError> {
    let (mut frames, mut pcm) = (Vec::new(), None);
    for chunk in Chunks(film) {
        match chunk? {
            ([b'0', b'0', b'd', b'c'], _) if frames.len() == frames_max => {
                return Err(AviError::TooManyFrames);
            }
            ([b'0', b'0', b'd', b'c'], jpeg) => frames.push(jpeg),
            ([b'0', b'1', b'w', b'b'], samples) => pcm = Some(samples),
            _ => {}
        }
    }
    Ok((frames, pcm))
}

/// What the stream headers say.
#[derive(Default)]
struct Streams {
    size: Option<Size>,
    /// Rate and channels.
    sound: Option<(u32, u16)>,
}

impl Streams {
    /// Reads the list `hdrl`.
    fn read(&mut self, headers: &[u8]) -> Result<(), AviError> {
        for chunk in Chunks(headers) {
            if let Some((b"strl", stream)) = list(chunk?) {
                self.read_stream(stream)?;
            }
        }
        Ok(())
    }

    fn read_stream(&mut self, stream: &[u8]) -> Result<(), AviError> {
        let mut kind: Option<&[u8; 4]> = None;
        for chunk in Chunks(stream) {
            let (id, body) = chunk?;
            match (&id, kind) {
                (b"strh", _) => kind = body.first_chunk::<4>(),
                (b"strf", Some(b"vids")) => {
                    let is_jpeg = body.get(16..20) == Some(b"MJPG");
                    let size = number(body, 4).zip(number(body, 8)).filter(|_| is_jpeg);
                    let (width, height) = size.ok_or(AviError::NoVideo)?;
                    self.size = Some(Size::new(width, height));
                }
                (b"strf", Some(b"auds")) => self.sound = Some(read_sound_format(body)?),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Rate and channels of a `WAVEFORMAT`.
fn read_sound_format(body: &[u8]) -> Result<(u32, u16), AviError> {
    let short = |at: usize| Some(u16::from_le_bytes(*body.get(at..)?.first_chunk()?));
    let is_pcm = short(0) == Some(PCM) && short(14) == Some(SAMPLE_BITS);
    let format = number(body, 4).zip(short(2)).filter(|_| is_pcm);
    let usable = format.filter(|(rate_hz, channels)| *rate_hz > 0 && *channels > 0);
    usable.ok_or(AviError::SoundFormat)
}

fn number(body: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?))
}

/// A chunk's name and contents.
type Chunk<'a> = ([u8; 4], &'a [u8]);

/// The type and contents of a list; `None` for any other chunk.
fn list(chunk: Chunk<'_>) -> Option<(&[u8; 4], &[u8])> {
    let (id, body) = chunk;
    body.split_first_chunk().filter(|_| id == *b"LIST")
}

/// The chunks in a piece of a file.
struct Chunks<'a>(&'a [u8]);

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<Chunk<'a>, AviError>;

    fn next(&mut self) -> Option<Self::Item> {
        // A single byte can only be padding.
        if self.0.len() < 2 {
            return None;
        }
        let found = split_chunk(self.0);
        // Nothing can be found after an error.
        self.0 = found.map_or(&[], |(_, rest)| rest);
        Some(found.map(|(chunk, _)| chunk).ok_or(AviError::Truncated))
    }
}

fn split_chunk(bytes: &[u8]) -> Option<(Chunk<'_>, &[u8])> {
    let (id, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (body, rest) = rest.split_at_checked(length)?;
    // Chunks begin at even offsets; the last one's padding may be missing.
    Some(((*id, body), rest.get(length % 2..).unwrap_or_default()))
}

#[cfg(test)]
#[path = "avi_tests.rs"]
mod tests;
