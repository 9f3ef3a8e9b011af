//! Stand-ins and faults for tests. Each stand-in is behind a feature of its own name. Nothing here is part of a usual
//! build of the service.

#![forbid(unsafe_code)]

#[cfg(feature = "comfyui")]
pub mod comfyui;
#[cfg(feature = "engine")]
pub mod engine;
pub mod faults;
#[cfg(any(feature = "comfyui", feature = "downloads", feature = "providers"))]
#[allow(clippy::expect_used, reason = "this is for tests")]
mod http;
#[cfg(feature = "downloads")]
#[allow(clippy::expect_used, reason = "this is for tests")]
pub mod model_hub;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "providers")]
pub mod providers;
#[cfg(feature = "downloads")]
#[allow(clippy::expect_used, reason = "this is for tests")]
pub mod release_server;
#[cfg(feature = "s3")]
pub mod s3;
#[cfg(feature = "downloads")]
#[allow(clippy::expect_used, reason = "this is for tests")]
mod transfers;
#[cfg(feature = "downloads")]
#[allow(clippy::expect_used, reason = "this is for tests")]
pub mod wheels;
