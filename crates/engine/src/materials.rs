//! What an engine works from beside the spec: opened reference material and, for an edit, the
//! source video and how it was made. Everything is decoded and bounded before; an engine never sees a URL or a file.

use std::fmt;
use std::sync::Arc;

use kinora_contract::{Size, VideoSpec};

use crate::EngineError;

/// Most links of a script.
pub const SCRIPT_LINKS_MAX: usize = 16;

/// The opened references of a job. Those that the spec does not name are absent.
#[derive(Clone, Debug, Default)]
pub struct Materials {
    /// The result starts with this.
    pub first_frame: Option<Picture>,
    /// The result ends with this.
    pub last_frame: Option<Picture>,
    /// Images to show, in the caller's order.
    pub images: Vec<Picture>,
    /// Sound to hear, in the caller's order.
    pub audios: Vec<Sound>,
    /// The video that is edited; or the draft's, where the engine makes finals from it.
    pub source: Option<Arc<dyn Footage>>,
    /// What the source was made from, where this engine in this version made it: the specs of
    /// a video from scratch, of an edit of it, and so on; the last one is the source's own. At most
    /// [`SCRIPT_LINKS_MAX`]. Empty where any of it is not known. References are there in number
    /// only, their URLs are empty.
    pub script: Vec<Arc<VideoSpec>>,
}

/// A still, upright and without transparency.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    /// Size in pixels.
    pub size: Size,
    /// `[height][width][3] u8`, sRGB, full range.
    pub rgb: Vec<u8>,
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picture({})", self.size)
    }
}

/// A stretch of sound.
#[derive(Clone, PartialEq)]
pub struct Sound {
    /// Interleaved stereo in -1.0 to 1.0 at [`crate::SAMPLE_RATE_HZ`].
    pub pcm: Vec<f32>,
}

impl fmt::Debug for Sound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sound({} samples)", self.pcm.len())
    }
}

/// A stored video that can be played from its beginning, as often as needed.
pub trait Footage: Send + Sync + fmt::Debug {
    /// Frame size in pixels.
    fn size(&self) -> Size;

    /// Frames per second, constant.
    fn fps(&self) -> u32;

    /// Number of frames.
    fn frames(&self) -> u32;

    /// Plays it from the first frame.
    ///
    /// # Errors
    /// [`EngineError::Failed`] when it cannot be read.
    fn play(&self) -> Result<Box<dyn Playback>, EngineError>;
}

/// A video being played.
pub trait Playback: Send {
    /// The next frame, `[height][width][3] u8`, sRGB, full range; `None` after the last.
    ///
    /// # Errors
    /// [`EngineError::Failed`] when it cannot be read.
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError>;
}
