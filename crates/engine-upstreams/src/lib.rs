//! Engines that are other servers. The modules:
//!
//! 1. [`dialects`]: servers with an OpenAI-style `/v1/videos` API; [`comfyui`]: workflows of ComfyUI servers.
//! 2. `servers`: what both share: calls to one server, the choice among several, keys, forms and patience.
//!
//! They follow no redirects, use no proxies of the environment, read no answer without a limit, and do not
//! interpret the bytes of a film.

#![forbid(unsafe_code)]

pub mod comfyui;
pub mod dialects;
mod servers;
