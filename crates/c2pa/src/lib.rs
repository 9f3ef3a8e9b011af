//! Signs MP4 files with C2PA manifests: a statement of where a video comes from, bound to its bytes by the operator's
//! certificate. [`Signer`] is the whole of it; `manifest.rs` has what a manifest says, `layout.rs` its place in a file.
//!
//! It writes manifests and reads none: whether a signature is valid and its certificate trusted is for the validators of
//! others to say. It asks no time-stamp authority, and includes no manifest of another file.

#![forbid(unsafe_code)]

mod cbor;
mod certificate;
mod cose;
mod der;
mod error;
mod jumbf;
mod key;
mod layout;
mod manifest;
mod signer;

pub use error::CredentialError;
pub use signer::Signer;
