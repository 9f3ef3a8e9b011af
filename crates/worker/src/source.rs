//! An earlier video as an engine's footage, decoded frame by frame from its own copy of the file,
//! in the process that decodes films.

use std::fmt;
use std::sync::Arc;

use kinora_contract::{FailureCode, Size, VideoSpec};
use kinora_engine::{EngineError, Footage, Playback};
use kinora_media::{Films, MediaError, PlayedFilm, ProbeInfo};

use crate::record::Staged;

/// A local copy of an earlier video.
pub(crate) struct Origin {
    pub(crate) file: Staged,
    /// See [`kinora_engine::Materials::script`].
    pub(crate) script: Vec<Arc<VideoSpec>>,
}

/// A stored video; its file is removed with it.
pub(crate) struct StoredVideo {
    file: Staged,
    info: ProbeInfo,
    films: Arc<dyn Films>,
}

impl StoredVideo {
    pub(crate) fn open(file: Staged, films: Arc<dyn Films>) -> Result<Self, MediaError> {
        let info = films.look(file.path())?;
        Ok(Self { file, info, films })
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
        let film = self.films.play(self.file.path(), &self.info);
        Ok(Box::new(Reading(film.map_err(|error| unreadable(&error))?)))
    }
}

struct Reading(Box<dyn PlayedFilm>);

impl Playback for Reading {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.0.next_frame().map_err(|error| unreadable(&error))
    }
}

fn unreadable(error: &MediaError) -> EngineError {
    let cause = format!("the source video: {error}");
    match error {
        MediaError::Lost(_) => EngineError::Crashed {
            code: FailureCode::GenerationFailed,
            cause,
        },
        // The file is local: a system error is no fault of the video.
        MediaError::Io(error) if error.raw_os_error().is_some() => EngineError::Told {
            code: FailureCode::StorageFailed,
            cause,
        },
        _ => EngineError::Failed(cause),
    }
}
