//! The place where films are made, as a test sets it up.

use std::path::PathBuf;

use kinora_contract::{FailureCode, VideoSpec};

use crate::FilmEngine;

/// The key of every attempt.
pub const KEY: &str = "video_0001";

/// How the works of a [`Site`] behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They make progress and end with a film.
    Well,
    /// They make progress and never end.
    Endless,
    /// They begin and then fail.
    Badly,
    /// Nothing is known: nobody answers any more.
    Silent,
}

/// An engine and the place where its films are made.
pub trait Site: Send + Sync {
    /// The engine.
    fn engine(&self) -> &dyn FilmEngine;

    /// The spec to request, without references.
    fn spec(&self) -> VideoSpec;

    /// The path of a nonexistent file, the same on every call.
    fn to(&self) -> PathBuf;

    /// From now on all works behave like this, including those already begun.
    fn turn(&self, fate: Fate);

    /// The bytes of the resulting film.
    fn film(&self) -> Vec<u8>;

    /// The failure code of a failed work.
    fn failure(&self) -> FailureCode;

    /// Number of works begun.
    fn begun(&self) -> usize;

    /// Number of times the engine has looked at a work.
    fn looks(&self) -> usize;

    /// Number of cancelled jobs.
    fn cancelled(&self) -> usize;
}
