//! What the storyboard engine promises, seen from outside: outline, sameness, colour, light,
//! legible captions, calm pictures, clean sound, flat memory.

#![allow(clippy::unwrap_used, clippy::panic)]

mod any_prompt;
mod drafts;
mod edits;
mod frames;
mod length;
mod outline;
mod pictures;
mod references;
mod sound;
mod support;
