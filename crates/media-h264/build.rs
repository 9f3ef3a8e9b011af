//! Says at build time what OpenH264 lacks: without a C++ compiler it cannot be built, without
//! `nasm` its encoder is slow. `openh264-sys2` says neither in words that help: it ends in the
//! middle of a compiler's call, and silently falls back to C.

// Cargo reads a build script's instructions from standard output.
#![allow(clippy::print_stdout)]

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["OPENH264_NO_ASM", "NASM", "PATH", "CXX"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let windows = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|kind| kind == "msvc");
    if !windows && !compiler_found() {
        println!(
            "cargo::error=Kinora needs a C++ compiler for its H.264 encoder: install one \
             (Debian and Ubuntu: `apt install g++`; Fedora: `dnf install gcc-c++`; \
             macOS: `xcode-select --install`) and build again"
        );
        return;
    }
    // Other architectures use assembly that the C compiler itself understands, or have none.
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if !matches!(arch.as_str(), "x86" | "x86_64") {
        return;
    }
    if env::var_os("OPENH264_NO_ASM").is_some() {
        println!("cargo::warning=OPENH264_NO_ASM is set: video encoding will be half as fast");
    } else if !nasm_found() {
        // Cargo does not notice a new program: it runs neither build script again until both crates are cleaned, in the
        // profile of this build.
        let profile = match env::var("PROFILE").as_deref() {
            Ok("release") => " --release",
            _ => "",
        };
        println!(
            "cargo::warning=nasm was not found: video encoding will be half as fast (install nasm, \
             then `cargo clean{profile} -p openh264-sys2 -p kinora-media-h264`, and build again)"
        );
    }
}

/// Whether a C++ compiler answers, by the names under which the crate `cc` looks for one.
fn compiler_found() -> bool {
    let target = env::var("TARGET").unwrap_or_default();
    let of_target = format!("CXX_{}", target.replace('-', "_"));
    let of_target = [format!("CXX_{target}"), of_target, "TARGET_CXX".to_owned()];
    if of_target.iter().any(|name| env::var_os(name).is_some()) {
        // Somebody who builds for another machine names its compiler.
        return true;
    }
    let named = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    // It may come with a wrapper in front of it, as `ccache g++`.
    let program = named.split_whitespace().next().unwrap_or("c++");
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
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
