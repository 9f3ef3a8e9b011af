//! What a build says on a machine that lacks a compiler or an assembler: the build script itself, compiled here.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// The compiled build script, and a folder that is all of its search path.
struct Machine {
    folder: PathBuf,
}

impl Machine {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("bin")).unwrap();
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition=2024", "build.rs", "-o"]);
        let compiled = rustc.arg(folder.join("script")).output().unwrap();
        assert!(compiled.status.success(), "{compiled:?}");
        Self { folder }
    }

    /// Installs a program that does nothing.
    fn has(self, program: &str) -> Self {
        let path = self.folder.join("bin").join(program);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// What the build script tells cargo on an x86-64 Linux, with these variables.
    fn says(&self, variables: &[(&str, &str)]) -> String {
        let mut script = Command::new(self.folder.join("script"));
        script.env_clear().envs(variables.iter().copied());
        script.env("PATH", self.folder.join("bin"));
        script.env("CARGO_CFG_TARGET_ARCH", "x86_64");
        let said = script.output().unwrap();
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap()
    }
}

#[test]
fn a_build_without_a_compiler_for_cpp_ends_with_what_to_install() {
    let bare = Machine::new("bare");
    let said = bare.says(&[]);
    assert!(
        said.contains("cargo::error=Kinora needs a C++ compiler"),
        "{said}"
    );
    assert!(said.contains("apt install g++"), "{said}");
    // One that is named but missing is none.
    let said = bare.says(&[("CXX", "ccache clang++")]);
    assert!(said.contains("cargo::error="), "{said}");
    let said = bare.has("c++").says(&[]);
    assert!(!said.contains("cargo::error"), "{said}");
}

#[test]
fn a_build_without_nasm_goes_on_with_a_warning() {
    let machine = Machine::new("slow").has("c++");
    let said = machine.says(&[]);
    assert!(said.contains("cargo::warning=nasm was not found"), "{said}");
    assert!(said.contains("`cargo clean -p openh264-sys2"), "{said}");
    let said = machine.says(&[("PROFILE", "release")]);
    assert!(
        said.contains("`cargo clean --release -p openh264-sys2"),
        "{said}"
    );
    let said = machine.says(&[("OPENH264_NO_ASM", "1")]);
    assert!(
        said.contains("cargo::warning=OPENH264_NO_ASM is set"),
        "{said}"
    );
    let said = machine.has("nasm").says(&[]);
    assert!(!said.contains("cargo::warning"), "{said}");
}
