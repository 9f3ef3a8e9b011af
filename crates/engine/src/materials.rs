//! An engine's inputs beside the spec: opened references and, for an edit, the source video and its
//! history. All are decoded and bounded; an engine never sees a URL or a file.

use std::fmt;
use std::sync::Arc;

use kinora_contract::{Size, VideoSpec};

use crate::EngineError;

/// Maximum number of specs in a script.
pub const SCRIPT_LINKS_MAX: usize = 16;

/// The opened references of a job, as far as the spec names them.
#[derive(Clone, Debug, Default)]
pub struct JobMaterials {
    /// The first frame of the result.
    pub first_frame: Option<RgbPicture>,
    /// The last frame of the result.
    pub last_frame: Option<RgbPicture>,
    /// Images to show, in the caller's order.
    pub images: Vec<RgbPicture>,
    /// Sound to hear, in the caller's order.
    pub audios: Vec<StereoSound>,
    /// The video to edit, or the draft's video if the engine makes finals from it.
    pub source: Option<Arc<dyn SourceVideo>>,
    /// The specs that led to the source, if this version of this engine made all of them: a video
    /// from scratch, its edit, and so on; the last one made the source. At most
    /// [`SCRIPT_LINKS_MAX`]. Empty if any of them is unknown. References keep only their number;
    /// their URLs are empty.
    pub script: Vec<Arc<VideoSpec>>,
}

/// A still image, upright and without transparency.
#[derive(Clone, PartialEq, Eq)]
pub struct RgbPicture {
    /// Size in pixels.
    pub size: Size,
    /// `[height][width][3] u8`, sRGB, full range.
    pub rgb: Vec<u8>,
}

impl fmt::Debug for RgbPicture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picture({})", self.size)
    }
}

/// A piece of sound.
#[derive(Clone, PartialEq)]
pub struct StereoSound {
    /// Interleaved stereo in -1.0 to 1.0 at [`crate::SAMPLE_RATE_HZ`].
    pub pcm: Vec<f32>,
}

impl fmt::Debug for StereoSound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sound({} samples)", self.pcm.len())
    }
}

/// A stored video that can be played from its beginning any number of times.
pub trait SourceVideo: Send + Sync + fmt::Debug {
    /// Frame size in pixels.
    fn size(&self) -> Size;

    /// Frames per second, constant.
    fn fps(&self) -> u32;

    /// Number of frames.
    fn frames(&self) -> u32;

    /// Plays the video from the first frame.
    ///
    /// # Errors
    /// [`EngineError::Failed`] if it cannot be read.
    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError>;
}

/// A video being played.
pub trait VideoPlayback: Send {
    /// The next frame, `[height][width][3] u8`, sRGB, full range; `None` after the last.
    ///
    /// # Errors
    /// [`EngineError::Failed`] if it cannot be read.
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError>;
}
