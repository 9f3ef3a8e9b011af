//! An earlier video as an engine's footage: decoded frame by frame from its own copy of the file.

use std::fmt;

use kinora_contract::Size;
use kinora_engine::{EngineError, Footage, Playback};
use kinora_media::{MediaError, ProbeInfo, VideoReader};

use crate::record::Staged;

/// A stored video; its file goes with it.
pub(crate) struct StoredVideo {
    file: Staged,
    info: ProbeInfo,
}

impl StoredVideo {
    pub(crate) fn open(file: Staged) -> Result<Self, MediaError> {
        let info = *VideoReader::open(file.path())?.info();
        Ok(Self { file, info })
    }
}

impl fmt::Debug for StoredVideo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredVideo({:?})", self.info)
    }
}

impl Footage for StoredVideo {
    fn size(&self) -> Size {
        Size::new(self.info.width, self.info.height)
    }

    fn fps(&self) -> u32 {
        self.info.fps.round() as u32
    }

    fn frames(&self) -> u32 {
        self.info.frames
    }

    fn play(&self) -> Result<Box<dyn Playback>, EngineError> {
        let reader = VideoReader::open(self.file.path()).map_err(|error| unreadable(&error))?;
        Ok(Box::new(Reading(reader)))
    }
}

struct Reading(VideoReader);

impl Playback for Reading {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.0.next_frame().map_err(|error| unreadable(&error))
    }
}

fn unreadable(error: &MediaError) -> EngineError {
    EngineError::Failed(format!("the source video: {error}"))
}
