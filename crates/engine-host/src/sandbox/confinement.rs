//! What a confined child process may access: its role, files and environment variables. The
//! environment is an allow list, so keys of upstreams and clouds stay with the service.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The purpose of a confined process, which decides its system calls and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxRole {
    /// Native code that generates frames: threads, system libraries, accelerators.
    Engine,
    /// Starts a server that generates frames, and speaks with it: its files are limited, its system calls are not. It limits the
    /// server's network itself.
    Server,
    /// Decodes one film on one thread, with access to nothing else.
    Decoder,
    /// A command of the operator, which starts programs of its own: its files are limited, its system calls are not.
    Command,
}

/// Access of a confined process. Everything not listed is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The purpose of the process.
    pub role: SandboxRole,
    /// Files, and folders with all their contents, that it may read.
    pub read: Vec<PathBuf>,
    /// Folders in which, and below which, it may list names. Their contents stay closed.
    #[serde(default)]
    pub list: Vec<PathBuf>,
    /// A folder that it may read and write. Created when the process starts, accessible only to its
    /// owner.
    pub scratch: Option<PathBuf>,
    /// Further files and folders that it may read and write.
    pub write: Vec<PathBuf>,
}

impl Confinement {
    /// A confinement without any files.
    pub fn of(role: SandboxRole) -> Self {
        Self {
            role,
            read: Vec::new(),
            list: Vec::new(),
            scratch: None,
            write: Vec::new(),
        }
    }
}

/// Allowed variables.
const PASSED: &[&str] = &[
    "PATH",
    "LANG",
    "TZ",
    "LD_LIBRARY_PATH",
    "RUST_BACKTRACE",
    // Used by tests to pause or kill a process at a crash point; unused in normal builds.
    "CRASH_AT",
    "HOLD_AT",
];

/// Prefixes of allowed variables: locale, threads, accelerators.
const PASSED_PREFIXES: &[&str] = &[
    "LC_", "OMP_", "GOMP_", "KMP_", "GGML_", "CUDA_", "NVIDIA_", "VK_", "HIP_", "HSA_", "ROCR_",
];

/// Variable that sets how CUDA numbers its devices.
const DEVICE_ORDER: &str = "CUDA_DEVICE_ORDER";

fn is_passed(name: &str) -> bool {
    PASSED.contains(&name)
        || PASSED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Restricts the environment of `command` to the allow list. Libraries that write files for their
/// user (compiled kernels, for example) get `scratch` as home and temporary folder.
pub(crate) fn clear_environment(command: &mut Command, scratch: Option<&Path>) {
    let passed = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_passed));
    // An allow list, because an operator's variables have unpredictable names: a deny list would
    // leak the first key that it does not know.
    command.env_clear().envs(passed);
    if let Some(scratch) = scratch {
        command.env("HOME", scratch).env("TMPDIR", scratch);
    }
}

/// Restricts the environment of an operator's command to the allow list and its user's home.
pub fn restrict_environment(command: &mut Command) {
    clear_environment(command, None);
    for name in ["HOME", "USER", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// Numbers the devices of CUDA as `nvidia-smi` does, unless the operator has set an order: by default, CUDA's first
/// device is the fastest one.
pub(crate) fn order_devices_by_bus(command: &mut Command) {
    let is_in_command = command.get_envs().any(|(name, _)| name == DEVICE_ORDER);
    // The allow list includes this variable, so a child inherits the service's own setting.
    if !is_in_command && std::env::var_os(DEVICE_ORDER).is_none() {
        command.env(DEVICE_ORDER, "PCI_BUS_ID");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_in_the_order_of_the_bus_unless_an_operator_says_otherwise() {
        let order = |command: &Command| {
            let mut found = command.get_envs().filter(|(name, _)| *name == DEVICE_ORDER);
            let value = found.next().and_then(|(_, value)| value);
            value.map(|value| value.to_str().unwrap().to_owned())
        };
        let mut command = Command::new("true");
        order_devices_by_bus(&mut command);
        assert_eq!(order(&command).as_deref(), Some("PCI_BUS_ID"));
        command.env(DEVICE_ORDER, "FASTEST_FIRST");
        order_devices_by_bus(&mut command);
        assert_eq!(order(&command).as_deref(), Some("FASTEST_FIRST"));
        assert!(is_passed(DEVICE_ORDER));
    }

    #[test]
    fn secrets_stay_and_what_an_accelerator_needs_goes() {
        for passed in ["PATH", "LC_ALL", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"] {
            assert!(is_passed(passed), "{passed}");
        }
        for kept in [
            "STUDIO_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "KINORA_CONFIG",
            "HOME",
            "LD_PRELOAD",
            "SSH_AUTH_SOCK",
            "XCUDA_",
        ] {
            assert!(!is_passed(kept), "{kept}");
        }
    }

    #[test]
    fn the_scratch_folder_is_home() {
        let mut command = Command::new("true");
        clear_environment(&mut command, Some(Path::new("/scratch")));
        let home = command.get_envs().find(|(name, _)| *name == "HOME");
        assert_eq!(home.unwrap().1.unwrap(), "/scratch");
    }
}
