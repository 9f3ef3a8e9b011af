//! Texts that are part of the binary, sorted by name: the files of `catalogue/`; the ready-made cards, `diffusers/NAME` for
//! `models/diffusers/NAME.toml`; and the Python package by the paths in it.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
