//! The pictures of a clip, each made once and shown for many frames.

use kinora_contract::Size;
use kinora_engine::{EngineError, FrameJob, RgbPicture, VideoPlayback};

/// The number of bars.
const BARS: usize = 8;
/// The part of the height above a reference image in which the bars are seen.
const STRIP: usize = 8;

/// The frames of one job, in order.
pub(crate) struct SceneFrames {
    size: Size,
    /// Frames until the bars move on by one place.
    fps: u32,
    colours: [[u8; 3]; BARS],
    bars: Vec<u8>,
    course: SceneCourse,
}

/// Content shown with the bars.
enum SceneCourse {
    /// Nothing.
    Bars,
    /// Fitted pictures, each for an equal part of the clip; `None` is the bars.
    Pictures {
        pictures: Vec<Option<Vec<u8>>>,
        frames: u32,
    },
    /// A source, mixed with the bars.
    Source {
        source: Box<dyn VideoPlayback>,
        /// How much of the bars, of 256.
        weight: u16,
        mixed: Vec<u8>,
    },
}

impl SceneFrames {
    pub(crate) fn new(job: &FrameJob<'_>) -> Result<Self, EngineError> {
        let (size, materials) = (job.clip.size, job.materials);
        let colours = colours(job);
        let bars = bars(size, &colours);
        let course = if let (Some(edit), Some(source)) = (&job.spec.edit, &materials.source) {
            SceneCourse::Source {
                source: source.play()?,
                weight: (edit.strength.clamp(0.0, 1.0) * 256.0) as u16,
                mixed: Vec::new(),
            }
        } else if let Some(first) = &materials.first_frame {
            let last = materials.last_frame.as_ref();
            let last = last.map(|picture| fit_to(picture, size)).transpose()?;
            SceneCourse::Pictures {
                pictures: vec![Some(fit_to(first, size)?), None, last],
                frames: job.clip.frames,
            }
        } else if materials.images.is_empty() {
            SceneCourse::Bars
        } else {
            let strip = size.height as usize / STRIP * size.width as usize * 3;
            let images = materials.images.iter().map(|picture| {
                let mut fitted = fit_to(picture, size)?;
                fitted[..strip].copy_from_slice(&bars[..strip]);
                Ok(Some(fitted))
            });
            SceneCourse::Pictures {
                pictures: images.collect::<Result<_, EngineError>>()?,
                frames: job.clip.frames,
            }
        };
        Ok(Self {
            size,
            fps: job.clip.fps.max(1),
            colours,
            bars,
            course,
        })
    }

    /// The frame with this number, `[height][width][3] u8`. Call once for each frame, in order.
    pub(crate) fn frame(&mut self, number: u32) -> Result<&[u8], EngineError> {
        if number > 0 && number.is_multiple_of(self.fps) {
            self.colours.rotate_left(1);
            self.bars = bars(self.size, &self.colours);
        }
        match &mut self.course {
            SceneCourse::Bars => Ok(&self.bars),
            SceneCourse::Pictures { pictures, frames } => {
                // Equal shares of the clip: picture 0 for the first part, and so on.
                let place = u64::from(number) * pictures.len() as u64 / u64::from(*frames);
                Ok(pictures[place as usize].as_ref().unwrap_or(&self.bars))
            }
            SceneCourse::Source {
                source,
                weight,
                mixed,
            } => {
                *mixed = source
                    .next_frame()?
                    .ok_or_else(|| EngineError::Failed("the source is too short".to_owned()))?;
                for (own, bar) in mixed.iter_mut().zip(&self.bars) {
                    // Fixed point with 8 fractional bits: 255 x 256 still fits 16 bits.
                    let sum = u16::from(*own) * (256 - *weight) + u16::from(*bar) * *weight;
                    *own = (sum >> 8) as u8;
                }
                Ok(mixed)
            }
        }
    }
}

/// Colours of the bars, from an FNV-1a hash of prompt, negative prompt and seed.
fn colours(job: &FrameJob<'_>) -> [[u8; 3]; BARS] {
    let said = job.spec.prompt.bytes();
    let unwanted = job
        .spec
        .negative_prompt
        .iter()
        .flat_map(|text| text.bytes());
    let bytes = said.chain(unwanted).chain(job.spec.seed.to_le_bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    [(); BARS].map(|()| {
        // A linear congruential generator with the multiplier of Knuth's MMIX; its high bits are
        // the good ones.
        hash = hash.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let [.., red, green, blue, _] = hash.to_le_bytes();
        [red, green, blue]
    })
}

/// A whole frame of bars.
fn bars(size: Size, colours: &[[u8; 3]; BARS]) -> Vec<u8> {
    let width = size.width as usize;
    let row: Vec<u8> = (0..width)
        .flat_map(|column| colours[column * BARS / width])
        .collect();
    row.repeat(size.height as usize)
}

fn fit_to(picture: &RgbPicture, size: Size) -> Result<Vec<u8>, EngineError> {
    let (from, to) = (picture.size, size);
    if from == to {
        return Ok(picture.rgb.clone());
    }
    let (from, to) = ((from.width, from.height), (to.width, to.height));
    kinora_media_resize::crop_and_resize(&picture.rgb, from, to)
        .map_err(|error| EngineError::Failed(error.to_string()))
}
