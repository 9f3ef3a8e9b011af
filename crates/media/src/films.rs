//! Opens existing films, in this process or in a less trusted one: decoding a film made elsewhere
//! is where a hostile file could do harm.

use std::fmt;
use std::path::Path;

use crate::defragment::defragment;
use crate::film::{FilmFormat, examine};
use crate::provenance::{Provenance, label};
use crate::{MediaError, ProbeInfo, Recording, VideoReader};

/// Opens films. Shared by all threads of a process.
pub trait Films: Send + Sync + fmt::Debug {
    /// Rewrites the film at `path` with one index if it is fragmented, like [`defragment`](crate::defragment()); returns
    /// whether it was. Decodes nothing.
    ///
    /// # Errors
    /// As [`defragment`](crate::defragment()).
    fn defragment(&self, path: &Path) -> Result<bool, MediaError> {
        defragment(path)
    }

    /// Examines the film at `path`, as [`examine`](crate::examine()) does.
    ///
    /// # Errors
    /// As [`examine`](crate::examine()), and [`MediaError::Lost`].
    fn examine(
        &self,
        path: &Path,
        asked: &FilmFormat,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Recording, MediaError>;

    /// Labels the film at `path`, which [`Self::examine`] has accepted, and its stills, like
    /// [`label`](crate::label()). Decodes nothing.
    ///
    /// # Errors
    /// As [`label`](crate::label()).
    fn label(
        &self,
        path: &Path,
        recording: &mut Recording,
        provenance: &Provenance,
    ) -> Result<bool, MediaError> {
        label(path, recording, provenance)
    }

    /// Reads the index of the film at `path`, and checks it against its H.264 parameter sets.
    ///
    /// # Errors
    /// As [`VideoReader::open`], and [`MediaError::Lost`].
    fn look(&self, path: &Path) -> Result<ProbeInfo, MediaError>;

    /// Plays the film at `path` from the beginning; `info` comes from [`Self::look`].
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

/// Opens films in the current process.
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
