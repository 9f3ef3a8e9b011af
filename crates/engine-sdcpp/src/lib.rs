//! Neural video generation from open weights: Wan 2.x, Wan VACE and LTX-2, run by the server that
//! stable-diffusion.cpp's authors ship, `sd-server`, as a child process. This crate knows settings,
//! features of models, the translation of requests, and checks of files; the server does the
//! computing. A model's description lists only features that it supports for certain.
//!
//! 1. [`Settings`] and [`Family`]: what an operator says about a model; [`check`] looks at its files.
//! 2. [`Model`] plans clips, and makes a [`Generation`](generation::Generation) of a request.
//! 3. [`ServerEngine`] starts the server, sends it requests, and hands its films over.

#![forbid(unsafe_code)]

mod arguments;
mod avi;
mod check;
mod engine;
mod family;
mod film;
mod generation;
mod kind;
mod log;
mod model;
mod names;
mod picture;
mod process;
mod program;
mod progress;
mod request;
mod settings;

pub use check::{FileProblem, FileReport, ModelReport, WeightFormat, check};
pub use engine::{START_LIMIT, ServerEngine};
pub use family::{Family, Role, Variant};
pub use kind::SdcppKind;
pub use model::Model;
pub use settings::{Lora, Sampler, Scheduler, Settings};

/// The software that generates, which appears in [`kinora_engine::EngineDescription::version`]. Its
/// version is the server's.
pub const LIBRARY: &str = "stable-diffusion.cpp";
