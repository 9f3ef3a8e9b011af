//! The files that a confined process may open (Landlock, landlock(7)): its own inputs, the system's
//! libraries, and what accelerators need. If the kernel supports it, also denies TCP, abstract
//! sockets, and signals to outside processes.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};

use super::confinement::{Confinement, SandboxRole};

/// The requested features: Linux 6.12. Older kernels apply those they know.
const ASKED: ABI = ABI::V6;

/// Locations of libraries, their settings and descriptions of the machine. Missing ones are
/// skipped.
const SYSTEM: &[&str] = &[
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    // Not all of /opt: services store data there.
    "/opt/amdgpu",
    "/opt/cuda",
    "/opt/intel",
    "/opt/nvidia",
    "/opt/rocm",
    "/nix/store",
    "/gnu/store",
    "/run/opengl-driver",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nvidia",
    "/etc/vulkan",
    "/etc/glvnd",
    "/etc/OpenCL",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/devices",
    "/proc/driver",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/stat",
    "/proc/sys",
    "/proc/version",
    "/sys",
    "/dev/urandom",
    "/dev/random",
];

/// Further locations for commands, which use the network and start programs. Of processes
/// outside the sandbox, `/proc` then shows only names, command lines and figures.
const PROGRAMS: &[&str] = &[
    "/bin",
    "/sbin",
    "/proc",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
];

/// Devices that may be read, written and controlled: accelerators and null devices. NVIDIA's are
/// found by prefix.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/dri",
    "/dev/kfd",
];

/// Closes all files except those of `confinement`. Returns whether at least the oldest Landlock
/// applied.
pub(super) fn close(confinement: &Confinement, lacking: &mut Vec<String>) -> bool {
    match restrict(confinement) {
        Ok(status) => {
            lacking.extend(shortfall(&status));
            status.ruleset != RulesetStatus::NotEnforced
        }
        Err(error) => {
            lacking.push(format!("Landlock: {error}"));
            false
        }
    }
}

fn restrict(confinement: &Confinement) -> Result<RestrictionStatus, RulesetError> {
    // Both start programs, look at them in `/proc`, and use the network.
    let is_command = matches!(confinement.role, SandboxRole::Command | SandboxRole::Server);
    let mut read = AccessFs::ReadFile | AccessFs::ReadDir;
    // A writable folder contains files and folders, but no devices; an engine's no sockets either.
    let mut write = AccessFs::from_all(ASKED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let ruleset = Ruleset::default()
        // Best effort: an older kernel applies the features that it knows, and `shortfall`
        // reports the rest. A hard requirement would forbid every engine on such systems.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ASKED))?
        .scope(Scope::from_all(ASKED))?;
    let ruleset = if is_command {
        // A command may run programs and use the network; its files are the only thing limited.
        read |= AccessFs::Execute;
        ruleset
    } else {
        write &= !(AccessFs::Execute | AccessFs::MakeSock | AccessFs::MakeFifo);
        ruleset.handle_access(AccessNet::from_all(ASKED))?
    };
    let ruleset = ruleset
        .create()?
        .add_rules(path_beneath_rules(&confinement.read, read))?
        .add_rules(path_beneath_rules(&confinement.list, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(&confinement.scratch, write))?
        .add_rules(path_beneath_rules(&confinement.write, write))?;
    // Everything that the decoder needs is already loaded: it opens only its film.
    if confinement.role == SandboxRole::Decoder {
        return ruleset.restrict_self();
    }
    let control = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let programs = if is_command { PROGRAMS } else { &[] };
    ruleset
        .add_rules(path_beneath_rules(SYSTEM, read))?
        .add_rules(path_beneath_rules(programs, read))?
        .add_rules(path_beneath_rules(library_folders(), read))?
        .add_rules(path_beneath_rules(hold_folder(), write))?
        .add_rules(path_beneath_rules(devices(), control | AccessFs::ReadDir))?
        .restrict_self()
}

fn devices() -> Vec<PathBuf> {
    let named = DEVICES.iter().map(PathBuf::from);
    let found = fs::read_dir("/dev").into_iter().flatten().flatten();
    named
        .chain(found.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            // `nvidia0`, `nvidiactl`, `nvidia-uvm`, `nvidia-caps/`: their number varies.
            name.is_some_and(|name| name.starts_with("nvidia"))
        }))
        .collect()
}

/// The operator's library folders, and this executable, which backtraces read.
fn library_folders() -> Vec<PathBuf> {
    let folders = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .chain(std::env::current_exe())
        .collect()
}

/// The folder of the file that tells a test that this process is paused (`HOLD_AT=NAME:N:FILE`).
/// `None` in normal builds.
fn hold_folder() -> Option<PathBuf> {
    if !kinora_system::crash::ARMED {
        return None;
    }
    let order = std::env::var("HOLD_AT").ok()?;
    let file = order.splitn(3, ':').nth(2)?;
    Path::new(file).parent().map(Path::to_owned)
}

/// The parts of Landlock that this kernel did not apply.
fn shortfall(status: &RestrictionStatus) -> Option<String> {
    let abi = match status.landlock {
        LandlockStatus::NotEnabled => return Some("Landlock is not enabled at boot".to_owned()),
        LandlockStatus::NotImplemented => {
            return Some("Landlock is not built into this kernel".to_owned());
        }
        LandlockStatus::Available { effective_abi, .. } => effective_abi as i32,
    };
    match status.ruleset {
        RulesetStatus::FullyEnforced => None,
        RulesetStatus::PartiallyEnforced => Some(format!(
            "Landlock ABI {abi} of this kernel lacks features of ABI {}",
            ASKED as i32
        )),
        RulesetStatus::NotEnforced => Some("Landlock was not applied".to_owned()),
    }
}
