//! Stand-ins and faults for tests. Each stand-in is behind a feature of its own name. Nothing here is part of a usual
//! build of the service.

#![forbid(unsafe_code)]

#[cfg(feature = "comfyui")]
pub mod comfyui;
#[cfg(feature = "engine")]
pub mod engine;
pub mod faults;
#[cfg(any(feature = "comfyui", feature = "providers"))]
#[allow(clippy::expect_used, reason = "this is for tests")]
mod http;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "providers")]
pub mod providers;
#[cfg(feature = "s3")]
pub mod s3;
