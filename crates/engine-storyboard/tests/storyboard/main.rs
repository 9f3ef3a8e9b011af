//! What the storyboard engine promises, seen from outside: outline, sameness, colour, light,
//! legible captions, calm pictures, clean sound, flat memory.

#![allow(clippy::unwrap_used, clippy::panic)]

mod account;
mod any_prompt;
mod blobs;
mod captions;
mod counts;
mod crowds;
mod drafts;
mod edits;
mod erased;
mod field;
mod frames;
mod hues;
mod length;
mod loops;
mod motion;
mod outline;
mod pango;
mod pictures;
mod references;
mod remakes;
mod said;
mod silent;
mod sound;
mod support;
mod weather;
