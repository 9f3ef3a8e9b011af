//! The environment of a confined process: an allow list. Keys of upstreams and of clouds, and
//! whatever else an operator has set for the service, stay with the service.

use std::path::Path;
use std::process::Command;

/// Variables that are passed on.
const PASSED: &[&str] = &[
    "PATH",
    "LANG",
    "TZ",
    "LD_LIBRARY_PATH",
    "RUST_BACKTRACE",
    // Named places where tests hold or end a process; nothing in a usual build.
    "CRASH_AT",
    "HOLD_AT",
];

/// Variables that are passed on by how they begin: locale, threads, accelerators.
const PASSED_PREFIXES: &[&str] = &[
    "LC_", "OMP_", "GOMP_", "KMP_", "GGML_", "CUDA_", "NVIDIA_", "VK_", "HIP_", "HSA_", "ROCR_",
];

fn is_passed(name: &str) -> bool {
    PASSED.contains(&name)
        || PASSED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Leaves `command` nothing of this process's environment but the allow list. Libraries that keep files
/// for their user (compiled kernels, say) find `scratch` as home and as the place of temporary files.
pub(crate) fn clear_environment(command: &mut Command, scratch: Option<&Path>) {
    let passed = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_passed));
    command.env_clear().envs(passed);
    if let Some(scratch) = scratch {
        command.env("HOME", scratch).env("TMPDIR", scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
