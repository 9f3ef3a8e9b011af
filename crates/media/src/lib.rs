//! Records frames and sound to MP4 with a poster, a spritesheet and the first and last frame,
//! probes files, reads their frames back, examines films made elsewhere, and labels files with
//! their provenance.
//!
//! [`Recorder`] and [`VideoReader`] are streaming: work overlaps and memory stays constant for any
//! clip. This crate accepts no unbounded input, trusts no size that a file states, and knows
//! nothing of tasks.

#![forbid(unsafe_code)]

mod audio;
mod avc;
mod boxes;
mod colour;
mod defragment;
mod error;
mod film;
mod format;
mod fragments;
mod frames;
mod movie;
mod mux;
mod probe;
mod provenance;
mod reader;
mod recorder;
mod sample_table;
mod spool;
mod stills;
mod video;
mod written;

pub use defragment::defragment;
pub use error::{FormatMismatch, MediaError};
pub use film::{
    FilmFormat, FilmOpener, InProcessFilms, MismatchPolicy, PlayedFilm, UndecodablePolicy, examine,
};
pub use format::{AudioCodec, AudioFormat, ClipFormat, RecorderOptions};
pub use probe::{ProbeInfo, check, probe};
pub use provenance::{DigitalSource, ParentVideo, Provenance, label};
pub use reader::VideoReader;
pub use recorder::{Recorder, Recording};
pub use stills::preview;
pub use written::WrittenFile;

/// The H.264 encoder variant of this build, for the start-up log: for example `"openh264 with
/// assembly"`.
pub fn video_encoder_variant() -> &'static str {
    kinora_media_h264::variant()
}
