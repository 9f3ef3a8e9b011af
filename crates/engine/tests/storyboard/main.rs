//! What the storyboard engine promises, seen from outside: outline, sameness, colour, light,
//! legible captions, calm pictures, clean sound, flat memory.

#![allow(clippy::unwrap_used, clippy::panic)]

mod any_prompt;
mod outline;
mod pictures;
mod sound;
mod support;
