//! What holds for any bytes from strangers, a check for each parser that they reach. `fuzz/` drives the checks by
//! coverage; the tests here try every seed, and damaged copies of it, without a special build.

#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a check that fails panics"
)]

mod address;
mod film;
mod form;
mod ids;
mod image;
mod json;
mod reference_url;
mod signature;
mod sound;

/// The names of the checks, which are those of the fuzz targets and of the folders of seeds.
pub const NAMES: [&str; 9] = [
    "address",
    "film",
    "form",
    "ids",
    "image",
    "json",
    "reference_url",
    "signature",
    "sound",
];

/// Runs the check `name` on `bytes`. Checks of text skip what is not UTF-8.
///
/// # Panics
/// When it fails, or if there is no such check.
pub fn check(name: &str, bytes: &[u8]) {
    let text = || std::str::from_utf8(bytes).ok();
    match name {
        "address" => {
            if let Some(bytes) = bytes.first_chunk() {
                address::check(*bytes);
            }
        }
        "film" => film::check(bytes),
        "image" => image::check(bytes),
        "json" => json::check(bytes),
        "sound" => sound::check(bytes),
        "form" => text().into_iter().for_each(form::check),
        "ids" => text().into_iter().for_each(ids::check),
        "reference_url" => text().into_iter().for_each(reference_url::check),
        "signature" => text().into_iter().for_each(signature::check),
        _ => panic!("no check is called {name:?}"),
    }
}
