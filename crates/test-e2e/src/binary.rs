//! Where the binary under test is. It is built once per run, since a stale one proves nothing;
//! with points to die at, stores that fail, and signatures, which do nothing unless a variable asks for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Names a ready binary, for example a release to be judged; nothing is built then.
const READY: &str = "KINORA_E2E_BINARY";
/// Names the folder of the ready examples of `kinora-client`; without it they are built.
const READY_EXAMPLES: &str = "KINORA_E2E_EXAMPLES";

/// The root of the checkout.
pub fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// The binary, of the same profile as this test.
pub(crate) fn kinora_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    let built = || build(&["--package", "kinora", "--features", "test-faults"]).join("kinora");
    BINARY.get_or_init(|| std::env::var_os(READY).map_or_else(built, PathBuf::from))
}

/// An example of the crate `kinora-client`, as a program.
pub fn client_example(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let built = || build(&["--package", "kinora-client", "--examples"]).join("examples");
    let folder =
        FOLDER.get_or_init(|| std::env::var_os(READY_EXAMPLES).map_or_else(built, PathBuf::from));
    folder.join(name)
}

/// Builds in the profile of this test, and returns its folder.
fn build(what: &[&str]) -> PathBuf {
    // A test runs as <target>/<profile>/deps/<name>.
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let release = profile.file_name().is_some_and(|name| name == "release");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--target-dir"])
        .arg(profile.parent().unwrap())
        .args(what)
        .args(release.then_some("--release"))
        .current_dir(workspace())
        .output()
        .expect("cargo could not be run");
    assert!(
        output.status.success(),
        "{what:?} could not be built:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    profile.to_owned()
}
