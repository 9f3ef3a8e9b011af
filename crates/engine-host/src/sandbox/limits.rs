//! Resource limits and capabilities. Engines have no memory limit here: accelerators and mapped
//! weights take terabytes of address space, so the service checks resident memory instead.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::confinement::SandboxRole;

/// An accelerator's library opens several hundred files.
const ENGINE_FILES_MAX: u64 = 1_024;
/// Compiled kernels take megabytes.
const ENGINE_FILE_BYTES_MAX: u64 = 1 << 30;
/// Three pipes and the film.
const DECODER_FILES_MAX: u64 = 16;
/// The allocator reserves 1 GiB at once; pictures of level 5.2 need a quarter of the rest.
const DECODER_DATA_BYTES_MAX: u64 = 2 << 30;
/// The longest and largest film takes about ten seconds.
const DECODER_CPU_SECONDS_MAX: u64 = 600;

/// Limits the process, and prevents other processes of its user from inspecting it.
pub(super) fn limit(role: SandboxRole, lacking: &mut Vec<String>) {
    let (files, file_bytes) = match role {
        SandboxRole::Engine | SandboxRole::Server | SandboxRole::Command => {
            (ENGINE_FILES_MAX, ENGINE_FILE_BYTES_MAX)
        }
        SandboxRole::Decoder => (DECODER_FILES_MAX, 0),
    };
    let mut limits = vec![
        // A core dump would contain prompts, pictures and weights.
        ("core", Resource::Core, 0),
        ("nofile", Resource::Nofile, files),
        ("fsize", Resource::Fsize, file_bytes),
    ];
    if role == SandboxRole::Decoder {
        limits.push(("data", Resource::Data, DECODER_DATA_BYTES_MAX));
        limits.push(("cpu", Resource::Cpu, DECODER_CPU_SECONDS_MAX));
    }
    for (name, resource, most) in limits {
        let most = Some(most);
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        if let Err(error) = setrlimit(resource, limit) {
            lacking.push(format!("the resource limit {name}: {error}"));
        }
    }
    // Not dumpable also makes `/proc/PID` belong to root, so other processes of the same user
    // can neither attach nor read its memory (PR_SET_DUMPABLE(2const)).
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        lacking.push(format!("closed to tracers: {error}"));
    }
}

/// Engines must not have root's rights, even if the service runs as root. With Landlock they keep
/// one: to read their own files although another user owns the folder, as in containers with
/// mounted folders.
pub(super) fn drop_capabilities(is_landlocked: bool, lacking: &mut Vec<String>) {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |held| held.permitted);
    let kept = if is_landlocked {
        held & CapabilitySet::DAC_READ_SEARCH
    } else {
        CapabilitySet::empty()
    };
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    if let Err(error) = set_capabilities(None, sets) {
        lacking.push(format!("no capabilities: {error}"));
    }
}
