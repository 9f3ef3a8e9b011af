//! Who opens films that exist: this process, or another one that the service trusts less. A film of
//! somebody else is a stranger's file, and decoding is where such files do harm.

use std::fmt;
use std::path::Path;

use crate::film::{FilmFormat, examine};
use crate::{MediaError, ProbeInfo, Recording, VideoReader};

/// Opens films. Shared by all threads of a process.
pub trait Films: Send + Sync + fmt::Debug {
    /// Looks into the film of somebody else at `path`, as [`examine`](crate::examine()) does.
    ///
    /// # Errors
    /// As [`examine`](crate::examine()), and [`MediaError::Lost`].
    fn examine(
        &self,
        path: &Path,
        asked: &FilmFormat,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Recording, MediaError>;

    /// Reads the index of the film at `path`, and checks it against what its H.264 parameter sets say.
    ///
    /// # Errors
    /// As [`VideoReader::open`], and [`MediaError::Lost`].
    fn look(&self, path: &Path) -> Result<ProbeInfo, MediaError>;

    /// Plays the film at `path` from its beginning; `info` is what [`Self::look`] told of it.
    ///
    /// # Errors
    /// As [`VideoReader::open`], and [`MediaError::Lost`].
    fn play(&self, path: &Path, info: &ProbeInfo) -> Result<Box<dyn PlayedFilm>, MediaError>;
}

/// A film being played.
pub trait PlayedFilm: Send {
    /// `rgb [height][width][3] u8` of the next frame in presentation order, or `None` after the last.
    ///
    /// # Errors
    /// As [`VideoReader::next_frame`], and [`MediaError::Lost`].
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, MediaError>;
}

/// Opens films in this very process.
#[derive(Clone, Copy, Debug, Default)]
pub struct InProcess;

impl Films for InProcess {
    fn examine(
        &self,
        path: &Path,
        asked: &FilmFormat,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Recording, MediaError> {
        examine(path, asked, go_on)
    }

    fn look(&self, path: &Path) -> Result<ProbeInfo, MediaError> {
        Ok(*VideoReader::open(path)?.info())
    }

    fn play(&self, path: &Path, _: &ProbeInfo) -> Result<Box<dyn PlayedFilm>, MediaError> {
        Ok(Box::new(VideoReader::open(path)?))
    }
}

impl PlayedFilm for VideoReader {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, MediaError> {
        Self::next_frame(self)
    }
}
