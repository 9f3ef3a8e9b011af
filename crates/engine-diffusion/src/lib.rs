//! Neural video generation from open weights: Wan 2.x, Wan VACE and LTX-2, run by
//! stable-diffusion.cpp. Without the feature `native` this is pure Rust: settings, features of
//! models, translation of requests, and checks of files. With it, the C++ library is built and
//! called. A model's description lists only features that it supports for certain.

#![cfg_attr(not(feature = "native"), forbid(unsafe_code))]

mod check;
mod family;
mod generation;
mod kind;
mod model;
#[cfg(feature = "native")]
mod native;
#[cfg(any(feature = "native", test))]
mod picture;
#[cfg(any(feature = "native", test))]
mod progress;
mod settings;
#[cfg(any(feature = "native", test))]
mod sound;

pub use check::{FileProblem, FileReport, ModelReport, WeightFormat, check};
pub use family::{Family, Role, Variant};
pub use generation::{Generation, Given};
pub use kind::DiffusionKind;
pub use model::Model;
#[cfg(feature = "native")]
pub use native::Native;
pub use settings::{Sampler, Scheduler, Settings, SettingsError};

/// The library's version, which appears in [`kinora_engine::EngineDescription::version`].
pub const LIBRARY: &str = "stable-diffusion.cpp-rs-0.1.20";
