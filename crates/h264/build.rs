//! Says at build time when the slow variant of the encoder is about to be built.
//! `openh264-sys2` assembles its x86 code with `nasm` and silently falls back to C without it.

// Cargo reads a build script's instructions from standard output.
#![allow(clippy::print_stdout)]

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["OPENH264_NO_ASM", "NASM", "PATH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    // Other architectures use assembly that the C compiler itself understands, or have none.
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if !matches!(arch.as_str(), "x86" | "x86_64") {
        return;
    }
    if env::var_os("OPENH264_NO_ASM").is_some() {
        println!(
            "cargo::warning=OPENH264_NO_ASM is set: video encoding will be 2 to 3 times slower"
        );
    } else if !nasm_found() {
        println!(
            "cargo::warning=nasm was not found: video encoding will be 2 to 3 times slower \
             (install nasm, then `cargo clean -p openh264-sys2`)"
        );
    }
}

/// The look-up of `nasm-rs`, which `openh264-sys2` uses: `$NASM`, else the search path.
fn nasm_found() -> bool {
    if let Some(path) = env::var_os("NASM") {
        return PathBuf::from(path).exists();
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths)
        .any(|folder| folder.join("nasm").exists() || folder.join("nasm.exe").exists())
}
